"""Undos: jobs that take another one of the run back, and what holds of them (I2, I5, I6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from s3commit.core.documents.job_json import JobSpec
from s3commit.core.formats.layout import JobDirectory, is_data, owner_of, partition_of
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import InvalidInputError, JobRefusedError
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.undo.job import PlannedUndo, plan_undo
from tests.engines.sim.furnish import NESTED, add_job, may_hold
from tests.engines.sim.model import SURE, UNDER_WAY, Copy, Job
from tests.engines.sim.scheduler import fail
from tests.engines.sim.troubles import add_troubles

if TYPE_CHECKING:
    from tests.engines.sim.observer import Observer
    from tests.engines.sim.world import World

Content = set[tuple[str, str]]  # a file's directory, and the key that its data had first


def add_undos(world: World) -> None:
    """Each of a job that is committed by then, or of another undo; most where versions are kept."""
    rng = world.undoers
    for number in range(rng.choice([0, 1, 2, 3] if world.bucket.versioned else [0, 0, 1])):
        most = rng.choice([0.0, 60.0, 1000.0])
        begin = partial(_begin, world, f"undo{number}", hasty=rng.random() < 0.1)
        world.later(f"undo{number}!", begin, role="clock", job="", most=most)


def _begin(world: World, name: str, *, hasty: bool) -> None:
    """Choose a job; now and then two people do. One who is hasty does not ask how it ended."""
    rng, scheduler = world.undoers, world.scheduler
    for _ in range(200):
        jobs = list(world.observer.jobs.values())
        found = [job for job in jobs if hasty or world.bucket.current(job.directory.commits)]
        if found and rng.random() < 0.7:
            break
        scheduler.sleep(20)
    if not found:
        return
    victim = rng.choice(found * 2 + [job for job in found if job.replaced or job.victim] * 3)
    for _ in range(rng.choice([1, 1, 1, 2])):
        used = sum(1 for one in world.observer.everyone if one.victim) + 1
        job_id = f"0000007{used}-0000-4000-8000-00000000007{used}"
        outer = _outer(world, victim)
        place = victim.directory.destination
        directory = JobDirectory(place, outer.directory.job_id if outer else job_id)
        spec = JobSpec(
            directory.job_id, place, conflict=Conflict.REPLACE, undoes=victim.directory.job_id
        )
        job = Job(f"U{used}", directory, spec, victim=victim, outer=outer.name if outer else "")
        world.observer.jobs[job.name] = job
        body = partial(_undo, world, job, victim, hasty=hasty)
        world.later(f"{job.name}:driver", body, role="driver", job=job.name, most=1.0)
        if rng.random() < 0.1 and may_hold(world, job) and not world.is_written_to(NESTED):
            add_job(world, outer=job)


def _outer(world: World, victim: Job) -> Job | None:
    """Now and then the undo of a job further in has the id of one that is known."""
    rng, jobs = world.undoers, world.observer.jobs.values()
    above = [one for one in jobs if world.bucket.current(one.directory.job)]
    above = [one for one in above if victim.prefix == NESTED and may_hold(world, one)]
    return rng.choice(above) if above and rng.random() < 0.3 else None


def _undo(world: World, job: Job, victim: Job, *, hasty: bool) -> None:
    """The client's part: it looks, and has S3 copy what comes back. Then the next job comes."""
    rng = world.undoers
    planned = None
    if not hasty:
        try:
            planned = _plan(world, victim, leave_removed=rng.random() < 0.25)
        except (JobRefusedError, InvalidInputError) as refused:
            world.faults.strike(f"no undo: {refused.code}")
            if rng.random() < 0.8:
                return
    world.scheduler.sleep(rng.choice([0.0, 0.0, 5.0, 600.0]))
    tasks: list[list[str]] = [[] for _ in range(rng.choice([1, 1, 2]))]
    job.spec = replace(job.spec, leave_removed=planned is None or planned.leaves_removed)
    if planned:
        job.spec = replace(job.spec, idempotency_key="daily" if planned.key else None)
        for number, (file, version_id) in enumerate(planned.restores):
            name = f"{partition_of(file.key)}part-c-{number}-{job.spec.job_id}.parquet"
            kept = world.bucket.objects.get(file.key, ())
            found = next((one for one in kept if one.etag == file.etag), None)
            if found is None:  # it went since the look, and no version is kept
                return
            job.copies[name] = Copy(file.key, version_id, file.first_key, found.body or b"")
            tasks[number % len(tasks)].append(job.relative(name))
    add_troubles(world, job)
    if rng.random() < 0.5:
        add_job(world, job.prefix, key=victim.spec.idempotency_key)
    world.clients.driver(job, tasks, gives_up=rng.random() < 0.03, dies=rng.random() < 0.03)
    if rng.random() < 0.5:
        add_job(world, job.prefix, key=victim.spec.idempotency_key)


def _plan(world: World, victim: Job, *, leave_removed: bool) -> PlannedUndo:
    ports = S3Ports(world.ports.store, parallel=world.ports.parallel)
    plan = partial(plan_undo, ports, victim.directory, leave_removed=leave_removed)
    return world.clients.patiently(plan)


# The judge.


def undos_of(jobs: Iterable[Job], job: Job, decided: Job | None = None) -> list[Job]:
    """The undos of the job that are committed, or sure to be; so is the one that is ``decided``."""
    return [
        one for one in jobs if one.victim is job and (one.record_state in SURE or one is decided)
    ]


def effect(jobs: list[Job], job: Job, decided: Job | None = None) -> tuple[bool, bool]:
    """Of a committed job: whether its files stand, and whether what it replaced stays removed."""
    files, removal = True, True
    for undo in undos_of(jobs, job, decided):
        undone, kept = effect(jobs, undo, decided)
        if kept:
            files, removal = False, undo.leaves_removed or not undone
    return files, removal


def may_refuse(observer: Observer, job: Job, victim: Job) -> set[str]:
    """The codes with which the undo may end, by what others did."""
    jobs, found = observer.everyone, {"TOO_LARGE"}  # a call was too slow, or had too little time
    theirs = map(observer.is_below, (*victim.planned, *victim.replaced))
    if any(theirs):  # who may put there may replace, or say that it did
        found |= {"NOTHING_TO_UNDO", "REPLACED_SINCE", "FILES_CHANGED"}
    decided = job.sealed_at or 0
    if victim.ended_at is None or victim.ended_at > decided or victim.reset:
        found |= {"NOT_COMMITTED"}
    beside = [one for one in jobs if one not in {job, victim} and not one.appends and one.decided]
    if undos_of(jobs, victim) or any(victim.planned.keys() & one.replaced.keys() for one in beside):
        found |= {"NOTHING_TO_UNDO"}
    if not victim.planned and not job.copies:
        found |= {"NOTHING_TO_UNDO"}
    if beside and victim.replaced:
        found |= {"REPLACED_SINCE", "FILES_CHANGED"}
    if "put over" in victim.sabotaged:
        found |= {"FILES_CHANGED"}
    if "page" in victim.sabotaged:
        found |= {"LIST_GONE"}
    return found


def check_undo(observer: Observer, job: Job, victim: Job) -> None:
    """At its decision: it removes the other one's files, and brings back what that replaced."""
    jobs = observer.everyone
    if victim.record_state is not JobState.COMMITTED:
        fail("I12", f"job {job.name} undoes job {victim.name}, which is {victim.record_state}")
    for other in jobs:
        if other is not job and other.victim is victim and other.record_state in UNDER_WAY:
            fail("I6", f"jobs {job.name} and {other.name} undo job {victim.name} at once")
    if undos_of(jobs, victim):
        fail("I6", f"job {job.name} undoes job {victim.name}, which is undone")
    wanted = {file.first_key for file in victim.planned.values()}
    standing = {
        key: seen[1].first_key
        for key in sorted(observer.bucket.objects)
        if (seen := observer.visible(key)) and seen[1] and seen[1].first_key in wanted
    }
    odd = {key for key in standing.keys() ^ job.replaced.keys() if not observer.excuses(key)}
    if odd:
        fail("I5", f"job {job.name} undoes job {victim.name}, and differs by {sorted(odd)}")
    gone = wanted - set(standing.values())
    removed = {
        file.first_key
        for one in observer.files.values()
        if (file := one).first_key in gone and any(file.key in other.replaced for other in jobs)
    }
    if left := {key for key in gone - removed if not observer.excuses(key)}:
        fail("I2", f"job {job.name} undoes job {victim.name}, of which {sorted(left)} are missing")
    _check_restored(observer, job, victim)


def _check_restored(observer: Observer, job: Job, victim: Job) -> None:
    files = {file.key: file for file in observer.files.values()}
    wanted = Counter[tuple[str, str, bytes]]()
    copied = {file.first_key: file.body for file in job.planned.values()}
    for key, etag in victim.replaced.items():
        if not is_data(key) or observer.excuses(key):
            continue
        first = files[key].first_key if key in files else key
        owner = next((one for one in observer.everyone if first in one.planned), None)
        if owner is None or effect(observer.everyone, owner, job)[0]:
            kept = observer.bucket.objects.get(key, ())
            # It may have been copied just before it went, where no version is kept.
            body = next((one.body for one in kept if one.etag == etag), copied.get(first))
            wanted[partition_of(key), first, body or b""] += 1
    planned = job.planned.values()
    found = Counter((partition_of(file.key), file.first_key, file.body) for file in planned)
    job.leaves_removed = bool(wanted) and not found
    if found and found != wanted and not any(map(observer.excuses, victim.replaced)):
        fail("I2", f"job {job.name} brings back {sorted(found)}, and not {sorted(wanted)}")


def judge_replay(world: World, order: Iterable[Job]) -> None:
    """What is visible is what the jobs that stand leave, one after the other."""
    jobs, foreign = world.observer.everyone, {key for key in world.foreign if not owner_of(key)}
    content: Content = {(partition_of(key), key) for key in foreign if is_data(key)}
    for job in order:
        if job.victim:
            continue
        files, removal = effect(jobs, job)
        if removal and job.spec.conflict is Conflict.REPLACE:
            content -= {one for one in content if job.claims(one[1])}
        if files:
            content |= {(partition_of(key), key) for key in job.planned}
    known = foreign.union(*(job.planned for job in jobs))
    found = Content()
    for key in world.bucket.objects:
        if seen := world.observer.visible(key):
            first = seen[1].first_key if seen[1] else key
            found |= {(partition_of(key), first)} if is_data(key) and first in known else set()
    excuses = world.observer.excuses
    unsure = {one.first_key for one in world.observer.files.values() if excuses(one.key)}
    odd = {key for _, key in content ^ found if not excuses(key)} - unsure
    if odd:
        fail("I6", f"{sorted(odd)} are visible, or not, against every order of the jobs")
