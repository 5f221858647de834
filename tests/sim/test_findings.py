"""Interleavings that once broke a guarantee, one by one; the enumerations can't reach them."""

from dataclasses import replace

import pytest

from s3commit.core.commit.begin_publish import begin_publish
from s3commit.core.documents import plan
from s3commit.core.documents.job_json import JobSpec
from s3commit.core.documents.pendingset import PendingFile, PendingSet, encode_pendingset
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.documents.ticket import Ticket, UnitResult
from s3commit.core.jobs.record import new_record
from s3commit.core.model.destination import Conflict
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from s3commit.core.sweep.questions import run_sweep
from s3commit.core.sweep.sweep import Sweep
from tests.core.swept import LIMITS
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.executions import MemoryExecutions
from tests.fakes.faults import FaultPlan


@pytest.mark.parametrize("look", [1, 2])
def test_i9_a_late_waker_leaves_the_marker_of_the_job_that_came_after(look: int) -> None:
    """The simulation meets this order once in many thousand runs; the mutants want it for sure.

    It looks in BeginPublish and, where that is a call of its own, again in PublishSuccess.
    """
    world, directory, other = World(), job_directory(), job_directory(OTHER_JOB)
    for one in (directory, other):
        world.request(one, world.attempt(one, "t0"))

    def meanwhile() -> None:
        world.run(directory, "execution-2")
        world.run(other)

    world.plan.run_before(
        "get", meanwhile, nth=look, where=lambda one: one.key == directory.success
    )
    assert run_execution(world.ports, directory, alone=True)[-1] == "Superseded"
    assert world.json(directory.success)["jobId"] == OTHER_JOB


@pytest.mark.parametrize("counted", [[(0, 1)], [(0, 1), (1, 0)], [(0, 1), (0, 1)]])
def test_i2_a_unit_that_nobody_counted_is_completed_before_the_job_is_published(
    counted: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should the Map ever swallow a worker's failure, or say it twice: of two units of a file."""
    monkeypatch.setattr(plan, "UNIT_FILES", 1)
    world, directory = World(), job_directory()
    world.request(directory, *(world.attempt(directory, task) for task in ("t0", "t1")))
    world.plan.crash_after("decide")
    world.dies(directory)
    record = world.record(directory)
    assert record.planned.units == 2
    ticket = Ticket(JOB, BUCKET, directory.prefix, generation=record.generation).after(record)
    completed = tuple(UnitResult(unit, files=files, lost=0) for unit, files in counted)
    again = begin_publish(world.ports, replace(ticket, completed=completed))
    assert again.state is JobState.COMMITTING
    assert world.record(directory).state is JobState.COMMITTING


def test_i5_i12_a_nested_job_aborts_nothing_that_only_its_manifest_calls_its_own() -> None:
    """Found by seed 394: its names tell, so a manifest that names a stranger's upload lies."""
    world, outer, nested = World(), job_directory(), job_directory(prefix="sales/dt=1/")
    world.open(outer)
    world.open(nested)
    key = "sales/dt=1/upload.bin"
    theirs = world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
    etag = world.store.upload_part(BUCKET, key, theirs, 1, b"theirs")
    named = PendingFile(BUCKET, key, theirs, (etag,), 6, JOB, "t0", "a0")
    manifest = encode_pendingset(PendingSet(JOB, (named,), "t0", "a0"))
    world.store.put(BUCKET, nested.manifest("t0", "a0"), manifest)
    world.request(nested)
    world.run(nested)
    assert world.failure(nested).code == "JOB_ID_TAKEN"
    assert world.store.upload_is_open(BUCKET, key, theirs)


def test_a_decided_job_whose_execution_is_dead_is_resumed_by_the_sweep() -> None:
    """A mutant's: in the simulation a person's repair finds such a job too."""
    world, directory = World(plan=FaultPlan().crash_after("decide")), job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    world.dies(directory)
    world.clock.advance(LIMITS.stuck + 1)
    executions = MemoryExecutions()
    assert run_sweep(Sweep(world.ports, executions, LIMITS)).started == 1
    assert list(executions.started.values()) == [directory]


def test_i8_a_decision_that_is_put_behind_a_record_in_the_empty_table_is_gone_on_with() -> None:
    """Found by seed 708: by the empty table the job was OPEN, and by S3 it is decided."""
    world, directory = World(), job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    late = new_record(JobSpec(JOB, directory.destination), directory, world.clock.now())

    def lose() -> None:
        world.ledger.lose()
        world.ledger.open_job(late)  # by a handler that has asked the lost table

    world.plan.run_before("put", lose, where=lambda call: call.key == directory.decision)
    assert world.run(directory)[-1] == "Superseded"
    assert world.record(directory).state is JobState.OPEN
    world.heal()
    assert world.record(directory).state is JobState.COMMITTING
    assert world.ledger.holders == {directory.ref}
    assert world.run(directory, "execution-2")[-1] == "TidyUp"
    assert world.result(directory).outcome is Outcome.COMMITTED


def test_what_the_pipeline_wrote_of_a_job_that_the_ledger_forgot_goes_with_its_documents() -> None:
    """Found by seed 2144: TidyUp died between the client's scratch and the pipeline's own."""
    world, directory = World(), job_directory()
    world.commit(directory)
    left = directory.index("0" * 64)
    world.store.put(BUCKET, left, b"[]")
    world.ledger.expire()
    # Another job's record leads the sweep to the destination.
    other = job_directory(OTHER_JOB)
    world.clock.advance(LIMITS.retention + 3600)
    world.announce(other, world.attempt(other, "t0"))
    run_sweep(Sweep(world.ports, MemoryExecutions(), LIMITS))
    assert world.store.head(BUCKET, directory.result) is None
    assert world.all_keys(directory.pipeline_prefix) == []


def test_i4_a_tidy_up_that_has_lost_the_ledger_leaves_the_manifests() -> None:
    """A mutant's: without them nothing leads to the uploads that are still open."""
    world, directory = World(), job_directory()
    counted = world.attempt(directory, "t0")
    world.attempt(directory, "t0", "a1")
    world.request(directory, counted)
    world.plan.run_after(
        "list",
        world.ledger.lose,
        where=lambda call: call.arguments["prefix"] == directory.pipeline_prefix,
    )
    assert world.run(directory)[-1] == "Superseded"
    assert len(world.all_keys(directory.tasks)) == 2
    assert world.open_uploads() == ["sales/part-t0-" + JOB + ".parquet"]


def test_i3_i4_i8_a_late_manifest_of_a_job_that_the_ledger_forgot_does_not_open_it_again() -> None:
    world, directory = World(), job_directory()
    world.open(directory)
    gone = CountedAttempt("t0", "a1", directory.manifest_name("t0", "a1"), "0" * 64, 1, 5)
    world.request(directory, gone)
    world.run(directory)
    assert world.result(directory).outcome is Outcome.ABORTED
    world.ledger.expire()
    late = world.attempt(directory, "t0", "a1")
    world.announce(directory, late)
    assert world.open_uploads() == []
    assert world.record(directory).state is JobState.ABORTED


def test_i2_a_roll_back_behind_kms_removes_files_that_no_etag_proves() -> None:
    """The name is the proof (ADR 4)."""
    world, directory = World(opaque=True), job_directory()
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(3)])
    world.lose_after_decision("sales/", slice(1, 2))
    assert world.run(directory)[-2:] == ["RollBack", "TidyUp"]
    assert world.result(directory).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {}


def test_i6_a_late_waker_of_an_ended_job_locks_nothing() -> None:
    world, directory, other = World(), job_directory(), job_directory(OTHER_JOB)
    for one in (directory, other):
        world.ask(one, conflict=Conflict.REPLACE)
    world.plan.run_before("lock", lambda: world.run(directory, "execution-2"))
    assert world.run(directory, "execution-1")[-1] == "Superseded"
    assert world.ledger.holders == set()
    assert world.run(other).count("AcquireDestination") == 1
    assert world.result(other).outcome is Outcome.COMMITTED
