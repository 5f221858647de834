"""What was deleted, by whom, and whether it might be (I2, I5, I7, I10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from s3commit.core.model.states import JobState
from s3commit.core.ports.objects import ListedObject, ObjectFacts, StoredObject
from tests.engines.sim.documents import decision_of
from tests.engines.sim.keeping import may_retire
from tests.engines.sim.model import File, Job
from tests.engines.sim.scheduler import Process, fail
from tests.fakes.bucket import Version

if TYPE_CHECKING:
    from tests.engines.sim.observer import Observer

# In these alone visible files of a job go: it was decided, and is undone (I12).
ROLLING = frozenset({JobState.ROLLING_BACK, JobState.ROLLED_BACK})


def shown_by(result: Any) -> Iterator[tuple[str, str]]:
    """The objects that an answer of S3's tells of: keys, each with its etag."""
    for one in result if isinstance(result, list) else [result]:
        facts = one.facts if isinstance(one, StoredObject) else one
        if isinstance(facts, ListedObject | ObjectFacts):
            yield facts.key, facts.etag


def check_deleted(
    observer: Observer, process: Process, key: str, seen: tuple[Version, File | None]
) -> None:
    """Something visible was deleted, or covered with a delete marker."""
    if process.role in {"saboteur", "foreign"}:
        return
    process.effects["deleted"] += 1
    process.deleted_at = observer.scheduler.steps
    job = observer.job_of(process, key)
    version, file = seen
    if (key, version.etag) not in process.shown and not (job and key in _listed(process, job)):
        fail("I5", f"{process.name} deleted {key}, which is not the object that it has seen")
    if job is not None and key.startswith(job.directory.pipeline_prefix):
        _check_working(observer, process, job, key, version)
        return
    if job is None or not key.startswith(job.prefix):
        fail("I7", f"{process.name} deleted {key}, which lies outside")
    if key.startswith(job.directory.prefix):
        _check_working(observer, process, job, key, version)
    elif file is not None and file.job == job.name:
        late = process.since <= job.lost_step
        if job.record_state not in ROLLING and not late:
            fail("I2", f"own file {key} was deleted while the job was {job.record_state}")
    else:
        _check_replaced(observer, process, job, key, version)


def _check_working(
    observer: Observer, process: Process, job: Job, key: str, version: Version
) -> None:
    """Working objects go when the job has ended, documents when they were kept long enough.

    So do the decision (I8), and the list of what a committed job replaced, which an undo needs.
    """
    directory = job.directory
    if key.startswith(directory.pipeline_prefix):
        is_list = key.startswith(directory.replaced) and job.record_state is JobState.COMMITTED
        is_kept = key == directory.decision or is_list
    else:
        is_kept = not key.startswith(directory.tasks)
    if is_kept and job.retired_by != process.name:  # else what is there goes with the result
        may_retire(process, job, key, observer.bucket.current(directory.result) or version)
        job.retired_by = process.name * (key == directory.result)
    elif not job.over:
        fail("I2", f"{key} was deleted, and job {job.name} is {job.record_state}")


def _listed(process: Process, job: Job) -> dict[str, str]:
    """The decided replace list; to a step of before the loss, which it does not know of, that."""
    return job.before_loss[1] if process.since <= job.lost_step else job.replaced


def _check_replaced(
    observer: Observer, process: Process, job: Job, key: str, version: Version
) -> None:
    listed = _listed(process, job)
    if process.since <= job.lost_step and listed.get(key) == version.etag:
        return
    if listed.get(key) != version.etag:
        fail("I5", f"{process.name} deleted {key}, which no replace list names")
    if job.record_state not in {JobState.PUBLISHING, JobState.COMMITTED}:
        fail("I10", f"{key} of before was deleted while the job was {job.record_state}")
    if decision_of(observer, job)["state"] not in {JobState.PUBLISHING, JobState.COMMITTED}:
        fail("I8", f"{key} of before was deleted, and _decision.json does not say PUBLISHING")
    missing = observer.missing(job)
    if missing and job.record_state is not JobState.COMMITTED:
        fail("I10", f"{key} of before was deleted, and {missing} are not visible")
