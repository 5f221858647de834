"""``s3commit undo --back-to``: the plan, its end, its refusals, and the same command again."""

import json
from collections.abc import Callable
from contextlib import suppress
from itertools import count

import pytest

import s3commit
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.undo import back_to
from tests.cli.support import JOB, OTHER, SALES, THIRD, Desk
from tests.core.enumerated import every_point
from tests.core.world import World, job_directory
from tests.fakes.faults import Crash

BACK = ("undo", "--back-to", JOB, "--destination", SALES)
WAS = [b"0 a0", b"1 a0"]  # the bytes of JOB's files


UNDO = "99999999-7425-40de-944b-{:012}"
FIRST, SECOND = UNDO.format(1), UNDO.format(3)  # the first has a task, which has an id too


def made() -> Desk:
    """JOB, and then an append and an overwrite; the pipeline acts while the command waits."""
    desk = Desk(World(versioned=True))
    desk.committed_job(JOB)
    for job_id, conflict in ((OTHER, Conflict.APPEND), (THIRD, Conflict.REPLACE)):
        desk.world.clock.advance(60)
        files = {f"part-{job_id}.csv": b"later"}
        desk.committed_job(job_id, files=files, conflict=conflict)
    desk.world.clock.advance(60)
    ids = count(1)
    begun: list[str] = []

    def new_id() -> str:
        begun.append(UNDO.format(next(ids)))
        return begun[-1]

    def act() -> None:
        for job_id in begun:
            if desk.world.store.head("lake", job_directory(job_id).request):
                desk.world.run(job_directory(job_id))

    desk.environment.new_id = new_id  # type: ignore[method-assign]
    desk.environment.on_sleep = act
    return desk


@pytest.fixture
def desk() -> Desk:
    return made()


def rows(desk: Desk) -> list[bytes]:
    return sorted(desk.world.visible().values())


def test_the_plan_is_shown_whole_and_carried_out(desk: Desk) -> None:
    before = desk.world.all_keys()
    would = desk.run(*BACK, "--dry-run")
    head, *lines = [" ".join(line.split()) for line in would.stdout.splitlines()]
    assert head == "ENDED KIND REMOVED RESTORED JOB"
    assert [line.split("Z ")[1] for line in lines] == [
        f"overwrite files 1, bytes 5 B, rows 5 files 3, bytes 13 B, rows 13 {THIRD}",
        f"append files 1, bytes 5 B, rows 5 files 0, bytes 0 B, rows 0 {OTHER}",
    ]
    then = f"2 jobs: {SALES} is then as right after job {JOB}\n"
    assert would.stderr == f"would undo {then}"
    assert desk.world.all_keys() == before
    done = desk.run(*BACK)
    assert done.stdout == would.stdout
    assert done.stderr == (
        f"undoing {then}undid job {THIRD} by job {FIRST}\nundid job {OTHER} by job {SECOND}\n"
    )
    assert rows(desk) == WAS
    again = desk.run(*BACK)
    nothing = f"nothing to undo at {SALES}: no job came after {JOB}\n"
    assert (again.stdout, again.stderr) == ("", nothing)


def test_for_programs_there_is_one_document(desk: Desk) -> None:
    would = desk.json(*BACK, "--dry-run")
    assert (would["jobId"], would["destination"], would["dryRun"]) == (JOB, SALES, True)
    assert [(one["jobId"], one["undoId"]) for one in would["undos"]] == [
        (THIRD, None),
        (OTHER, None),
    ]
    done = desk.json(*BACK)
    ids = [FIRST, SECOND]
    expected = [one | {"undoId": by} for one, by in zip(would["undos"], ids, strict=True)]
    assert done == {**would, "dryRun": False, "undos": expected}
    assert rows(desk) == WAS


def test_each_undo_has_the_note_and_the_labels(desk: Desk) -> None:
    refused = desk.run(*BACK, "--note", "x" * 501, exit_code=1).stderr
    assert "note=" in refused and desk.json("log", SALES)["jobs"][-1]["jobId"] == THIRD
    desk.run(*BACK, "--note", "ticket 7", "--label", "run=8=9", "--label", "dag=a")
    told = [(one["note"], one["labels"]) for one in desk.json("log", SALES)["jobs"]]
    assert told[-2:] == [("ticket 7", ["run=8=9", "dag=a"])] * 2


def without_lists(desk: Desk, _: pytest.MonkeyPatch) -> None:
    for key in desk.world.all_keys("_s3commit/"):
        if "/_replaced/" in key:
            desk.world.store.delete("lake", key)


def bounded(_: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(back_to, "MAX_UNDOS", 1)


@pytest.mark.parametrize(
    ("spoil", "told", "code"),
    [
        (
            without_lists,
            f"the undo of job {THIRD} at {SALES} is refused: job {THIRD} replaced 3",
            "LIST_GONE",
        ),
        (bounded, f"2 jobs came after job {JOB}, and one call undoes at most 1", "TOO_LARGE"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_plan_that_would_be_refused_changes_nothing(
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
    more: tuple[str, ...],
    spoil: Callable[[Desk, pytest.MonkeyPatch], None],
    told: str,
    code: str,
) -> None:
    spoil(desk, monkeypatch)
    before = desk.world.all_keys()
    refused = desk.run(*BACK, *more, exit_code=3).stderr
    assert told in refused
    assert refused.endswith(f"[{code}]; nothing was changed\n")
    assert desk.world.all_keys() == before


def test_a_job_of_the_plan_that_stands_at_the_end_is_no_success(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object, **__: object) -> None:
        raise JobRefusedError("it has no files", code="NOTHING_TO_UNDO")

    monkeypatch.setattr("s3commit.writer.undo.plan_undo", none_left)
    refused = desk.run(*BACK, exit_code=3).stderr
    assert "0 of the 2 undos are known to be done" in refused
    assert "[FILES_CHANGED]" in refused


def test_it_does_not_leave_out_what_was_replaced(desk: Desk) -> None:
    assert "leave out --leave-removed" in desk.fails(*BACK, "--leave-removed", exit_code=2)


def test_a_job_of_meanwhile_ends_it_and_is_in_the_next_plan(desk: Desk) -> None:
    late, act = "33333333-7425-40de-944b-e07fc1f90ae7", desk.environment.on_sleep

    def append_too() -> None:
        act()
        desk.environment.on_sleep = act
        desk.world.clock.advance(60)
        desk.committed_job(late, files={f"part-{late}.csv": b"late"})

    desk.environment.on_sleep = append_too
    ended = desk.run(*BACK, "--output", "json", exit_code=3)
    ids = [one["undoId"] for one in json.loads(ended.stdout)["undos"]]
    assert ids == [FIRST, None]
    assert f"job {late} at {SALES} is not in the plan" in ended.stderr
    assert "1 of the 2 undos are known to be done: run it again for the rest" in ended.stderr
    assert ended.stderr.endswith("[FILES_CHANGED]; the undos that are done stay\n")
    assert rows(desk) == sorted([*WAS, b"later", b"late"])
    assert [one["jobId"] for one in desk.json(*BACK)["undos"]] == [late, OTHER]
    assert rows(desk) == WAS


def test_i2_after_a_crash_at_any_point_the_same_command_does_the_rest() -> None:
    def check(point: int) -> bool:
        desk, left = made(), count(point, -1)

        def die() -> None:
            if next(left) <= 0:
                raise Crash

        desk.world.plan.run_before(None, die, times=None)
        with suppress(Crash):
            desk.run(*BACK)
        is_dead, left = next(left) < 0, count(10**6)
        desk.run(*BACK)
        desk.environment.on_sleep()  # the pipeline ends what it has decided
        assert rows(desk) == WAS, point
        assert desk.json(*BACK, "--dry-run")["undos"] == []
        return is_dead

    every_point(check)


def test_in_python_there_is_a_result_for_each(of_python: Desk) -> None:
    would = s3commit.undo_back_to(SALES, JOB, dry_run=True)
    assert [(job, one.files, one.replaced, one.dry_run) for job, one in would.items()] == [
        (THIRD, 3, 1, True),
        (OTHER, 0, 1, True),
    ]
    done = s3commit.undo_back_to(SALES, JOB, note="ticket 7", labels={"run": "8=9"})
    assert [(job, one.job_id) for job, one in done.items()] == [(THIRD, FIRST), (OTHER, SECOND)]
    told = [(one["note"], one["labels"]) for one in of_python.json("log", SALES)["jobs"]]
    assert told[-2:] == [("ticket 7", ["run=8=9"])] * 2
    assert (rows(of_python), s3commit.undo_back_to(SALES, JOB)) == (WAS, {})
    with pytest.raises(JobRefusedError, match="is not committed at"):
        s3commit.undo_back_to(SALES, UNDO.format(9))
