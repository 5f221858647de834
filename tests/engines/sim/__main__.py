"""Soak: run seeds until the time is up, or one breaks an invariant; then its trace is shown.

It begins at a seed by chance, and prints it: ``make soak ARGS="--minutes 10"``, or from one on:
``--first 17``. ``make soak ARGS="--seed 17"`` replays one.
"""

import argparse
import os
import sys
import time
from collections import Counter

from tests.engines.seeds import first_seed
from tests.engines.sim.assumptions import WITHOUT
from tests.engines.sim.attack import AttackedWorld
from tests.engines.sim.scheduler import Violation
from tests.engines.sim.world import World


def main() -> int:
    """Parse, run, print; 1 if an invariant does not hold."""
    parser = argparse.ArgumentParser(prog="make soak ARGS=…", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this one, with its trace")
    parser.add_argument("--first", type=int, help="the first seed; by chance if none is given")
    parser.add_argument("--schedules", type=int, help="how many; for ever if no time is set")
    parser.add_argument("--minutes", type=float, help="for how long")
    parser.add_argument("--without", choices=WITHOUT, help="break a promise of S3 or the ledger")
    parser.add_argument("--adversary", action="store_true", help="with a client that means harm")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets are walked in the order of hashes
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.engines.sim", *sys.argv[1:]])
    if arguments.seed is not None:
        return replay(arguments.seed, arguments)
    return soak(arguments)


def soak(arguments: argparse.Namespace) -> int:
    """Run seed after seed, from the first on."""
    first = first_seed(arguments.first)
    started = time.monotonic()
    until = started + 60 * arguments.minutes if arguments.minutes else float("inf")
    counts = {what: Counter[str]() for what in ("faults", "jobs", "moves of adversaries")}
    steps = done = 0
    while done != arguments.schedules and time.monotonic() < until:
        seed, done = first + done, done + 1
        world = make(seed, arguments)
        try:
            world.run()
        except Violation:
            return replay(seed, arguments)
        steps += world.scheduler.steps
        counts["faults"].update(world.faults.injected)
        jobs = world.observer.jobs.values()
        counts["jobs"].update(f"{job.result or '-'} {job.failure}".strip() for job in jobs)
        if isinstance(world, AttackedWorld):
            counts["moves of adversaries"].update(world.adversary.moves)
    print(f"{done} schedules of {steps} steps in {time.monotonic() - started:.1f} s")
    for what, found in counts.items():
        listed = ", ".join(f"{name} {count}" for name, count in found.most_common())
        print(f"{found.total()} {what}: {listed}")
    return 0


def make(seed: int, arguments: argparse.Namespace) -> World:
    kind = AttackedWorld if arguments.adversary else World
    return kind(seed, **WITHOUT.get(arguments.without, {}))


def replay(seed: int, arguments: argparse.Namespace) -> int:
    """Run one seed with its trace; the last word is what does not hold."""
    world = make(seed, arguments)
    world.door.trace = []
    found: Violation | None = None
    try:
        world.run()
    except Violation as violation:
        found = violation
    jobs = world.observer.jobs.values()
    for job in jobs:
        print(f"job {job.name}: {job.directory.job_id} at {job.prefix} {job.spec}")
    for line in world.door.trace:
        for job in jobs:
            line = line.replace(job.directory.job_id, job.name)  # noqa: PLW2901
        print(line)
    print(f"seed {seed}: {found or 'every invariant holds'}")
    if found is None:
        return 0
    more = f" --without '{arguments.without}'" if arguments.without else ""
    more += " --adversary" if arguments.adversary else ""
    print(f'replay: make soak ARGS="--seed {seed}{more}"')
    return 1


if __name__ == "__main__":
    sys.exit(main())
