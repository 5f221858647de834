"""Accidents that are no port calls: uploads and tables are lost, manifests are spoiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from s3commit.core.model.states import JobState
from tests.engines.sim.clients import BUCKET
from tests.engines.sim.documents import decision_of
from tests.engines.sim.model import Job

if TYPE_CHECKING:
    from tests.engines.sim.world import World


def lose_upload(world: World, job: Job) -> None:
    """A lifecycle rule, or a person, aborts an upload of the job."""
    found = list(world.ports.store.list_uploads(BUCKET, job.prefix))
    files = world.observer.files
    mine = [one for one in found if one.upload_id in files and files[one.upload_id].job == job.name]
    if mine:
        upload = world.rng.choice(mine)
        job.sabotaged.add("upload")
        world.ports.store.abort_upload(BUCKET, upload.key, upload.upload_id)


def spoil_document(world: World, job: Job) -> None:
    """A client deletes a manifest, or writes another one over it; later any of its documents.

    After the decision that changes nothing, so the judges learn nothing of it.
    """
    world.scheduler.sleep(0.001 * world.rng.randrange(20))
    world.scheduler.pause()
    prefix = job.directory.prefix if job.decided else job.directory.tasks
    found = [one.key for one in world.store.list(BUCKET, prefix) if one.key != job.directory.result]
    if found:
        if not job.decided:
            job.sabotaged.add("manifest")
        key: Any = world.rng.choice(found)
        if world.rng.random() < 0.5:
            world.store.delete(BUCKET, key)
        else:
            world.store.put(BUCKET, key, b'{"version":3,"commits":[]}')


def hide_page(world: World, job: Job) -> None:
    """A person with rights to everything moves one of the pipeline's lists away, and back again."""
    world.scheduler.sleep(0.001 * world.rng.randrange(20))
    kept = world.store.list(BUCKET, job.directory.pipeline_prefix)
    found = [one.key for one in kept if one.key != job.directory.decision]
    if not found or job.over or world.loses:
        return
    key = world.rng.choice(found)
    version = world.bucket.current(key)
    if version is None:
        return
    world.faults.strike("page hidden")
    job.sabotaged.add("page")
    world.bucket.remove(key, "gone")
    world.scheduler.sleep(world.rng.choice([0.02, 0.1, 100.0]))
    if not job.over:
        world.bucket.add(key, version)


def put_over_document(world: World, job: Job) -> None:
    """Someone puts a document of an old job once more, when a sweep has just seen it."""
    key = world.rng.choice([job.directory.job, job.directory.request])
    version = world.bucket.current(key)
    if version is None or version.body is None:
        return
    world.scheduler.wait_until_shown(key, version.etag)
    job.sabotaged.add("document")
    world.ports.store.put(BUCKET, key, version.body + b"\n")


# The ledger's table is lost, and an empty one takes its place: it heals itself from S3 (I8)


def lose_ledger(world: World) -> None:
    """An empty table, under everybody who uses it."""
    world.faults.strike("ledger lost")
    world.ledger.lose()
    for job in world.observer.jobs.values():
        _forget(world, job)


def _forget(world: World, job: Job) -> None:
    """What S3 alone says of the job from now on."""
    job.reset += 1
    job.lost_step = world.scheduler.steps
    job.lost_as = job.record_state or job.lost_as
    if job.decided:
        job.before_loss = job.planned, job.replaced, job.plan
    if job.result:
        return
    job.undoing_since = None
    decision = decision_of(world.observer, job)
    if decision:
        job.record_state, job.decided = JobState(decision["state"]), True
        job.planned, job.replaced, job.plan = job.before_loss
        return
    job.record_state, job.decided = None, False
    job.planned, job.replaced, job.plan = {}, {}, ""
