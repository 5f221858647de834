"""Jobs brought to each state, for the suites of the ledger."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from s3commit.core.model.destination import Destination
from s3commit.core.model.outcome import Failure
from s3commit.core.model.record import AttemptRecord, JobRecord, PlanFacts, ReplacedFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import Ledger, LostRaceError

T0 = "2026-11-21T22:00:00.000Z"
T1 = "2026-11-21T22:00:01.000Z"
NODE = "lake/table/"
KEY = "f" * 64
PLAN = PlanFacts("a" * 64, 2, 3, 12345, 99, directories="9" * 64, failed_check="column 'n'")
OTHER_PLAN = replace(PLAN, sha256="b" * 64, rows=None, partitions="d" * 64)
REPLACED = ReplacedFacts(sha256="e" * 64, files=4, bytes=9876)
OTHER_REPLACED = ReplacedFacts(sha256="f" * 64, files=0, bytes=0)

# By which states a job gets into each one; the decision is taken by `decide`.
DECIDED = [JobState.SEALED, JobState.COMMITTING]
BEFORE: dict[JobState, list[JobState]] = {
    JobState.COMMITTING: [JobState.SEALED],
    JobState.PUBLISHING: DECIDED,
    JobState.COMMITTED: [*DECIDED, JobState.PUBLISHING],
    JobState.ABORTED: [JobState.ABORTING],
    JobState.ROLLING_BACK: DECIDED,
    JobState.ROLLED_BACK: [*DECIDED, JobState.ROLLING_BACK],
}


def ref_of(job_id: str) -> str:
    return a_job(job_id).ref


def a_job(job_id: str = "job-1", **fields: object) -> JobRecord:
    record = JobRecord(
        job_id=job_id,
        destination=Destination("lake", "table/"),
        job_sha256="",
        state=JobState.OPEN,
        generation=0,
        created_at=T0,
        updated_at=T0,
        note="backfill, ticket 7",
        labels=("dag=sales", "default=", "self=7"),
    )
    return replace(record, **fields)  # type: ignore[arg-type]


def an_attempt(task: int, attempt: int = 0, job_id: str = "job-1") -> AttemptRecord:
    return AttemptRecord(
        ref=ref_of(job_id),
        task_id=f"task-{task}",
        attempt_id=f"attempt-{attempt}",
        manifest=f"table/__magic_job-{job_id}/_tasks/task-{task}/_attempt-{attempt}.pendingset",
        sha256="c" * 64,
        files=task,
        bytes=task * 1000,
        rows=None if task % 2 else task,
    )


def bring_to(
    ledger: Ledger,
    state: JobState,
    job_id: str = "job-1",
    now: str = T0,
    *,
    nodes: tuple[str, ...] = (),
    **fields: object,
) -> JobRecord:
    """A new job in ``state`` at generation 0; one that was sealed has locked the nodes."""
    record = ledger.open_job(a_job(job_id, updated_at=now, **fields))
    for target in [*BEFORE.get(state, []), state] if state is not JobState.OPEN else []:
        if target is JobState.COMMITTING:
            ledger.note(record, plan=PLAN, now=now)
            record = decided(ledger, job_id, now=now)
        else:
            record = advance(ledger, record.state, target, job_id=job_id, now=now)
        if target is JobState.SEALED and nodes:
            record = locked(ledger, *nodes, job_id=job_id, now=now)
    return record


def locked(ledger: Ledger, *nodes: str, job_id: str = "job-1", now: str = T1) -> JobRecord:
    """All the nodes, locked at generation 0."""
    return ledger.lock(a_job(job_id), nodes, now=now)


def advance(
    ledger: Ledger,
    *states: JobState,
    job_id: str = "job-1",
    now: str = T1,
    failure: Failure | None = None,
) -> JobRecord:
    """The job at generation 0 from the first of the states to the next, and so on."""
    for source, target in pairwise(states):
        record = ledger.advance(a_job(job_id, state=source), target, now=now, failure=failure)
    return record


def abort(ledger: Ledger, job_id: str = "job-1") -> JobRecord:
    """The way out of SEALED that gives all locks back."""
    return advance(ledger, JobState.SEALED, JobState.ABORTING, job_id=job_id)


def decided(
    ledger: Ledger,
    job_id: str = "job-1",
    *,
    generation: int = 0,
    replaced: ReplacedFacts | None = None,
    now: str = T1,
) -> JobRecord:
    """The decision for PLAN."""
    record = a_job(job_id, generation=generation, plan=PLAN, replaced=replaced)
    return ledger.decide(record, now=now)


def lost(call: Callable[[], object]) -> JobRecord | None:
    """The error of ``call``, which has lost a race."""
    with pytest.raises(LostRaceError) as caught:
        call()
    return caught.value.found
