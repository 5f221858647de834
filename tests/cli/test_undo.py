"""``s3commit undo``: what a person sees before and after, and what the other verbs say then."""

import itertools
import json
import re
from dataclasses import replace
from functools import partial

import pytest

import s3commit
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.locks import key_digest
from s3commit.core.undo import files
from s3commit.writer.commit_result import CommitResult
from tests.cli.support import JOB, OTHER, SALES, TABLE, THIRD, Desk
from tests.core.world import BUCKET, World, job_directory

UNDO = THIRD


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A bucket that keeps versions, and a pipeline that acts while the command waits."""
    desk = Desk(World(versioned=True))
    monkeypatch.setattr(desk.environment, "new_id", lambda: UNDO)
    desk.environment.on_sleep = lambda: desk.world.run(job_directory(UNDO))
    return desk


def test_an_append_is_undone_and_its_key_free(desk: Desk) -> None:
    desk.committed_job(OTHER)
    desk.committed_job(idempotency_key="today")
    before = desk.world.all_keys()
    would = desk.run("undo", JOB, "--table", TABLE, "--dry-run")
    assert (would.stderr, would.stdout) == (
        "",
        f"would undo job {JOB} at {SALES}: 2 files, 8 B, 8 rows removed\n"
        "its idempotency key becomes free: the next job with it is committed\n",
    )
    assert desk.world.all_keys() == before
    done = desk.run("undo", JOB, "--table", TABLE)
    assert done.stdout == (
        f"undid job {JOB} at {SALES}: 2 files, 8 B, 8 rows removed\n"
        "its idempotency key is free: the next job with it is committed\n"
    )
    assert done.stderr == (f"to revert the undo: s3commit undo {UNDO} --destination {SALES}\n")
    assert {key.rpartition("-0b")[0] for key in desk.world.visible()} == {""}
    assert all(OTHER in key for key in desk.world.visible())
    again = desk.fails("undo", JOB, "--table", TABLE, exit_code=3)
    assert f"job {JOB} was undone by job {UNDO} [NOTHING_TO_UNDO]; nothing was changed" in again


def test_no_label_is_lost_in_silence(desk: Desk) -> None:
    desk.committed_job()
    line = desk.fails("undo", JOB, "--destination", SALES, *("--label", "a=1") * 2, exit_code=2)
    assert line == "Error: two labels have one name"


def test_the_way_back_is_quoted_as_a_shell_takes_it(desk: Desk) -> None:
    directory = job_directory(JOB, "a+b c/")
    desk.world.open(directory)
    desk.world.request(directory, desk.world.attempt(directory, "0"))
    desk.world.run(directory)
    desk.environment.on_sleep = lambda: desk.world.run(job_directory(UNDO, "a+b c/"))
    done = desk.run("undo", directory.uri)
    assert f"s3commit undo {UNDO} --destination 's3://lake/a+b c/'\n" in done.stderr


def test_what_was_replaced_comes_back_or_is_left(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.committed_job(OTHER)
    over = desk.committed_job(conflict=Conflict.REPLACE)
    document = desk.json("undo", over.uri, "--dry-run")
    assert document == {
        "jobId": JOB,
        "destination": SALES,
        "undoId": None,
        "removed": {"files": 2, "bytes": 8, "rows": 8},
        "restored": {"files": 2, "bytes": 8, "rows": 8},
        "replacedFiles": 0,
        "idempotencyKey": None,
        "dryRun": True,
    }
    left = desk.run("undo", over.uri, "--dry-run", "--leave-removed")
    assert "\nnot restored: 2 files that it had replaced\n" in left.stdout
    with monkeypatch.context() as patched:
        patched.setattr(files, "MAX_JOB_FILES", 1)
        line = desk.fails("undo", over.uri, exit_code=3)
    assert "own files: `s3commit undo JOB --leave-removed`, or leave_removed=True" in line
    done = desk.run("undo", over.uri)
    assert "restored: 2 files, 8 B, 8 rows\n" in done.stdout
    assert sorted(desk.world.visible().values()) == [b"0 a0", b"1 a0"]


@pytest.mark.parametrize("foreign", [{}, {"sales/foreign.csv": b"x"}])
def test_in_python_a_dry_run_says_the_same(of_python: Desk, foreign: dict[str, bytes]) -> None:
    """Where a file is not a job's, the number of rows that come back is not known."""
    desk = of_python
    desk.committed_job(OTHER)
    for key, body in foreign.items():
        desk.world.store.put(BUCKET, key, body)
    desk.committed_job(conflict=Conflict.REPLACE)
    before = desk.world.all_keys()
    would = s3commit.undo(SALES, JOB, dry_run=True)
    back = 2 + len(foreign)
    assert (would, desk.world.all_keys()) == (
        CommitResult(
            SALES,
            files=back,
            rows=0 if foreign else 8,
            bytes=8 + len(foreign),
            replaced=2,
            dry_run=True,
        ),
        before,
    )
    done = s3commit.undo(SALES, JOB)
    assert done.manifest in {f"s3://{BUCKET}/{key}" for key in desk.world.all_keys()}
    assert replace(done, job_id="", manifest="", dry_run=True) == would
    with pytest.raises(JobRefusedError, match="was undone by job"):
        s3commit.undo(SALES, JOB, dry_run=True)


def test_a_job_that_ends_during_the_look_is_not_taken_for_a_deletion_by_hand(desk: Desk) -> None:
    """It removes the job's files between the listing of the jobs and that of the files."""
    said = set[str]()
    for point in itertools.count(1):
        world = World(versioned=True)
        desk = Desk(world)
        desk.committed_job()
        world.clock.advance(60)
        replace_all = partial(desk.committed_job, OTHER, conflict=Conflict.REPLACE)
        world.plan.run_before(None, replace_all, nth=point)
        world.plan.forget_calls()
        told = desk.run_any("undo", job_directory(JOB).uri, "--dry-run").output
        if not world.plan.fired:
            break
        said |= {*re.findall(r"\[(\w+)\]", told)}
    assert said == {"NOTHING_TO_UNDO"}


def test_log_says_which_undo_has_undone_a_job(desk: Desk) -> None:
    desk.committed_job(idempotency_key=key_digest("today"))
    desk.world.clock.advance(60)
    desk.run("undo", job_directory(JOB).uri)
    by = {one["jobId"]: one["undoneBy"] for one in desk.json("log", SALES)["jobs"]}
    assert by == {JOB: UNDO, UNDO: None}
    (keyed,) = desk.json("log", SALES, "--key", "today")["jobs"]
    assert (keyed["jobId"], keyed["undoneBy"]) == (JOB, UNDO)  # the undo has no key


def test_i12_a_client_that_puts_its_document_again_has_undone_nothing(desk: Desk) -> None:
    desk.committed_job(JOB)
    desk.world.clock.advance(60)
    later = desk.committed_job(OTHER)
    document = json.loads(desk.world.store.get(BUCKET, later.job, max_bytes=2**16).body)
    again = {**document, "conflict": "replace", "undoes": JOB}
    desk.world.store.put(BUCKET, later.job, json.dumps(again).encode())
    shown = desk.shown(OTHER)
    assert (shown["conflict"], shown["undoes"]) == ("replace", None)  # it is read
    jobs = desk.json("log", SALES)["jobs"]
    rows = [(one["jobId"], one["undoes"], one["undoneBy"]) for one in jobs]
    assert rows == [(JOB, None, None), (OTHER, None, None)]


def test_log_ls_show_and_fsck_know_it(desk: Desk) -> None:
    desk.committed_job(OTHER)
    over = desk.committed_job(conflict=Conflict.REPLACE)
    asked = desk.shown()
    undo = f"s3commit undo {JOB} --table {TABLE} --dry-run"
    assert f"if it wrote the wrong data: {undo}" in asked["next"]
    desk.run("undo", over.uri)
    jobs = desk.json("log", SALES)["jobs"]
    rows = [(one["jobId"], one["undoes"], one["replaced"], one["gone"]) for one in jobs]
    assert rows == [(OTHER, None, 0, 2), (JOB, None, 2, 2), (UNDO, JOB, 2, 0)]
    assert desk.shown(UNDO)["undoes"] == JOB
    assert desk.json("ls", SALES)["jobs"][-1]["undoes"] == JOB
    found = desk.json("fsck", SALES)
    assert (found["sound"], found["files"], found["replacedFiles"]) == (True, 2, 4)


def test_fsck_takes_no_file_for_undone_that_another_job_wrote(desk: Desk) -> None:
    kept = desk.committed_job(OTHER)
    desk.committed_job()
    desk.run("undo", JOB, "--table", TABLE)
    lost = next(key for key in desk.world.visible() if OTHER in key)
    desk.world.store.delete(kept.bucket, lost)
    found = desk.json("fsck", SALES, exit_code=1)
    assert [one["key"] for one in found["findings"]] == [lost]


@pytest.mark.parametrize("state", ["open_job", "aborted_job", "requested_job"])
def test_a_job_that_is_not_committed_is_refused(desk: Desk, state: str) -> None:
    directory = getattr(desk, state)()
    before = desk.world.all_keys()
    for typed in ([JOB, "--table", TABLE], [directory.uri]):
        line = desk.fails("undo", *typed, exit_code=3)
        assert "nothing was changed" in line
    assert desk.world.all_keys() == before


def test_a_job_that_never_was_is_refused(desk: Desk) -> None:
    line = desk.fails("undo", JOB, "--destination", SALES, exit_code=3)
    assert f"job {JOB} is not committed at {SALES}" in line


@pytest.mark.parametrize("day", [1, 2])
@pytest.mark.parametrize("own", ["append", "partitions"])
def test_a_dead_drivers_job_comes_after_an_undo(desk: Desk, own: str, day: int) -> None:
    """It brings nothing back, so the list of what it has undone says where it was."""
    undone, dead = job_directory(OTHER), job_directory(JOB)
    desk.world.commit(undone, files={f"dt={day}/part-{OTHER}.csv": b"1"})
    desk.world.clock.advance(60)
    removes = {"conflict": Conflict.REPLACE, "scope": Scope.PARTITION, "partition_by": ("dt",)}
    desk.world.open(dead, **(removes if own == "partitions" else {}))
    desk.world.attempt(dead, "0", files={f"dt=1/part-{JOB}.csv": b"1"})
    desk.run("undo", undone.uri)
    words = ["commit", dead.uri, "--tasks", "1", "--dry-run"]
    if day == 1:
        assert f"{UNDO} at {SALES} (undid a job" in desk.fails(*words, exit_code=3)
    else:
        desk.run(*words)
