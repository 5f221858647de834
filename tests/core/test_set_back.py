"""A table that was restored to a moment of before has a job as undecided that has ended since."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3commit.core.commit.seal_job import seal_job
from s3commit.core.formats.documents import encode_result
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.decision_record import note_end
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import Conflict, Failure, JobResult, Outcome
from s3commit.core.model.record import PlanFacts
from s3commit.core.model.states import JobState
from tests.core.world import BUCKET, JOB, REF, World, job_directory

OLD = {"sales/old.csv": b"old"}
BUSY = Failure("DESTINATION_BUSY", "another job held it for too long")
ARN = f"arn:aws:states:eu-west-1:111122223333:execution:commit:{REF}"


def set_back(state: JobState, outcome: Outcome) -> World:
    """A job that counts no manifest and would replace all that is there."""
    world, directory = World(), job_directory()
    for key, body in OLD.items():
        world.store.put(BUCKET, key, body)
    world.open(directory, conflict=Conflict.REPLACE)
    world.request(directory)
    seal_job(world.ports, Ticket(JOB, BUCKET, directory.prefix, execution=ARN))
    if state is JobState.OPEN:
        world.ledger._jobs.clear()
        world.announce(directory, world.attempt(directory, "t9", files={}))
    assert world.record(directory).state is state
    now = world.clock.now()
    if outcome is Outcome.ABORTED:
        told = JobResult(JOB, outcome, BUSY, 0, 0, 0, None, now, ARN)
        world.store.put(BUCKET, directory.result, encode_result(told))
    else:
        plan = PlanFacts("a" * 64, 0, 0, 0, 0)
        ended = replace(
            world.record(directory),
            state=JobState(outcome.value),
            plan=plan,
            decided_at=now,
            finished_at=now,
        )
        note_end(world.ports, ended)
    return world


@pytest.mark.parametrize("state", [JobState.OPEN, JobState.SEALED])
@pytest.mark.parametrize("outcome", [Outcome.ABORTED, Outcome.ROLLED_BACK])
def test_i3_i5_a_job_that_was_refused_before_the_table_was_set_back_is_refused_again(
    state: JobState, outcome: Outcome
) -> None:
    world, directory = set_back(state, outcome), job_directory()
    world.run(directory, "execution-2")
    assert world.record(directory).state is JobState.ABORTED
    if outcome is Outcome.ABORTED:
        assert world.record(directory).failure == BUSY
    assert world.result(directory).outcome is Outcome.ABORTED
    assert world.visible() == OLD


def test_i12_a_result_alone_does_not_say_that_a_job_was_committed() -> None:
    """A client can write it; the decision record it can not."""
    world, directory = set_back(JobState.OPEN, Outcome.ABORTED), job_directory()
    told = JobResult(JOB, Outcome.COMMITTED, None, 0, 0, 0, None, world.clock.now(), ARN)
    world.store.put(BUCKET, directory.result, encode_result(told))
    world.run(directory, "execution-2")
    assert world.record(directory).state is JobState.COMMITTED
    assert world.visible() == {}, "decided now, as its request says"


@pytest.mark.parametrize("state", [JobState.OPEN, JobState.SEALED])
def test_i3_i5_a_job_that_was_committed_before_the_table_was_set_back_is_not_decided_again(
    state: JobState,
) -> None:
    world, directory = set_back(state, Outcome.COMMITTED), job_directory()
    for number in range(2):  # the sweep tries again
        with pytest.raises(S3CommitError, match="restored to a moment of before") as raised:
            world.run(directory, f"execution-{number}")
        assert raised.value.code == "LEDGER_SET_BACK"
    assert world.record(directory).state is state
    assert world.visible() == OLD


def test_a_jobs_first_execution_asks_for_no_result() -> None:
    """Step Functions gives its name, the job's ref, once in 90 days: nobody has ended it."""
    calls: list[dict[str, int]] = []
    for execution in (ARN, f"{ARN}-2"):
        world, directory = World(), job_directory()
        world.announce(directory, world.attempt(directory, "t0"))
        world.request(directory)
        world.plan.forget_calls()
        seal_job(world.ports, Ticket(JOB, BUCKET, directory.prefix, execution=execution))
        calls.append(world.plan.counts())
    assert calls[0]["get"] + 2 == calls[1]["get"]


def test_i2_a_committed_job_that_the_table_has_as_rolling_back_keeps_its_files() -> None:
    """The table was set back to COMMITTING, and a later job has since replaced one of the files."""
    world, directory = World(), job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    committed, lost = world.visible(), Failure("UPLOADS_LOST", "a file is gone")
    record = replace(world.record(directory), state=JobState.ROLLING_BACK, failure=lost)
    world.ledger._jobs[REF] = replace(record, finished_at=None)
    for number in range(2):  # the sweep tries again
        with pytest.raises(S3CommitError, match="restored to a moment of before") as raised:
            world.run(directory, f"execution-{number + 2}")
        assert raised.value.code == "LEDGER_SET_BACK"
    assert len(committed) == 1
    assert world.visible() == committed
