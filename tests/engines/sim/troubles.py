"""What happens to jobs beside faults at calls: events, second executions, accidents, time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.engines.sim.model import Job
from tests.engines.sim.recovery import is_untidy
from tests.engines.sim.scheduler import Process
from tests.engines.sim.strangers import hide_page, lose_ledger, lose_upload, spoil_document

if TYPE_CHECKING:
    from tests.engines.sim.world import World

_JOBS_OWN = {"task", "driver"}


def add_troubles(world: World, job: Job) -> None:
    """Those of one job."""
    rng, faults = world.rng, world.faults
    while faults.chance(0.15):
        again = f"{job.directory.job_id}-again{rng.randrange(1000)}"
        world.later(f"{again}!", partial(_execute_again, world, job, again), job=job.name)
    while faults.chance(0.2):
        again = f"{job.directory.job_id}-duel{rng.randrange(1000)}"
        begin = partial(_execute_again, world, job, again)
        late = partial(world.later, f"{again}!", begin, job=job.name, most=0.05)
        _at_decision(world, job, late)
    if faults.chance(0.08):
        _sabotage(world, "upload lost", job, lose_upload)
    if faults.chance(0.15):
        _sabotage(world, "document spoiled", job, spoil_document)
    if faults.chance(0.1):
        hide = partial(hide_page, world, job)
        hidden = partial(world.later, f"{job.name}:hide", hide, job=job.name, role="saboteur")
        _at_decision(world, job, partial(hidden, most=0.01))
    if faults.chance(0.1) and not job.hostile:
        body = partial(world.clients.request_abort, job, "a person gave it up")
        world.later(f"{job.name}:abort", body, role="driver", job=job.name)
    if faults.chance(0.1):
        world.later(f"{job.name}:ttl", partial(_forget, world, job), role="ttl", job=job.name)


def _sabotage(world: World, kind: str, job: Job, deed: Callable[[World, Job], None]) -> None:
    """At any time, or right after the decision."""

    def begin(most: float | None = None) -> None:
        world.faults.strike(kind)
        body = partial(deed, world, job)
        world.later(f"{job.name}:{kind}", body, role="saboteur", job=job.name, most=most)

    if world.rng.random() < 0.6:
        _at_decision(world, job, partial(begin, 0.01))
    else:
        begin()


def _at_decision(world: World, job: Job, begin: Callable[[], object]) -> None:
    world.decisions.at_decision.setdefault(job.name, []).append(begin)


def _execute_again(world: World, job: Job, name: str) -> None:
    if world.bucket.current(job.directory.request) is not None:
        world.faults.strike("duplicate execution")
        gives_up = "a person gave it up" if world.rng.random() < 0.2 else ""
        world.machine.execute(job, name, gives_up)


def _forget(world: World, job: Job) -> None:
    """The time to live of an ended job's record: longer than any handler or step lives."""
    world.scheduler.sleep(world.rng.choice([10.0, 600.0, 6000.0]))
    world.scheduler.pause()
    roles = {other.role for other in world.scheduler.living if other.job == job.name}
    if roles & {"pipeline", "execution"} or world.keepers.at_work():
        return
    if job.ended and job.result and job.directory.ref not in world.ledger.holders:
        if is_untidy(world, job):
            return  # it outlives many sweeps
        world.faults.strike("record expired")
        job.expired = True
        world.ledger.expire(job.directory.ref)


# Events.


def announce(world: World, process: Process, key: str) -> None:
    """S3's notification of a put: once, twice, late, or lost."""
    if process.role not in {*_JOBS_OWN, "sweep"}:
        return
    jobs = world.observer.jobs.values()
    job = world.observer.jobs.get(process.job) or next(
        one for one in jobs if key == one.directory.request
    )
    if key.endswith(".pendingset"):
        world.observer.note_manifest(key)
    if key.endswith(".pendingset") or key == job.directory.job:
        _deliver(world, f"{job.name}:ingest", partial(world.machine.ingest, key), job)
    elif key == job.directory.request:
        _deliver(world, f"{job.name}:dispatch", partial(world.machine.dispatch, job), job)


def _deliver(world: World, name: str, body: Any, job: Job) -> None:
    faults, times = world.faults, 1
    if not job.expired and faults.chance(0.1):
        faults.strike("event lost")
        times = 0
    elif faults.chance(0.15):
        faults.strike("event twice")
        times = 2
    for _ in range(times):
        most = 0.5
        if faults.chance(0.2):
            faults.strike("event late")
            most = world.rng.choice([30.0, 600.0, 5000.0])
        world.later(name, body, job=job.name, most=most)


# Of all jobs together.


def add_keepers(world: World) -> None:
    """Sweeps, at times two at once, behind which time has passed; checks and commands."""
    rng, faults = world.rng, world.faults
    for number in range(rng.choice([0, 0, 1, 2])):
        passed = rng.choice([0, 1000, world.keepers.limits.abandoned + 100])
        dry = rng.random() < 0.1

        def begin(number: int = number, passed: int = passed, dry: bool = dry) -> None:
            world.scheduler.seconds += passed
            faults.strike("swept")
            world.keepers.sweep(f"sweep{number}", dry_run=dry)
            if rng.random() < 0.3:
                world.keepers.sweep(f"sweep{number}'")

        world.later(f"sweep{number}!", begin, job="", role="clock", most=_when(world))
    while rng.random() < 0.12:
        faults.strike("checked")
        name, prefix = f"fsck{rng.randrange(1000)}", rng.choice(["sales/", "sales/", "sales2/"])
        deed = world.keepers.commit_requested if rng.random() < 0.7 else world.keepers.check
        body = partial(world.keepers.command, name, partial(deed, prefix))
        world.later(f"{name}!", body, job="", role="clock", most=_when(world))
    if world.loses:
        world.later("loss", partial(lose_ledger, world), job="", role="clock", most=_when(world))


def _when(world: World) -> float:
    return world.rng.choice([0.3, 1.0, 60.0, 1000.0, 5000.0])
