"""What a committed job's fate is: all that tell of it say the same, and nothing that is not so."""

import re
import shlex
from collections.abc import Callable

import pytest

from s3commit.cli import short_ids, undone
from s3commit.core.model.destination import Conflict, Scope
from tests.cli.browser import Browser
from tests.cli.support import JOB, OTHER, SALES, TABLE, THIRD, Desk
from tests.core.world import World, job_directory

AGAIN = "44444444-7425-40de-944b-e07fc1f90ae7"
WHERE = ["--table", TABLE]
LONG_AGO = "2026-11-21 22:00:30"  # after the job, before what others did to it
FILES = {f"dt={day}/part-{JOB}.csv": b"old" for day in (1, 2)}


@pytest.fixture
def desk() -> Desk:
    return Desk(World(versioned=True))


def undo(desk: Desk, job_id: str, undo_id: str, *how: str) -> None:
    desk.environment.new_id = lambda: undo_id  # type: ignore[method-assign]
    desk.environment.on_sleep = lambda: desk.world.run(job_directory(undo_id))
    desk.run("undo", job_id, *WHERE, *how)
    desk.world.clock.advance(60)


def overwrite(desk: Desk, days: str, job_id: str = OTHER) -> None:
    files = {f"dt={day}/part-{job_id}.csv": b"new" for day in days}
    how = {"conflict": Conflict.REPLACE, "scope": Scope.PARTITION, "partition_by": ("dt",)}
    desk.committed_job(job_id, files=files, **how)
    desk.world.clock.advance(60)


def undone_once(desk: Desk) -> None:
    undo(desk, JOB, THIRD)


def taken_back(desk: Desk) -> None:
    undone_once(desk)
    undo(desk, THIRD, OTHER)


def undone_again(desk: Desk) -> None:
    taken_back(desk)
    undo(desk, OTHER, AGAIN)


def undone_overwrite(desk: Desk) -> None:
    overwrite(desk, "12")
    undo(desk, OTHER, THIRD)


FATES: dict[
    str, tuple[Callable[[Desk], None], str, str]
] = {  # and the undo in effect, what is left
    "in effect": (lambda _desk: None, "", "wrong data"),
    "undone": (undone_once, THIRD, "it is undone"),
    "taken back": (taken_back, "", "its data was brought back"),
    "undone again": (undone_again, THIRD, "it is undone"),
    "partly replaced": (lambda desk: overwrite(desk, "1"), "", "still change"),
    "replaced": (lambda desk: overwrite(desk, "12"), "", "still change"),
    "replaced for a while": (undone_overwrite, "", "wrong data"),
}


def line(text: str) -> str:
    """The line of the job, and those below it."""
    (found,) = re.findall(rf"^.* {JOB}(?: .*)?(?:\n  .*)*$", text, re.MULTILINE)
    return str(found)


def row(page: str) -> str:
    """The row of the job in the page's table, with the titles of its links."""
    own = f'<td><a class="id short" title="{JOB}"'
    return next(one for one in page.split("<tr")[1:] if own in one)


ROWS: dict[str, Callable[[Desk, Browser], str]] = {
    "status": lambda desk, _: line(desk.run("status", "--all", *WHERE).stdout),
    "ls": lambda desk, _: line(desk.run("ls", SALES).stdout),
    "log": lambda desk, _: line(desk.run("log", SALES, *WHERE).stdout),
    "table page": lambda _, browser: row(browser.get("/table", table=SALES)),
    "jobs page": lambda _, browser: row(browser.get("/")),
    "older jobs": lambda _, browser: row(browser.get("/", before=LONG_AGO)),
}
VIEWS: dict[str, Callable[[Desk, Browser], str]] = {
    "show": lambda desk, _: desk.run("show", JOB, *WHERE).stdout,
    "show of S3": lambda desk, _: desk.run("show", job_directory(JOB).uri).stdout,
    "ls --files": lambda desk, _: desk.run("ls", SALES, "--files", JOB).output,
    "job page": lambda _, browser: browser.get("/job", job=JOB),
}


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("place", [*ROWS, *VIEWS])
def test_each_place_says_whether_a_job_is_undone(
    desk: Desk, browser: Browser, place: str, fate: str
) -> None:
    happen, by, _ = FATES[fate]
    desk.committed_job(JOB, files=FILES)
    desk.world.clock.advance(60)
    happen(desk)
    told = (ROWS | VIEWS)[place](desk, browser)
    if place in ROWS:
        assert {one for one in (OTHER, THIRD, AGAIN) if one[:8] in told} == ({by} if by else set())
    else:
        assert (f"undone by job {by or THIRD}" in told) is (by != "" or fate == "taken back")
        assert ("took that back" in told) is (fate == "taken back")
        untrue = ("made visible", "replaced by a later job", "2 of 2 files")
        assert not by or [one for one in untrue if one in told] == []


@pytest.mark.parametrize("more", [0, 1, 2])
@pytest.mark.parametrize("place", [*ROWS, *VIEWS])
def test_what_an_undo_of_an_undo_has_left_out_is_not_said_to_be_back(
    desk: Desk, browser: Browser, place: str, more: int
) -> None:
    """Nor do later undos bring it back."""
    later = [number * 8 + OTHER[8:] for number in "567"]
    desk.committed_job(AGAIN)
    desk.committed_job(JOB, files=FILES, conflict=Conflict.REPLACE)
    desk.world.clock.advance(60)
    undo(desk, JOB, THIRD)
    undo(desk, THIRD, later[0], "--leave-removed")
    for number in range(more):
        undo(desk, later[number], later[number + 1])
    told = (ROWS | VIEWS)[place](desk, browser)
    shown = {one for one in (THIRD, *later) if one[:8] in told}
    assert shown == ({THIRD} if place in ROWS else {THIRD, *shown})
    assert [one for one in ("took that back", "brought back") if one in told] == []
    document = desk.shown()
    assert (document["undoneBy"], document["next"]) == (THIRD, ["nothing: it is undone"])


def test_an_undo_that_removes_what_came_back_is_said(desk: Desk) -> None:
    desk.committed_job(AGAIN)
    desk.committed_job(JOB, files=FILES, conflict=Conflict.REPLACE)
    desk.world.clock.advance(60)
    taken_back(desk)
    undo(desk, OTHER, "5" * 8 + OTHER[8:], "--leave-removed")
    by = {one["jobId"][:2]: one["undoneBy"] for one in desk.json("log", SALES)["jobs"]}
    assert by == {"44": None, JOB[:2]: THIRD, "22": OTHER, "11": "5" * 8 + OTHER[8:], "55": None}
    assert desk.shown()["undoneBy"] == THIRD


@pytest.mark.parametrize("fate", FATES)
def test_what_show_advises_can_be_done(desk: Desk, fate: str) -> None:
    happen, by, left = FATES[fate]
    desk.committed_job(JOB, files=FILES)
    desk.world.clock.advance(60)
    happen(desk)
    document = desk.shown()
    assert document["undoneBy"] == (by or None)
    assert left in " ".join(document["next"])
    commands = [line.partition("s3commit ")[2] for line in document["next"]]
    ended = [desk.run_any(*shlex.split(one)).exit_code for one in commands if one]
    assert ended == ([0, 3] if fate == "replaced" else [0] if left.startswith("it") else [0, 0])


@pytest.mark.parametrize("replaced", [False, True])
def test_an_undo_is_told_as_one_everywhere(desk: Desk, browser: Browser, replaced: bool) -> None:
    """Whether or not it has brought back what its job had replaced, and whatever came later."""
    desk.committed_job(JOB, files=FILES)
    overwrite(desk, "12") if replaced else desk.committed_job(OTHER)
    undo(desk, OTHER, THIRD)
    if replaced:
        overwrite(desk, "3", AGAIN)
    said = [
        desk.text("show", THIRD, *WHERE),
        desk.text("show", job_directory(THIRD).uri),
        desk.text("show", "--follow", THIRD, *WHERE),
        browser.get("/job", job=THIRD),
    ]
    assert [one for one in said if f"ended: job {OTHER} is undone" not in one.lower()] == []
    assert [one for one in said if re.search("all files were|mode overwrite|--files", one)] == []
    nothing, again = desk.json("show", THIRD, *WHERE)["next"]
    assert (nothing, again[:19]) == ("nothing: it is done", "to revert the undo:")
    assert desk.run(*shlex.split(again.partition("s3commit ")[2])).exit_code == 0


def test_of_very_many_later_jobs_it_is_said_that_it_is_not_known(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undone, "MOST_LATER", 1)
    desk.committed_job(JOB)
    desk.world.clock.advance(60)
    desk.committed_job(OTHER)
    assert desk.shown()["problems"] == []
    desk.committed_job(THIRD)
    assert "not known if it was undone: 2 jobs were committed since" in str(
        desk.shown()["problems"]
    )


def test_first_digits_name_a_job_if_they_name_one(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = JOB[:9] + OTHER[9:].replace("e0", "a0")
    desk.committed_job(JOB)
    desk.open_job(OTHER)
    places = (WHERE, ["--destination", SALES, "--table", ""])
    for where in places:
        for job_id in (JOB, OTHER):
            assert desk.json("show", job_id[:8], *where)["jobId"] == job_id
        assert "no job whose id begins with 99999999 in" in desk.fails(
            "show", "99999999", *where, exit_code=1
        )
    assert desk.json("ls", SALES, "--files", JOB[:13])["jobId"] == JOB
    desk.open_job(twin)
    for where in places:
        told = desk.fails("undo", JOB[:8], *where, exit_code=2)
        assert f"2 ids begin with {JOB[:8]}: {twin}, {JOB}" in told
    monkeypatch.setattr(short_ids, "LOOKED_AT", 1)
    assert "type the whole id" in desk.fails("show", JOB[:8], *WHERE, exit_code=2)
    assert desk.shown(JOB)["jobId"] == JOB
