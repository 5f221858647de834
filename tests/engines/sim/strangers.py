"""Accidents that are no port calls: uploads that are lost, manifests that are spoiled."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from s3commit.core.model.states import JobState
from s3commit.core.ports.objects import OpenUpload
from tests.engines.sim.clients import BUCKET
from tests.engines.sim.model import Job

if TYPE_CHECKING:
    from tests.engines.sim.world import World


def lose_upload(world: World, job: Job) -> None:
    """A lifecycle rule, or a person, aborts an upload of the job."""
    found = list(world.ports.store.list_uploads(BUCKET, job.prefix))
    mine = [upload for upload in found if _owner(world, upload) == job.name]
    if mine:
        upload = world.rng.choice(mine)
        job.sabotaged.add("upload")
        world.ports.store.abort_upload(BUCKET, upload.key, upload.upload_id)


def spoil_manifest(world: World, job: Job) -> None:
    """Someone deletes a manifest, or writes another one over it.

    After the decision only together with an upload that it names, so that the job can not
    be finished: one whose files are all visible, and whose manifest is gone, waits for a
    person.
    """
    world.scheduler.sleep(0.001 * world.rng.randrange(20))
    world.scheduler.pause()
    found = [one.key for one in world.store.list(BUCKET, job.directory.tasks)]
    if job.decided:
        uploads = world.store.list_uploads(BUCKET, job.prefix)
        lost = [one for one in uploads if _counts(world, job, one)]
        found = []
        if lost:
            file = world.observer.files[world.rng.choice(lost).upload_id]
            world.store.abort_upload(BUCKET, file.key, file.upload_id)
            found = [job.directory.manifest(file.task, file.attempt)]
    if found:
        job.sabotaged.add("manifest")
        key: Any = world.rng.choice(found)
        if world.rng.random() < 0.5:
            world.store.delete(BUCKET, key)
        else:
            world.store.put(BUCKET, key, b'{"version":3,"commits":[]}')


def take_manifest(world: World, job: Job) -> None:
    """Someone takes a manifest away at the decision, and brings it back for the roll back.

    No upload of the manifest is completed, whoever has not read it yet, and one of them is lost:
    the others are open when the job is rolled back, and it names them.
    """
    named = [job.directory.manifest(file.task, file.attempt) for file in job.planned.values()]
    there = [key for key in named if world.bucket.current(key)]
    of_several = sorted({key for key in there if named.count(key) > 1})
    if world.loses or not of_several:
        return
    key = world.rng.choice(of_several)
    version = world.bucket.current(key)
    file = next(
        one for one in job.planned.values() if job.directory.manifest(one.task, one.attempt) == key
    )
    if version is None or file.upload_id not in world.bucket.uploads:
        return
    world.faults.strike("manifest taken away")
    job.sabotaged.add("upload")
    world.bucket.uploads.pop(file.upload_id)
    world.bucket.remove(key, "gone")
    world.decisions.at_roll_back[job.name] = partial(world.bucket.add, key, version)


def spoil_published(world: World, job: Job) -> None:
    """Someone meddles with a job whose files are all visible, and brings it back a while later.

    A page of its replace list goes, and a file that it names; or a manifest, and a file of it is
    made another one. Only where no other job could take what is wrong meanwhile for the truth.
    """
    rng = world.rng
    for _ in range(300):
        if job.record_state is not JobState.PUBLISHING:
            world.scheduler.sleep(0.002)
    alone = len(world.observer.jobs) == 1 and not world.loses
    if job.record_state is not JobState.PUBLISHING or not alone:
        return
    key = _lose_page(world, job) if rng.random() < 0.5 else _lose_manifest(world, job)
    if not key:
        return
    world.faults.strike("published job spoiled")
    job.sabotaged.add("published")
    lost = [(one, version) for one in (key, *job.damaged) if (version := world.bucket.current(one))]
    world.bucket.remove(key, "gone")
    for damaged, version in lost[1:]:
        world.bucket.add(damaged, replace(version, body=b"x", etag="another"))
    world.scheduler.sleep(rng.choice([0.02, 0.1, 100.0]))
    for one, version in lost:
        world.bucket.add(one, version)
    job.damaged.clear()


def _lose_page(world: World, job: Job) -> str:
    """The page that goes; a file that it names goes at once."""
    there = {key for key in job.replaced if world.bucket.current(key)}
    for page in world.store.list(BUCKET, job.directory.pages):
        body = world.store.get(BUCKET, page.key, max_bytes=page.length).body
        named = sorted(there & {json.loads(line)["key"] for line in body.splitlines()})
        if named:
            world.store.delete(BUCKET, world.rng.choice(named))
            return page.key
    return ""


def _lose_manifest(world: World, job: Job) -> str:
    """The manifest that goes; a file that it names is damaged."""
    if not job.planned or world.bucket.current(job.directory.commits):
        return ""
    file = job.planned[world.rng.choice(sorted(job.planned))]
    manifest = job.directory.manifest(file.task, file.attempt)
    if world.bucket.current(manifest):
        job.damaged.add(file.key)
        job.spoiled.add(file.key)
        return manifest
    return ""


def put_over_document(world: World, job: Job) -> None:
    """Someone puts a document of an old job once more, when a sweep has just seen it."""
    key = world.rng.choice([job.directory.job, job.directory.request])
    version = world.bucket.current(key)
    if version is None or version.body is None:
        return
    world.scheduler.wait_until_shown(key, version.etag)
    job.sabotaged.add("document")
    world.ports.store.put(BUCKET, key, version.body + b"\n")


def _owner(world: World, upload: OpenUpload) -> str:
    file = world.observer.files.get(upload.upload_id)
    return file.job if file else ""


def _counts(world: World, job: Job, upload: OpenUpload) -> bool:
    file = world.observer.files.get(upload.upload_id)
    return file is not None and job.planned.get(file.key) is file
