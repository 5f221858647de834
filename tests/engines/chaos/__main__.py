"""Chaos on the real wiring: ``make chaos ARGS="--seed 7 --jobs 200 --minutes 30"``.

Runs seed after seed until the time is up, each in a process of its own, and says the faults by kind
and the jobs by outcome; of a seed that fails all that has happened. What the adversary does is the
seed's; when it meets whom is the machine's, so that a seed run again need not fail again.
"""

import argparse
import contextlib
import io
import json
import subprocess
import sys
import time
from collections import Counter

from tests.engines.chaos.world import World
from tests.engines.seeds import first_seed

JOBS_A_SECOND = 5.0  # that begin


def main() -> int:
    """Parse, run, print; 1 if something does not hold."""
    parser = argparse.ArgumentParser(prog="make chaos ARGS=…", description=__doc__)
    parser.add_argument("--seed", type=int, help="the first seed; by chance if none is given")
    parser.add_argument("--jobs", type=int, default=40, help="in a run (40)")
    parser.add_argument("--minutes", type=float, default=0.0, help="for how long; else one seed")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return run_one(arguments.seed, arguments.jobs)
    until = time.monotonic() + 60 * arguments.minutes
    counts = {"faults": Counter[str](), "outcomes": Counter[str]()}
    first = seed = first_seed(arguments.seed)
    failed = 0
    while seed == first or time.monotonic() < until:
        command = [sys.executable, "-m", "tests.engines.chaos", "--child"]
        command += ["--seed", str(seed), "--jobs", str(arguments.jobs)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        print(f"seed {seed}: {done.stdout}", end="", flush=True)
        failed += done.returncode != 0
        if done.returncode == 0:
            for what, found in json.loads(done.stdout).items():
                counts[what].update(found)
        seed += 1
    for what, found in counts.items():
        print(f"{found.total()} {what}: {dict(found.most_common())}")
    print(f"{seed - first} runs, {failed} failed")
    return 1 if failed else 0


def run_one(seed: int, jobs: int) -> int:
    """One seed: a report in JSON, or what has happened and does not hold."""
    world = World(seed, jobs, jobs / JOBS_A_SECOND)
    noise = io.StringIO()  # what the runtime says of functions that fail
    with contextlib.redirect_stderr(noise):
        world.run()
    if world.violations:
        print(noise.getvalue(), *world.lines, *world.violations, sep="\n")
        return 1
    print(json.dumps({"faults": world.adversary.done, "outcomes": world.outcomes()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
