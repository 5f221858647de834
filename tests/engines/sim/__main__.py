"""Soak: run seeds until the time is up, and say what was found.

``make soak ARGS="--minutes 10"``; ``make soak ARGS="--seed 17"`` replays one with its trace.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter

from tests.engines.sim.assumptions import WITHOUT
from tests.engines.sim.attack import AttackedWorld
from tests.engines.sim.scheduler import Violation
from tests.engines.sim.world import World


def main() -> int:
    """Parse, run, print; 1 if an invariant does not hold."""
    parser = argparse.ArgumentParser(prog="make soak ARGS=…", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this one, with its trace")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--schedules", type=int, help="how many; for ever if no time is set")
    parser.add_argument("--minutes", type=float, help="for how long")
    parser.add_argument("--without", choices=WITHOUT, help="break a promise of S3 or the ledger")
    parser.add_argument("--adversary", action="store_true", help="with a client that means harm")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a violation")
    parser.add_argument("--quiet", action="store_true", help="no trace")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets are walked in the order of hashes
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.engines.sim", *sys.argv[1:]])
    if arguments.seed is not None:
        return replay(arguments.seed, arguments)
    return soak(arguments)


def soak(arguments: argparse.Namespace) -> int:
    """Run seed after seed."""
    started = time.monotonic()
    until = started + 60 * arguments.minutes if arguments.minutes else None
    counts: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    moves: Counter[str] = Counter()
    failed = 0
    seed = arguments.first
    while True:
        if arguments.schedules is not None and seed >= arguments.first + arguments.schedules:
            break
        if until is not None and time.monotonic() >= until:
            break
        world = make(seed, arguments)
        try:
            world.run()
        except Violation as violation:
            failed += 1
            print(f"seed {seed}: {violation}", flush=True)
            if not arguments.keep_going:
                return replay(seed, arguments)
        counts["schedules"] += 1
        counts["steps"] += world.scheduler.steps
        counts["recoveries"] += world.rounds
        faults.update(world.faults.injected)
        outcomes.update(
            job.result + (f" {job.failure}" if job.failure else "")
            for job in world.observer.jobs.values()
        )
        if isinstance(world, AttackedWorld):
            moves.update(world.adversary.moves)
        seed += 1
    took = time.monotonic() - started
    report(counts, faults, outcomes, took)
    if moves:
        print(f"{sum(moves.values())} moves of adversaries: " + _listed(moves))
    print(f"violations: {failed}")
    return 1 if failed else 0


def make(seed: int, arguments: argparse.Namespace, *, trace: bool = False) -> World:
    """The world of a seed."""
    kind = AttackedWorld if arguments.adversary else World
    return kind(seed, trace=trace, **WITHOUT.get(arguments.without, {}))


def report(counts: Counter[str], faults: Counter[str], outcomes: Counter[str], took: float) -> None:
    """Print the counts."""
    rate = counts["schedules"] / took
    print(f"{counts['schedules']} schedules in {took:.1f} s, {rate:.0f} a second")
    print(f"{counts['steps']} steps, {counts['recoveries']} rounds of recovery")
    print(f"{sum(faults.values())} faults: " + _listed(faults))
    print(f"{sum(outcomes.values())} jobs: " + _listed(outcomes))


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name or '-'} {count}" for name, count in counts.most_common())


def replay(seed: int, arguments: argparse.Namespace) -> int:
    """Run one seed with its trace; the last word is what does not hold."""
    world = make(seed, arguments, trace=not arguments.quiet)
    found: Violation | None = None
    try:
        world.run()
    except Violation as violation:
        found = violation
    for job in world.observer.jobs.values():
        spec = job.spec
        print(
            f"job {job.name}: {job.directory.job_id} at {job.prefix} {spec.conflict}/{spec.scope}"
            f" key={spec.idempotency_key} "
        )
    for line in world.trace or ():
        text = (
            f"{line.seconds:10.3f} {line.number:5} {line.process:26} {line.what} -> {line.outcome}"
        )
        for job in world.observer.jobs.values():
            text = text.replace(job.directory.job_id, job.name)
        print(text)
    if found is None:
        print(f"seed {seed}: every invariant holds")
        return 0
    print(f"seed {seed}: {found}")
    more = f" --without '{arguments.without}'" if arguments.without else ""
    more += " --adversary" if arguments.adversary else ""
    print(f'replay: make soak ARGS="--seed {seed}{more}"')
    return 1


if __name__ == "__main__":
    sys.exit(main())
