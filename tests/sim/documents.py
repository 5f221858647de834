"""The documents of a job say what is true when they are put: marker, list, result (I2, I9)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from s3commit.core.states import JobState
from s3commit.testing.bucket import Version
from tests.sim.model import Job
from tests.sim.scheduler import Process, fail

if TYPE_CHECKING:
    from tests.sim.observer import Observer


def check_own_object(
    observer: Observer, process: Process, key: str, before: Version | None
) -> None:
    """The pipeline has put, or completed, one of the job's own objects."""
    job = observer.job_of(process, key)
    if job is None or not observer.is_own_key(process, key):
        fail("I7", f"{process.name} wrote {key}, which is not the job's")
    if process.since <= job.lost_step:
        _take_for_true(job, key)  # a step of before the loss, which it does not know of
    if key == job.place.success:
        _check_marker(observer, job)
    elif key == job.place.commits:
        _check_commits(observer, job)
    elif key == job.place.result:
        _check_result(observer, process, job, before)


def _take_for_true(job: Job, key: str) -> None:
    """What stands in S3 from now on is what the ledger is made from."""
    if key == job.place.commits and not job.over and job.record_state is not JobState.PUBLISHING:
        job.settled = job.record_state is not None  # the table was set back to that
        job.record_state, job.decided = JobState.PUBLISHING, True
        job.planned, job.replaced = job.before_loss
    elif key == job.place.result and not job.ended:
        job.record_state = job.lost_as


def _check_marker(observer: Observer, job: Job) -> None:
    if job.record_state is not JobState.PUBLISHING:
        fail("I9", f"_SUCCESS of job {job.name} was put while it was {job.record_state}")
    if missing := observer.missing(job):
        fail("I9", f"_SUCCESS of job {job.name} was put, and {missing} are not visible")
    if observer.bucket.current(job.place.commits) is None:
        fail("I9", f"_SUCCESS of job {job.name} was put before its manifest in _commits/")


def _check_commits(observer: Observer, job: Job) -> None:
    if job.record_state is not JobState.PUBLISHING and not job.ended:
        fail("I9", f"_commits/ of job {job.name} was put while it was {job.record_state}")
    body = observer.bucket.objects[job.place.commits][-1].body or b""
    lines = [json.loads(line) for line in body.splitlines()]
    named = sorted((line["key"], line["length"]) for line in lines[1:])
    if named != sorted((file.key, len(file.body)) for file in job.planned.values()):
        fail("I2", f"_commits/ of job {job.name} names {named}")


def _check_result(observer: Observer, process: Process, job: Job, before: Version | None) -> None:
    said = json.loads(observer.body(job.place.result))
    if before is not None:
        fail("I2", f"result.json of job {job.name} was put twice")
    job.result = said["outcome"]
    job.failure = (said["error"] or {}).get("code", "")
    job.message = (said["error"] or {}).get("message", "")
    if job.failure == "JOB_ID_TAKEN":
        job.turned_away, job.told_step = True, process.since
        return
    if job.record_state is None or job.result != job.record_state.value:
        fail("I2", f"result.json says {job.result}, and job {job.name} is {job.record_state}")
    marker = observer.bucket.current(job.place.success)
    if job.result == "COMMITTED" and marker is None:
        fail("I9", f"result.json says {job.result}, and there is no _SUCCESS")
