"""Jobs in OPEN that are silent: whose request was not heard, which are given up, and which live."""

import pytest

from s3commit.core.commit.note_arrivals import note_job
from s3commit.core.documents.request_json import AbortRequest, decode_request
from s3commit.core.model.destination import Conflict
from s3commit.core.model.outcome import Outcome
from s3commit.core.sweep import destinations, verdicts
from s3commit.core.sweep.sweep import DAY, HOUR
from tests.core.swept import LIMITS, Swept, abandoned_at, announced, sealed
from tests.core.world import BUCKET, JOB, OTHER_JOB, job_directory


def opened(world: Swept, **spec: object) -> None:
    """A job of which the ledger knows by the event of its ``_job.json`` alone."""
    world.open(job_directory(), **spec)
    note_job(world.ports, BUCKET, job_directory().job)


def test_i4_an_abandoned_job_is_aborted_by_the_request_a_driver_would_write(world: Swept) -> None:
    """The ledger knows it from its _job.json on: no manifest has ever been put."""
    directory = job_directory()
    opened(world)
    world.upload(directory, f"killed-{JOB}.parquet", b"x", task="t1", attempt="a0")
    world.later(LIMITS.abandoned + 1)
    report = world.sweep()
    assert (report.aborted, report.started) == (1, 0)
    stored = world.store.get(BUCKET, directory.request, max_bytes=1000)
    request = decode_request(stored.body, directory)
    assert isinstance(request, AbortRequest)
    assert request.abandoned
    world.later(LIMITS.stuck + 1)
    world.sweep_and_settle()  # its event was lost
    assert world.ended(directory) == (Outcome.ABORTED, "ABANDONED")
    message = world.failure(directory).message
    assert "no task has ended since 2026-11-21T22:00:00.0" in message
    assert "for 24 hours" in message
    assert "raise abandonedHours" in message
    assert world.open_uploads() == []


def test_i5_a_job_with_a_request_is_not_given_up_while_it_waits_for_days(world: Swept) -> None:
    sealed(world, job_directory())
    world.executions.running.add("execution-1")
    for _ in range(5):
        world.later(DAY)
        report = world.sweep()
        assert (report.aborted, report.started) == (0, 0)
    world.run(job_directory(), "execution-2")
    assert world.result(job_directory()).outcome is Outcome.COMMITTED


def test_i5_a_directory_that_is_not_listed_to_its_end_may_have_a_sign_of_life(
    world: Swept, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (destinations, verdicts):
        monkeypatch.setattr(module, "LISTED", 5)
    announced(world, job_directory())
    for number in range(5):
        world.attempt(job_directory(), f"t1{number}")
    world.later(LIMITS.abandoned + HOUR)
    world.attempt(job_directory(), "t99")
    assert world.sweep().aborted == 0


def test_a_job_whose_directory_was_deleted_is_given_up(world: Swept) -> None:
    directory = job_directory()
    announced(world, directory, conflict=Conflict.REPLACE)
    heard = world.record(directory).updated_at
    world.delete_documents(directory)
    world.later(LIMITS.abandoned + HOUR)
    assert world.sweep().aborted == 1
    assert f"no task has ended since {heard}, for 25 hours" in abandoned_at(world, directory)
    world.run(directory)
    assert world.result(directory).outcome is Outcome.ABORTED
    assert world.open_uploads() == []


# The event of a _job.json


def test_the_ledger_knows_a_job_from_its_first_moment(world: Swept) -> None:
    opened(world, conflict=Conflict.REPLACE)
    record = world.record(job_directory())
    assert (record.state, record.conflict) == ("OPEN", Conflict.REPLACE)
    note_job(world.ports, BUCKET, job_directory().job)  # again
    assert world.record(job_directory()) == record


@pytest.mark.parametrize("key", ["sales/_job.json", f"sales/__magic_job-{JOB}/_tasks/_job.json"])
def test_another_programs_job_json_is_no_job(world: Swept, key: str) -> None:
    world.store.put(BUCKET, key, b"{}")
    try:
        note_job(world.ports, BUCKET, key)
    except Exception as error:
        assert getattr(error, "code", "") == "BAD_KEY"
    assert world.ledger.records == []


def test_a_job_json_that_is_gone_makes_no_record(world: Swept) -> None:
    world.open(job_directory())
    world.store.delete(BUCKET, job_directory().job)
    note_job(world.ports, BUCKET, job_directory().job)
    assert world.ledger.records == []


@pytest.mark.parametrize("alive", [False, True])
def test_i11_a_silent_job_whose_key_another_has_is_ended(world: Swept, alive: bool) -> None:
    """It can end in no other way; one whose tasks still end is left for now."""
    mine, other = job_directory(), job_directory(OTHER_JOB)
    world.open(mine, idempotency_key="k")
    world.attempt(mine, "t0")
    note_job(world.ports, BUCKET, mine.job)
    world.later(LIMITS.stuck + 1)
    assert world.sweep().aborted == 0
    world.commit(other, idempotency_key="k")
    if alive:
        world.attempt(mine, "t1")
    report = world.sweep_and_settle()
    assert report.aborted == (not alive)
    if alive:
        world.later(LIMITS.stuck + 1)
        report = world.sweep()
    assert f"its idempotencyKey was committed by job {OTHER_JOB}" in report.notes[0]
    world.run(mine)
    assert world.failure(mine).code == "ALREADY_COMMITTED"
    assert world.open_uploads() == []
