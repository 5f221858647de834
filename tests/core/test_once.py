"""Of the jobs with one idempotency key at one destination at most one is ever committed (I11)."""

import hashlib
from contextlib import suppress
from itertools import count, product
from typing import Any

import pytest

from s3commit.core.documents.commit_manifest import CommitHeader, commit_lines
from s3commit.core.documents.job_json import Conditions
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import dump
from s3commit.core.jobs import idempotency
from s3commit.core.model.checks import Check
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import NeedsOperatorError
from s3commit.core.model.locks import key_digest
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.record import ReplacedFacts
from s3commit.core.ports.bundle import Ports
from tests.core.enumerated import every_point
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash, FaultPlan

KEY = "orders 2026-11-21"
FIRST, SECOND = job_directory(JOB), job_directory(OTHER_JOB)
HINT = FIRST.once(key_digest(KEY))
NOTE = FIRST.key_note(key_digest(KEY))


def ask(world: World, directory: JobDirectory, key: str | None = KEY, **spec: Any) -> None:
    files = {f"part-{directory.job_id}.csv": directory.job_id.encode()}
    world.ask(directory, files=files, idempotency_key=key, **spec)


COMMITTED = (Outcome.COMMITTED, "")
ALREADY = (Outcome.ABORTED, "ALREADY_COMMITTED")


def forget(world: World) -> None:
    """The ledger is lost; what runs from now on has an empty one."""
    world.ledger.lose()
    world.ports = Ports(world.store, world.ledger, world.clock)


def check_one_of(world: World, *directories: JobDirectory) -> JobDirectory:
    """One job is committed, the others have added nothing and know which (I2, I4, I11)."""
    winners = [directory for directory in directories if world.ended(directory) == COMMITTED]
    assert len(winners) == 1
    assert list(world.visible().values()) == [winners[0].job_id.encode()]
    for directory in directories:
        if directory is not winners[0]:
            assert world.ended(directory) == ALREADY
            assert world.result(directory).already_committed
            error = world.failure(directory)
            assert winners[0].job_id in error.message
        has_list = world.store.head(BUCKET, directory.commits) is not None
        assert has_list == (directory is winners[0])
    assert world.open_uploads() == []
    root = hashlib.sha256(b"").hexdigest()
    note = {"version": 1, "jobId": winners[0].job_id, "files": 1, "rows": 36, "directories": root}
    assert world.json(NOTE) == world.json(HINT) == note
    return winners[0]


# One after the other


@pytest.mark.parametrize("conflict", Conflict)
def test_i11_a_job_that_is_run_again_adds_nothing_and_names_the_one_that_did(
    conflict: Conflict,
) -> None:
    """It is told so before its own conditions are judged."""
    world = World()
    ask(world, FIRST, conflict=conflict)
    unmet = Conditions(min_rows=10**9, checks=(Check("n", nulls=0),))
    ask(world, SECOND, conflict=conflict, conditions=unmet)
    world.run(FIRST)
    marker = world.json("sales/_SUCCESS")
    world.run(SECOND)
    assert check_one_of(world, FIRST, SECOND) is FIRST
    assert world.json("sales/_SUCCESS") == marker


@pytest.mark.parametrize(
    ("key", "prefix"),
    [("another", "sales/"), (None, "sales/"), *((KEY, at) for at in ("sales2/", "sales/t/", "s/"))],
)
def test_i11_another_key_or_destination_is_another_job(key: str | None, prefix: str) -> None:
    world, other = World(), job_directory(OTHER_JOB, prefix)
    ask(world, FIRST)
    ask(world, other, key=key)
    for directory in (FIRST, other):
        world.run(directory)
        assert world.ended(directory) == COMMITTED


@pytest.mark.parametrize("key", ["x" * 1024, "語" * 1024, '"\\\n\x01' * 256, "a/../b", " "])
def test_i11_a_key_is_any_text(key: str) -> None:
    world = World()
    for directory in (FIRST, SECOND):
        ask(world, directory, key=key)
        world.run(directory)
    assert [world.ended(directory) for directory in (FIRST, SECOND)] == [COMMITTED, ALREADY]


# A key that nobody has got


@pytest.mark.parametrize("how", ["refused", "rolled back", "rolled back, and the ledger is lost"])
def test_i11_the_key_of_a_job_that_was_not_committed_is_free(how: str) -> None:
    world = World()
    ask(world, FIRST, conditions=Conditions(min_rows=10**9 if how == "refused" else 0))
    ask(world, SECOND)
    world.lose_after_decision(f"sales/part-{JOB}", slice(1))
    world.run(FIRST)
    undone = (Outcome.ROLLED_BACK, "UPLOADS_LOST")
    refused = (Outcome.ABORTED, "CONDITION_FAILED")
    assert world.ended(FIRST) == (refused if how == "refused" else undone)
    if "lost" in how:
        forget(world)
    world.run(SECOND)
    assert world.ended(SECOND) == COMMITTED
    assert world.json(NOTE)["jobId"] == OTHER_JOB
    assert list(world.visible().values()) == [OTHER_JOB.encode()]


# The notes


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", dump({"version": 1, "jobId": "../x"})])
def test_i11_a_note_of_the_pipelines_that_is_spoilt_stops_the_job(body: bytes) -> None:
    world = World()
    world.store.put(BUCKET, NOTE, body)
    ask(world, FIRST)
    with pytest.raises(NeedsOperatorError, match=NOTE):
        world.run(FIRST)
    assert world.visible() == {}
    world.store.delete(BUCKET, NOTE)
    world.run(FIRST, "execution-2")
    assert world.ended(FIRST) == COMMITTED


def test_i11_a_note_that_was_archived_is_restored_and_not_deleted() -> None:
    """As by a lifecycle rule: without it the data would be added twice."""
    world = World()
    ask(world, FIRST)
    world.run(FIRST)
    forget(world)
    world.heal()
    world.ledger.free_key(FIRST.destination, key_digest(KEY), JOB)  # its time is over
    world.store.archive(BUCKET, NOTE)
    ask(world, SECOND)
    world.run(SECOND)
    assert world.ended(SECOND) == (Outcome.ABORTED, "ARCHIVED")
    assert list(world.visible().values()) == [JOB.encode()]


def test_i12_the_hint_for_clients_is_never_believed_by_the_pipeline() -> None:
    world = World()
    forged = dump({"version": 1, "jobId": OTHER_JOB, "files": 1, "rows": 36})
    world.store.put(BUCKET, HINT, forged)
    ask(world, FIRST)
    world.run(FIRST)
    assert world.ended(FIRST) == COMMITTED
    assert world.json(HINT)["jobId"] == JOB


# Races


def test_i11_whenever_the_first_one_dies_one_of_two_is_committed() -> None:
    """The second one waits while the first may be decided; then the first is continued."""

    def check(point: int) -> FaultPlan:
        plan = FaultPlan().crash_after(nth=point)
        world = World(plan=plan)
        ask(world, FIRST)
        ask(world, SECOND)
        with suppress(Crash):
            world.run(FIRST)
        world.ports = Ports(world.store, world.ledger, world.clock)
        waits = count(1)

        def pause() -> None:
            if next(waits) == 3:
                world.run(FIRST, "execution-2")

        run_execution(world.ports, SECOND, pause=pause)
        world.run(FIRST, "execution-3")
        check_one_of(world, FIRST, SECOND)
        return plan

    every_point(check, least=30)


# A ledger that forgets


@pytest.mark.parametrize("retained", [True, False], ids=["documents kept", "documents gone"])
def test_i11_a_key_outlives_the_ledger_and_the_jobs_documents(retained: bool) -> None:
    world = World()
    ask(world, FIRST)
    world.run(FIRST)
    forget(world)
    if not retained:
        for key in (*world.all_keys(FIRST.prefix), FIRST.decision, FIRST.commits, HINT):
            world.store.delete(BUCKET, key)
    ask(world, SECOND)
    world.run(SECOND)
    assert world.ended(SECOND) == ALREADY
    assert list(world.visible().values()) == [JOB.encode()]


@pytest.mark.parametrize("kept", ["ledger", "note", "both"])
@pytest.mark.parametrize("files", [0, 1, 3])
@pytest.mark.parametrize("left", [0, 1, 3])
@pytest.mark.parametrize("others", [0, 1, 20, "appended", "replaced", "copied"])
@pytest.mark.parametrize("listed", [False, True], ids=["no list", "list"])
def test_i11_a_key_is_forgotten_with_all_that_its_job_has_left(
    monkeypatch: pytest.MonkeyPatch,
    kept: str,
    files: int,
    left: int,
    others: int | str,
    listed: bool,
) -> None:
    """As after ``DROP TABLE``, or ``TRUNCATE TABLE`` of partitions, which leaves the list of files.

    A success would rest on a memory of data, and not on data. Where a later job may have removed
    the files, the data was committed.
    """
    monkeypatch.setattr(idempotency, "LOOKED_AT", 20)
    world = World()

    def write(directory: JobDirectory) -> list[str]:
        names = [f"part-{number}-{directory.job_id}.csv" for number in range(files)]
        world.ask(directory, files=dict.fromkeys(names, b"x"), idempotency_key=KEY)
        world.run(directory)
        return names

    names = write(FIRST)
    if kept == "note":
        forget(world)
    gone = [key for key in world.all_keys("sales/") if key not in world.visible()]
    gone += [f"sales/{name}" for name in names[left:]]
    gone += [] if kept != "ledger" else [NOTE]
    gone = [key for key in gone if key not in {FIRST.commits, HINT} or not listed]
    for key in gone:
        world.store.delete(BUCKET, key)
    if isinstance(others, int):
        for number in range(others):
            world.store.put(BUCKET, f"sales/other-{number:02d}.csv", b"y")
    else:  # by a job that may have had the rows from there, or not
        replaced = None if others == "appended" else ReplacedFacts("0" * 64, 1, 1)
        undoes = JOB if others == "copied" else ""
        by = job_directory("0b6f6f0e-0000-4000-8000-000000000004")
        counts = (FIRST.destination.uri, "2026-11-21T22:00:00Z", 1, 1, None)
        header = CommitHeader(by.job_id, *counts, replaced=replaced, undoes=undoes)
        world.store.put(BUCKET, by.commits, b"".join(commit_lines(header, [])))
        world.store.put(BUCKET, f"sales/part-0-{by.job_id}.csv", b"y")
    left = min(left, files)
    hinted = idempotency.hinted_job(world.store, FIRST.destination, KEY)
    assert hinted == (FIRST if listed and (left or not files) else None)
    write(SECOND)
    may_be_elsewhere = files > 0 and not left and others not in {0, "appended"}
    if listed and (left or not files or others in {"replaced", "copied"}):
        wanted = ALREADY
    elif others == 20 or 0 < left < files or may_be_elsewhere:
        wanted = (Outcome.ABORTED, "KEY_TAKEN")
    else:
        wanted = ALREADY if left else COMMITTED
    assert world.ended(SECOND) == wanted
    if wanted is COMMITTED:
        third = job_directory("0b6f6f0e-0000-4000-8000-000000000003")
        write(third)
        assert world.ended(third) == ALREADY
        assert world.failure(third).message.startswith(f"job {OTHER_JOB} ")


# A job's data: its rows, None where they are not counted, and its partitions; no files without any.
PARTITIONS = [("",), ("dt=a/",), ("dt=b/",), ("dt=a/", "dt=b/")]
DATA = [*product((None, 0, 9), PARTITIONS), (0, ())]


@pytest.mark.parametrize("second", DATA, ids=str)
@pytest.mark.parametrize("first", DATA, ids=str)
def test_i11_a_key_that_was_used_for_other_data_is_a_failure_and_no_success(
    first: tuple[int | None, tuple[str, ...]], second: tuple[int | None, tuple[str, ...]]
) -> None:
    """Otherwise a key that is still set would lose the rows of the next statement."""
    counts = {first[0], second[0]}
    has_files = bool(first[1]) == bool(second[1])
    is_same = has_files if None in counts else len(counts) == 1
    is_same &= (first[1] or ("",)) == (second[1] or ("",))
    code = "ALREADY_COMMITTED" if is_same else "KEY_TAKEN"
    world = World()
    for directory, (rows, partitions) in ((FIRST, first), (SECOND, second)):
        world.open(directory, idempotency_key=KEY)
        files = {f"{one}part-{directory.job_id}.csv": b"some rows" for one in partitions}
        attempts = [world.attempt(directory, "t", files=files, rows=rows)] if files else []
        world.request(directory, *attempts)
        world.run(directory)
    assert world.ended(SECOND) == (Outcome.ABORTED, code)
    assert world.result(SECOND).already_committed == (code == "ALREADY_COMMITTED")
    assert all(SECOND.job_id not in key for key in world.visible())
