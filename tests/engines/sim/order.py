"""I6: the visible files are those of one serial order of the jobs.

A job that replaces comes after those whose files it removes, and before those whose files it
leaves. Of two that replace the same, the first that is decided comes first. If these relations have
no circle, there is an order of all jobs; and a job that had ended before another one was requested
comes before it.
"""

from collections.abc import Callable, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

from s3commit.core.formats.layout import is_data
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.states import JobState
from tests.engines.sim.model import Job
from tests.engines.sim.scheduler import fail

# Requests that were made so close to each other (seconds) have any order: A7, and whole seconds.
TOGETHER = 2 * S3_CLOCKS + 1


def came_before(append: Job, job: Job) -> bool:
    """Whether the append had ended when the other job began."""
    return (
        append.ended_at is not None
        and job.sealed_at is not None
        and append.ended_at < job.sealed_at
        and append.record_state is JobState.COMMITTED
    )


def judge_order(jobs: Iterable[Job], excuses: Callable[[str], bool]) -> list[Job]:
    """The committed jobs in an order. Raises `Violation` if they have none.

    Of excused keys nothing is known.
    """
    committed = [job for job in jobs if job.record_state is JobState.COMMITTED]
    graph: TopologicalSorter[Job] = TopologicalSorter(dict.fromkeys(committed, ()))
    for before, after in _pairs(committed, excuses):
        graph.add(after, before)
    try:
        return list(graph.static_order())
    except CycleError as error:
        fail("I6", f"the jobs have no order: {' before '.join(job.name for job in error.args[1])}")


def _pairs(jobs: list[Job], excuses: Callable[[str], bool]) -> Iterator[tuple[Job, Job]]:
    for job in jobs:
        if job.appends or job.decided_at is None:
            continue
        for other in jobs:
            if other is job or other.decided_at is None:
                continue
            if other.appends and job.victim:
                if other is job.victim:
                    yield other, job
            elif other.appends:
                gone = _removed_before(jobs, job)
                reached = [
                    key
                    for key in other.planned
                    if _minds(job, key) and key not in gone and not excuses(key)
                ]
                removed = [key for key in reached if key in job.replaced]
                if removed and len(removed) < len(reached):
                    fail("I6", f"job {job.name} removes a part of job {other.name}: {removed}")
                if reached:
                    yield (other, job) if removed else (job, other)
            elif other.decided_at < job.decided_at and job.conflicts(other):
                if other.requested > job.requested + TOGETHER and not _have_one_key(job, other):
                    fail("I6", f"job {job.name} comes after {other.name}, requested later")
                yield other, job


def overtook(job: Job, other: Job) -> bool:
    """Whether the other one may be why the job came too late.

    It is committed and was requested later, at, above or below; and nobody was waited for that
    lived: the job had lost an execution, or was taken up behind the other's look, or lies below one
    that has waited for long (`WHOLE_AFTER_SECONDS`, which is little here).
    """
    where = (job.prefix, other.prefix)
    may_meet = where[0].startswith(where[1]) or where[1].startswith(where[0])
    replaces = other.intruder or not other.appends
    is_later = other.requested > job.requested and other.ended and replaces
    is_late = (job.sealed_at or 0) >= (other.looked_at or 0)
    is_below = where[0] != where[1] and where[0].startswith(where[1])
    return may_meet and is_later and (job.faltered or is_late or is_below or bool(job.reset))


def _have_one_key(job: Job, other: Job) -> bool:
    """Then they may not be under way together whatever they replace."""
    return job.spec.idempotency_key is not None and job.spec.idempotency_key == (
        other.spec.idempotency_key
    )


def _removed_before(jobs: list[Job], job: Job) -> set[str]:
    decided = job.decided_at or 0
    return {key for one in jobs if (one.decided_at or 0) < decided for key in one.replaced}


def _minds(job: Job, key: str) -> bool:
    return job.claims(key) and is_data(job.relative(key))
