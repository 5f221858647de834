"""After the run nothing fails any more: what the deployed system has brings all jobs to an end.

That is the sweep, again and again, and what it starts; and at last a person's command for requests
at destinations that nothing leads the sweep to.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.states import JobState
from s3commit.core.sweep.sweep import DAY, HOUR
from tests.engines.sim.model import File, Job
from tests.engines.sim.scheduler import fail, moment
from tests.engines.sim.strangers import put_over_document

if TYPE_CHECKING:
    from tests.engines.sim.world import World

# Seconds between sweeps: the pause before a job is continued doubles, up to a day.
PAUSES = (1000, 1000, 2000, 4000, 8000, 16000, 32000, 64000, DAY, DAY, DAY, DAY)
LAST_RESORT = 8


def recover(world: World) -> None:
    """Sweep until nothing is left to do. Raises `Violation` if that never comes."""
    world.faults.rate = 0.0
    for key in world.machine.dead_letters:  # redriven
        job = world.observer.job_in(key)
        assert job is not None
        redriven = partial(world.machine.ingest, key)
        world.later(f"{job.name}:redriven", redriven, job=job.name, most=1.0)
    for number, pause in enumerate(PAUSES):
        if not _unfinished(world):
            return
        world.scheduler.seconds += pause
        if number == LAST_RESORT:
            _command(world)
        world.keepers.sweep(f"recovery{number}")
        world.scheduler.run()
    if left := _unfinished(world):
        fail("progress", f"not ended after {len(PAUSES)} sweeps: {', '.join(left)}")


def _unfinished(world: World) -> list[str]:
    jobs = [job for job in world.observer.jobs.values() if needs_help(world, job)]
    return [*(f"{job.name} ({job.record_state})" for job in jobs), *world.unsettled()]


def _command(world: World) -> None:
    """As is to hear a request at a destination where no other job has been lately."""
    world.faults.strike("commanded by hand")
    for prefix in sorted({job.prefix for job in world.observer.jobs.values()}):
        world.keepers.command(f"commit {prefix}", partial(world.keepers.commit_requested, prefix))


def _has_any(world: World, prefix: str) -> bool:
    keys = world.bucket.objects
    return any(key.startswith(prefix) and world.bucket.current(key) for key in keys)


def needs_help(world: World, job: Job) -> bool:
    """The pipeline has still to end the job, or to tidy up behind it."""
    directory, untidy = job.directory, is_untidy(world, job)
    if not _has_any(world, directory.prefix) and not untidy and job.record_state is None:
        return False
    held = holds(world, job)
    asked = world.bucket.current(directory.request) is not None
    if not asked and job.record_state is None:
        return False  # its driver has died: its uploads are the lifecycle rule's
    if _is_forgotten(world, job):
        return False
    return not job.ended or not job.result or untidy or held


def _is_forgotten(world: World, job: Job) -> bool:
    """Whether it had ended when the ledger was lost, before its decision.

    Only another job there leads the sweep to what it has left.
    """
    ended = job.reset and job.result == JobState.ABORTED.value
    return bool(ended) and world.ledger.job(job.directory.ref) is None


def holds(world: World, job: Job) -> bool:
    """Whether the job has a lock, or is listed as under way."""
    return job.directory.ref in world.ledger.holders


def is_untidy(world: World, job: Job) -> bool:
    """Whether uploads or working objects of the job are there.

    What the pipeline has put late for itself goes with the job's documents.
    """
    return (
        _has_any(world, job.directory.tasks)
        or any(file.job == job.name for file in leaks(world))
        or any(one.key == job.directory.commits for one in world.bucket.uploads.values())
    )


def leaks(world: World) -> list[File]:
    """The open uploads of jobs that somebody has to abort.

    Those of a job of which the ledger has never heard, or has heard long ago, and that asked for
    nothing are the bucket's lifecycle rule's, and it is none here.
    """
    found = (world.observer.files.get(one) for one in sorted(world.bucket.uploads))
    return [file for file in found if file is not None and not _is_left(world, file)]


def _is_left(world: World, file: File) -> bool:
    job = world.observer.jobs[file.job]
    outer = world.observer.jobs[job.outer] if job.nested else job  # its id is that one's first
    asked = world.bucket.current(outer.directory.request) is not None
    never_heard = outer.record_state is None and not asked
    return (
        never_heard
        or outer.expired
        or job.expired
        or any(_is_forgotten(world, one) for one in (job, outer))
    )


def settle(world: World) -> None:
    """Long after: a check has nothing to say, and documents go when they were kept long enough."""
    prefixes = sorted({job.prefix for job in world.observer.jobs.values()})
    for prefix in prefixes:
        body = partial(world.keepers.check, prefix)
        check = world.scheduler.spawn(f"check {prefix}", body, role="fsck", job="")
        world.scheduler.run()
        findings = check.result.findings if check.result else ()
        # Of jobs that were published within seconds of each other it may mistake the order (A7).
        replaced = {key for job in world.observer.jobs.values() for key in job.replaced}
        known = world.foreign.keys() | replaced
        found = [one for one in findings if one.key not in known]
        if (check.error or found) and not world.is_written_to(prefix):
            fail("fsck", f"a check of {prefix} ends with {check.error or found}")
    world.scheduler.seconds += world.keepers.limits.retention + 3 * HOUR
    for job in world.observer.jobs.values():
        if world.rng.random() < 0.5:
            put_over = partial(put_over_document, world, job)
            world.scheduler.spawn(f"{job.name}:copy", put_over, role="foreign", job=job.name)
    untidy = {
        job.name for job in world.observer.jobs.values() if job.reset and is_untidy(world, job)
    }
    world.keepers.sweep("retirement")
    world.scheduler.run()
    last = world.scheduler.seconds - world.keepers.limits.retention - 2 * HOUR
    for job in world.observer.jobs.values():
        record = world.ledger.job(job.directory.ref)
        result = world.bucket.current(job.directory.result)
        if "document" in job.sabotaged or job.name in untidy:  # their documents go another time
            continue
        if record is None or result is None:
            continue
        is_its = JobDirectory.of(record).prefix == job.directory.prefix
        if is_its and max(record.updated_at, result.modified) < moment(last):
            fail("sweep", f"documents of job {job.name} are there after their time")
