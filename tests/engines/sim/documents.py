"""The documents of a job say what is true when they are put: marker, list, result (I2, I9)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from s3commit.core.model.states import JobState
from tests.engines.sim.model import ENDED, SURE, Job
from tests.engines.sim.scheduler import Process, fail
from tests.fakes.bucket import Version

if TYPE_CHECKING:
    from tests.engines.sim.observer import Observer


def check_own_object(
    observer: Observer, process: Process, key: str, before: Version | None
) -> None:
    """The pipeline has put, or completed, one of the job's own objects."""
    job = observer.job_of(process, key)
    if job is None or not observer.is_own_key(process, key):
        fail("I7", f"{process.name} wrote {key}, which is not the job's")
    if process.since <= job.lost_step:
        _take_for_true(observer, job, key)  # a step of before the loss, which it does not know of
    if key == job.directory.decision:
        _check_decision_record(observer, process, job, before)
    elif key == job.directory.success:
        _check_marker(observer, process, job)
    elif key == job.directory.commits:
        _check_commits(observer, process, job)
    elif key in job.key_notes or (job.victim and key in job.victim.key_notes):
        _check_key_note(observer, process, job, key, before)
    elif key == job.directory.result:
        _check_result(observer, process, job, before)


def _take_for_true(observer: Observer, job: Job, key: str) -> None:
    """What stands in S3 from now on is what the ledger is made from."""
    if key == job.directory.decision and not job.over and not job.decided:
        said = JobState(decision_of(observer, job)["state"])
        if job.record_state is None:
            job.record_state, job.decided = said, True
            job.planned, job.replaced, job.plan = job.before_loss
    elif key == job.directory.result and not job.ended:
        job.record_state = job.lost_as


def decision_of(observer: Observer, job: Job) -> dict[str, Any]:
    """The job's decision record; empty if there is none."""
    version = observer.bucket.current(job.directory.decision)
    found: dict[str, Any] = json.loads(version.body or b"{}") if version else {}
    return found


def _check_decision_record(
    observer: Observer, process: Process, job: Job, before: Version | None
) -> None:
    """It says what the ledger has said before, and never less than it has said itself (I8).

    An end it says first: else a lost ledger could bring back a job that has given up its locks.
    """
    said = JobState(decision_of(observer, job)["state"])
    was = JobState(json.loads(before.body or b"{}")["state"]) if before else None
    if was in ENDED and said is not was:
        fail("I8", f"_decision.json of job {job.name} said {was}, and says {said}")
    if was is JobState.PUBLISHING and said not in {was, JobState.COMMITTED}:
        fail("I8", f"_decision.json of job {job.name} said {was}, and says {said}")
    if process.since <= job.lost_step:
        return
    known = {JobState.COMMITTING, job.record_state}
    if job.record_state is JobState.COMMITTED:
        known.add(JobState.PUBLISHING)
    if job.record_state is JobState.PUBLISHING and not observer.missing(job):
        known.add(JobState.COMMITTED)
    if job.record_state is JobState.ROLLING_BACK and not observer.visible_files(job):
        known.add(JobState.ROLLED_BACK)
    if not job.decided or said not in known:
        fail("I8", f"_decision.json says {said}, and job {job.name} is {job.record_state}")


def _check_marker(observer: Observer, process: Process, job: Job) -> None:
    late = process.since <= job.lost_step  # S3 says no more than COMMITTING of what is published
    known = {JobState.PUBLISHING, JobState.COMMITTING} if late else {JobState.PUBLISHING}
    if job.record_state not in known:
        fail("I9", f"_SUCCESS of job {job.name} was put while it was {job.record_state}")
    if missing := observer.missing(job):
        fail("I9", f"_SUCCESS of job {job.name} was put, and {missing} are not visible")
    if observer.bucket.current(job.directory.commits) is None:
        fail("I9", f"_SUCCESS of job {job.name} was put before its manifest in _commits/")


def _check_commits(observer: Observer, process: Process, job: Job) -> None:
    late = process.since <= job.lost_step  # S3 says no more than COMMITTING of what is published
    if job.record_state is not JobState.PUBLISHING and not job.ended and not late:
        fail("I9", f"_commits/ of job {job.name} was put while it was {job.record_state}")
    body = observer.bucket.objects[job.directory.commits][-1].body or b""
    lines = [json.loads(line) for line in body.splitlines()]
    named = sorted((line["key"], line["length"]) for line in lines[1:])
    if named != sorted((file.key, len(file.body)) for file in job.planned.values()):
        fail("I2", f"_commits/ of job {job.name} names {named}")


def _check_key_note(
    observer: Observer, process: Process, job: Job, key: str, before: Version | None
) -> None:
    """It says which job has the key, or that an undo has freed it; no late call takes that back."""
    known = {job.record_state}
    if process.since <= job.lost_step:  # its own PUBLISHING stands in S3 alone since the loss
        known.add(JobState(decision_of(observer, job)["state"]))
    if not known & SURE:
        fail("I11", f"{process.name} notes the key of job {job.name}, which may be undone")
    was = json.loads(before.body or b"{}") if before and not observer.excuses(key) else {}
    said = json.loads(observer.body(key))
    ours = job.directory.job_id
    keyless = {one for one in observer.jobs.values() if one.spec.idempotency_key is None}
    undos = {one.directory.job_id for one in keyless if one.victim is not None}
    is_hint = key.startswith(job.prefix)

    def is_free(note: dict[str, Any]) -> bool:
        """The pipeline's note says who has undone the job; the hint names the undo."""
        by_undo = is_hint and note.get("jobId") in undos and note.get("files") == 0
        return "undoneBy" in note or by_undo

    frees = job.victim is not None and is_free(said) and ours in said.values()
    takes = not frees and said["jobId"] == ours
    # Until its undo, which has freed the key by the first of its two notes, has put the second.
    victims = [one.victim for one in observer.jobs.values() if one.record_state in SURE]
    undone = {one.directory.job_id for one in victims if one is not None}
    names_undone = is_hint and was.get("jobId") in undone
    may = is_free(was) or names_undone if takes else not is_free(was)
    if said != was and (not (frees or takes) or (was and not may)):
        fail("I11", f"{process.name} notes {said} in place of {was}")


def _check_result(observer: Observer, process: Process, job: Job, before: Version | None) -> None:
    said = json.loads(observer.body(job.directory.result))
    if before is not None:
        fail("I2", f"_result.json of job {job.name} was put twice")
    job.result = said["outcome"]
    job.failure = (said["error"] or {}).get("code", "")
    job.message = (said["error"] or {}).get("message", "")
    told = decision_of(observer, job).get("state", JobState.ABORTED)
    if told != job.result and process.since > job.lost_step:
        fail("I8", f"_result.json of job {job.name} says {job.result}, and _decision.json {told}")
    if job.record_state is None or job.result != job.record_state.value:
        fail("I2", f"_result.json says {job.result}, and job {job.name} is {job.record_state}")
    marker = observer.bucket.current(job.directory.success)
    if job.result == "COMMITTED" and marker is None:
        fail("I9", f"_result.json says {job.result}, and there is no _SUCCESS")
