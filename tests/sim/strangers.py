"""Accidents that are no port calls: uploads that are lost, manifests that are spoiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from s3commit.core.ports import OpenUpload
from tests.sim.clients import BUCKET
from tests.sim.model import Job

if TYPE_CHECKING:
    from tests.sim.world import World


def lose_upload(world: World, job: Job) -> None:
    """A lifecycle rule, or a person, aborts an upload of the job."""
    found = list(world.pipeline.store.list_uploads(BUCKET, job.prefix))
    mine = [upload for upload in found if _owner(world, upload) == job.name]
    if mine:
        upload = world.rng.choice(mine)
        job.sabotaged.add("upload")
        world.pipeline.store.abort_upload(BUCKET, upload.key, upload.upload_id)


def spoil_manifest(world: World, job: Job) -> None:
    """Someone deletes a manifest, or writes another one over it.

    After the decision only together with an upload that it names, so that the job can not
    be finished: one whose files are all visible, and whose manifest is gone, waits for a
    person. Not with exact names, of which nothing but the manifest tells.
    """
    world.scheduler.sleep(0.001 * world.rng.randrange(20))
    world.scheduler.pause()
    if job.exact:
        return
    found = [one.key for one in world.store.list(BUCKET, job.place.tasks)]
    if job.decided:
        uploads = world.store.list_uploads(BUCKET, job.prefix)
        lost = [one for one in uploads if _counts(world, job, one)]
        found = []
        if lost:
            file = world.observer.files[world.rng.choice(lost).upload_id]
            world.store.abort_upload(BUCKET, file.key, file.upload_id)
            found = [job.place.manifest(file.task, file.attempt)]
    if found:
        job.sabotaged.add("manifest")
        key: Any = world.rng.choice(found)
        if world.rng.random() < 0.5:
            world.store.delete(BUCKET, key)
        else:
            world.store.put(BUCKET, key, b'{"version":3,"commits":[]}')


def _owner(world: World, upload: OpenUpload) -> str:
    file = world.observer.files.get(upload.upload_id)
    return file.job if file else ""


def _counts(world: World, job: Job, upload: OpenUpload) -> bool:
    file = world.observer.files.get(upload.upload_id)
    return file is not None and job.planned.get(file.key) is file
