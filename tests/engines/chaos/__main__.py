"""Chaos on the real wiring: ``make chaos ARGS="--seed 7 --jobs 200 --minutes 30"``.

Runs seed after seed until the time is up (without ``--minutes``: one), each in a process of its
own. Says the faults by kind and the jobs by outcome. A seed that fails prints what was done to
whom. What the adversary does is the seed's; when it meets whom is the machine's, so that a seed
run again puts the same pressure on the same jobs, and need not fail again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.engines.chaos.world import World

JOBS = 40
JOBS_A_SECOND = 5.0  # that begin
KEPT_LINES = 400  # of a failing seed's trace, unless a file takes all of it


def main() -> int:
    """Parse, run, print; 1 if something does not hold."""
    parser = argparse.ArgumentParser(prog="make chaos ARGS=…", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"in a run ({JOBS})")
    parser.add_argument("--minutes", type=float, help="begin new seeds for so long; else one")
    parser.add_argument("--trace", type=Path, help="write the whole trace there")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return run_one(arguments)
    return run_all(arguments)


def run_all(arguments: argparse.Namespace) -> int:
    """Seed after seed."""
    until = time.monotonic() + 60 * (arguments.minutes or 0)
    faults: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    seed, runs, failed = arguments.seed, 0, 0
    while not runs or time.monotonic() < until:
        command = [sys.executable, "-m", "tests.engines.chaos", "--child"]
        command += ["--seed", str(seed), "--jobs", str(arguments.jobs)]
        if arguments.trace:
            command += ["--trace", str(arguments.trace)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        *lines, last = done.stdout.splitlines() or [""]
        print("\n".join(lines), flush=True)
        failed += done.returncode != 0
        if last.startswith("{"):
            report = json.loads(last)
            faults.update(report["faults"])
            outcomes.update(report["outcomes"])
        runs, seed = runs + 1, seed + 1
    print(f"{sum(faults.values())} faults: {listed(faults)}")
    print(f"{sum(outcomes.values())} jobs: {listed(outcomes)}")
    print(f"{runs} runs, {failed} failed")
    return 1 if failed else 0


def run_one(arguments: argparse.Namespace) -> int:
    """One seed; the last line is a report in JSON."""
    world = World(arguments.seed, arguments.jobs, arguments.jobs / JOBS_A_SECOND)
    noise = io.StringIO()  # what the runtime says of functions that fail
    with contextlib.redirect_stderr(noise):
        world.run()
    if arguments.trace:
        arguments.trace.write_text("\n".join(world.lines) + "\n" + noise.getvalue())
    if world.violations:
        tell(world, arguments)
    print(summary(world))
    print(json.dumps({"faults": world.adversary.done, "outcomes": world.outcomes()}))
    return 1 if world.violations else 0


def summary(world: World) -> str:
    """What one run came to, in a line."""
    took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in world.took.items())
    return (
        f"seed {world.seed}: {sum(world.outcomes().values())} jobs,"
        f" {sum(world.adversary.done.values())} faults,"
        f" {world.dead_letters} dead letters, {world.sweeps} sweeps; {took}"
    )


def tell(world: World, arguments: argparse.Namespace) -> None:
    """The trace: what concerns the jobs that are named in what does not hold, and the verdict."""
    said = " ".join(world.violations)
    ids = [(f"{job.name} ", job.directory.job_id) for job in world.jobs]
    names = [name for both in ids if any(one in said for one in both) for name in both]
    lines = [line for line in world.lines if not names or any(name in line for name in names)]
    print("\n".join(lines[-KEPT_LINES:]))
    for violation in world.violations:
        print(f"seed {world.seed}: {violation}")
    print(f'again: make chaos ARGS="--seed {arguments.seed} --jobs {arguments.jobs}"')


def listed(counts: Counter[str]) -> str:
    """Most frequent first."""
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


if __name__ == "__main__":
    sys.exit(main())
