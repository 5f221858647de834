"""What the simulation found, each as one interleaving of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3commit.core.commit.abort_job import abort_job
from s3commit.core.commit.begin_publish import begin_publish
from s3commit.core.commit.roll_back import roll_back
from s3commit.core.formats.manifest import encode_pendingset
from s3commit.core.formats.ticket import Ticket, UnitResult
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import Conflict, Outcome
from s3commit.core.model.pending import PendingFile, PendingSet
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.sweep.run import run_sweep
from s3commit.core.sweep.sweep import Limits, Sweep
from tests.core.lost_world import Checked
from tests.core.world import BUCKET, JOB, OTHER_JOB, REF, World, job_directory
from tests.fakes.bucket import etag_of
from tests.fakes.executions import MemoryExecutions
from tests.fakes.faults import Crash, FaultPlan
from tests.fakes.memory import MemoryLedger


def test_i9_a_late_waker_leaves_the_marker_of_the_job_that_came_after() -> None:
    """The simulation meets this order once in many thousand runs; the mutants want it for sure."""
    world, directory, other = World(), job_directory(), job_directory(OTHER_JOB)
    for one in (directory, other):
        world.request(one, world.attempt(one, "t0"))

    def meanwhile() -> None:
        world.run(directory, "execution-2")
        world.run(other)

    world.plan.run_before("get", meanwhile, where=lambda call: call.key == directory.success)
    assert world.run(directory)[-1] == "Superseded"
    assert world.json(directory.success)["jobId"] == OTHER_JOB


def test_i2_a_unit_that_nobody_counted_is_completed_before_the_job_is_published() -> None:
    """Should the Map ever swallow a worker's failure, the machine counts what it was told."""
    world, directory = World(), job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    world.plan.crash_after("decide")
    with pytest.raises(Crash):
        world.run(directory)
    record = world.record(directory)
    ticket = Ticket(JOB, BUCKET, directory.prefix, generation=record.generation).after(record)
    swallowed = replace(ticket, completed=(UnitResult(0, files=0, lost=0),))
    assert begin_publish(world.ports, swallowed).state is JobState.COMMITTING
    assert world.record(directory).state is JobState.COMMITTING


def test_i2_i8_a_replacing_job_whose_ledger_was_lost_does_not_replace_its_own_files() -> None:
    world, directory = World(plan=FaultPlan().crash_after("complete_upload")), job_directory()
    world.store.put(BUCKET, "sales/old.parquet", b"old")
    world.open(directory, conflict=Conflict.REPLACE)
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(2)])
    with pytest.raises(Crash):
        world.run(directory)
    world.ledger = MemoryLedger()
    world.ports = Ports(world.store, world.ledger, world.clock)
    assert world.run(directory, "execution-2")[-1] == "TidyUp"
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert sorted(world.visible().values()) == [b"t0 a0", b"t1 a0"]


def test_i2_a_worker_that_wakes_during_a_roll_back_finds_its_upload_aborted() -> None:
    world, directory = World(), job_directory()
    world.plan.crash_after("put", where=lambda call: call.key == directory.decision)
    world.request(directory, world.attempt(directory, "t0"))
    with pytest.raises(Crash):
        world.run(directory)
    upload = next(world.store.list_uploads(BUCKET, "sales/"))
    generation = world.record(directory).generation
    rolling = world.ledger.advance(
        REF,
        source=JobState.COMMITTING,
        target=JobState.ROLLING_BACK,
        generation=generation,
        now=world.clock.now(),
    )

    def wake() -> None:
        if world.store.upload_is_open(BUCKET, upload.key, upload.upload_id):
            parts = [etag_of(b"t0 a0")]
            world.store.complete_upload(BUCKET, upload.key, upload.upload_id, parts, length=5)

    world.plan.run_after("list", wake, where=lambda call: call.key == "sales/")
    ticket = Ticket(JOB, BUCKET, directory.prefix, generation=generation).after(rolling)
    assert roll_back(world.ports, ticket).state is JobState.ROLLED_BACK
    assert world.visible() == {}


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
    failure = world.result(nested).error
    assert failure is not None and failure.code == "JOB_ID_TAKEN"
    assert world.store.upload_is_open(BUCKET, key, theirs)


@pytest.mark.parametrize("execution", ["execution-1", "execution-2"], ids=["zombie", "new"])
def test_i2_a_ledger_set_back_behind_the_commit_takes_no_file_away(execution: str) -> None:
    """Found by seed 178: a restored table says SEALED, and the manifests are tidied up."""
    world, directory = World(), job_directory()
    world.announce(directory, counted := world.attempt(directory, "t0"))
    world.request(directory, counted)
    tables: list[dict[str, JobRecord]] = []
    world.plan.run_before("decide", lambda: tables.append(dict(world.ledger._jobs)))
    world.run(directory)
    world.ledger._jobs = tables[0]
    with pytest.raises(S3CommitError, match="restored to a moment of before"):
        world.run(directory, execution)
    record = world.record(directory)
    zombie = Ticket(JOB, BUCKET, directory.prefix, generation=record.generation).after(record)
    abort_job(world.ports, zombie)
    assert world.visible() == {f"sales/part-t0-{JOB}.parquet": b"t0 a0"}
    assert world.result(directory).outcome is Outcome.COMMITTED


def test_a_decided_job_whose_execution_is_dead_is_resumed_by_the_sweep() -> None:
    """A mutant's: in the simulation a person's repair finds such a job too."""
    world, directory = World(plan=FaultPlan().crash_after("decide")), job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    with pytest.raises(Crash):
        world.run(directory)
    world.clock.advance(Limits().stuck + 1)
    executions = MemoryExecutions()
    assert run_sweep(Sweep(world.ports, executions)).started == 1
    assert list(executions.started.values()) == [directory]


def test_i8_a_decision_that_is_put_behind_a_record_in_the_empty_table_is_gone_on_with() -> None:
    """Found by seed 708: by the decision record that record looked like one of a restored table."""
    world, directory = World(), job_directory()
    desk = Checked(world)
    world.request(directory, counted := world.attempt(directory, "t0"))

    def lose_and_hear() -> None:
        desk.lose_ledger()
        world.clock.advance(1)
        world.announce(directory, counted)

    world.plan.run_before("put", lose_and_hear, where=lambda call: call.key == directory.decision)
    assert world.run(directory)[-1] == "Superseded"
    assert world.record(directory).state is JobState.OPEN
    assert [one.state for one in desk.rebuild()] == [JobState.COMMITTING]
    assert world.record(directory).locks
    assert world.run(directory, "execution-2")[-1] == "TidyUp"
    assert world.result(directory).outcome is Outcome.COMMITTED


def test_what_the_pipeline_wrote_of_a_job_that_the_ledger_forgot_goes_with_its_documents() -> None:
    """Found by seed 2144: TidyUp died between the client's scratch and the pipeline's own."""
    world, directory = World(), job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    left = directory.plan("0" * 64)
    world.store.put(BUCKET, left, b"[]")
    world.ledger._jobs.pop(REF)
    # Another job's record leads the sweep to the destination.
    other = job_directory(OTHER_JOB)
    world.clock.advance(Limits().retention + 3600)
    world.announce(other, world.attempt(other, "t0"))
    run_sweep(Sweep(world.ports, MemoryExecutions()))
    assert world.store.head(BUCKET, directory.result) is None
    assert world.all_keys(directory.pipeline_prefix) == []
