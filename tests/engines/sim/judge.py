"""The end of a run: everything is quiet, and each job has ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from s3commit.core.model.destination import Conflict
from s3commit.core.model.locks import key_digest
from s3commit.core.model.states import JobState
from tests.engines.sim.model import Job
from tests.engines.sim.order import judge_order, overtook
from tests.engines.sim.recovery import holds, leaks
from tests.engines.sim.scheduler import fail
from tests.engines.sim.undoing import judge_replay, may_refuse, undos_of

if TYPE_CHECKING:
    from tests.engines.sim.world import World

# Why a job may be refused, and when that is no mistake.
_ALWAYS = {"ABORTED_BY_CLIENT", "ABORTED_BY_OPERATOR", "DESTINATION_BUSY", "STALLED"}
_LOSSES = {"UPLOAD_GONE", "UPLOADS_LOST"}


def judge_end(world: World) -> None:
    """Raise `Violation` for what does not hold now, nor in any order of the jobs."""
    judge_each(world)
    order = judge_order(world.observer.jobs.values(), world.observer.excuses)
    judge_replay(world, order)


def judge_each(world: World) -> None:
    """Raise `Violation` for what does not hold now; needs no times of the decisions."""
    for job in world.observer.jobs.values():
        if job.record_state is None:
            continue
        if job.result and job.result != job.record_state.value:
            fail("I2", f"job {job.name} is {job.record_state}, and its result says {job.result}")
        if job.record_state is JobState.COMMITTED:
            _committed(world, job)
        else:
            _undone(world, job)
    _foreign(world)
    _markers(world)
    _once(world)
    for job in world.observer.jobs.values():
        if holds(world, job):
            fail("I6", f"job {job.name} holds locks, or is listed as under way, at the end")


def _committed(world: World, job: Job) -> None:
    if job.nested:
        fail("I12", f"job {job.name} is COMMITTED with the id of job {job.outer} further up")
    if job.hostile:
        fail("I7", f"job {job.name} named a stranger's upload, and is COMMITTED")
    replaced = _replaced(other for other in world.observer.jobs.values() if other is not job)
    for key, file in job.planned.items():
        gone = not world.observer.shows(key, file) and not world.observer.excuses(key)
        if gone and key not in replaced:
            fail("I2", f"job {job.name} is COMMITTED, and {key} is not visible")
    counted = {(file.task, file.attempt) for file in job.planned.values()}
    for file in world.observer.visible_files(job):
        if (file.task, file.attempt) not in counted:
            fail("I3", f"{file.key} of attempt {file.attempt} is visible, and was not counted")


def _undone(world: World, job: Job) -> None:
    if seen := world.observer.visible_files(job):
        fail("I2", f"job {job.name} is {job.record_state}, and {[f.key for f in seen]} are visible")
    allowed = set(_ALWAYS)
    if job.given_up:
        allowed.add("ABANDONED")
    if job.reset:
        allowed |= {*_LOSSES, "MANIFEST_MISSING"}
    if job.nested:
        allowed.add("JOB_ID_TAKEN")
    if job.sabotaged:
        allowed |= _LOSSES
    if "put over" in job.sabotaged:
        allowed.add("NAME_TAKEN")
    if job.hostile:
        allowed |= {"NOT_CONTAINED", "COUNTS_DIFFER", "NAME_NOT_UNIQUE"}
    if "manifest" in job.sabotaged:
        allowed |= {"MANIFEST_MISSING", "MANIFEST_CHANGED", "BAD_FIELD"}
    if job.spec.conflict is Conflict.FAIL:
        allowed.add("DESTINATION_NOT_EMPTY")
    if job.victim:
        allowed |= may_refuse(world.observer, job, job.victim)
    if job.spec.idempotency_key:
        allowed |= {"ALREADY_COMMITTED", "KEY_TAKEN"}
    if job.spec.conditions:
        allowed.add("CONDITION_FAILED")
    if any(overtook(job, other) for other in world.observer.everyone):
        allowed.add("OVERTAKEN")
    if job.failure not in allowed:
        fail("refusal", f"job {job.name} ended {job.failure} ({job.message}), for no reason")


def _replaced(jobs: Iterable[Job]) -> set[str]:
    """What those that are committed have removed."""
    committed = [job for job in jobs if job.record_state is JobState.COMMITTED]
    return {key for job in committed for key in job.replaced}


def _foreign(world: World) -> None:
    listed = _replaced(world.observer.jobs.values())
    for key, body in world.foreign.items():
        version = world.bucket.current(key)
        changed = version is None or version.body != body
        if key not in listed and changed and not world.observer.excuses(key):
            fail("I5", f"foreign {key} is not what it was")
    for upload_id in sorted(world.foreign_uploads):
        if upload_id not in world.bucket.uploads:
            fail("I5", f"foreign upload {upload_id} is gone")
    if left := leaks(world):
        fail("I4", f"uploads are open at the end: {[file.key for file in left]}")
    strange = set(world.bucket.uploads) - world.foreign_uploads - world.observer.known_uploads
    if strange:
        keys = sorted(world.bucket.uploads[one].key for one in strange)
        fail("I4", f"uploads of the pipeline's own are open at the end: {keys}")


def _markers(world: World) -> None:
    jobs = world.observer.jobs.values()
    for prefix in sorted({job.prefix for job in jobs}):
        here = [job for job in jobs if job.prefix == prefix]
        committed = [job for job in here if job.record_state is JobState.COMMITTED]
        if not committed:
            continue
        marker = world.bucket.current(f"{prefix}_SUCCESS")
        body = (marker.body if marker else b"") or b""
        owner = [job for job in committed if job.directory.job_id.encode() in body]
        if not owner:
            # A job above may have removed it with the files that it speaks of.
            if marker is None and f"{prefix}_SUCCESS" in _replaced(jobs):
                continue
            fail("I9", f"{prefix}_SUCCESS is of no committed job")
        gone = world.observer.missing(owner[0])
        if set(gone) - _replaced(job for job in jobs if job.prefix != prefix):
            fail("I9", f"{prefix}_SUCCESS is of job {owner[0].name}, and {gone} are not visible")


def _once(world: World) -> None:
    jobs = list(world.observer.jobs.values())
    for job in jobs:
        if undos_of(jobs, job) and _has_key(world, job):
            fail("I11", f"job {job.name} is undone, and has its key")
        if job.failure not in {"ALREADY_COMMITTED", "KEY_TAKEN"}:
            continue
        named = [
            other
            for other in jobs
            if (other.directory.job_id in job.message or (job.given_up and other.key_notes))
            and other is not job
            and other.prefix == job.prefix
        ]
        freed = [undo.ended_at for other in named for undo in undos_of(jobs, other)]
        if len(named) == 1 and any(at and at < (job.sealed_at or 0) for at in freed):
            fail("I11", f"job {job.name} was refused for a key that was free: {job.message}")
        if all(other.record_state is not JobState.COMMITTED for other in named):
            fail("I11", f"job {job.name} was told that its data is committed: {job.message}")


def _has_key(world: World, job: Job) -> bool:
    digest = key_digest(job.spec.idempotency_key or "")
    held = world.ledger.key_holder(job.directory.destination, digest)
    return held is not None and held.job_id == job.directory.job_id
