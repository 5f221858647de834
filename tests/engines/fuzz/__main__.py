"""Fuzz until the time is up: ``make fuzz ARGS="--minutes 10"``, or from a seed on: ``--first 17``.

It begins at a seed by chance, and prints it. Documents that are changed by chance are read;
``--jobs`` instead runs whole jobs of such documents.
"""

import argparse
import resource
import sys
import time
from collections import Counter

from tests.engines.fuzz.targets import read_mutated, run_mutated
from tests.engines.seeds import first_seed

SLOW = 5.0  # seconds; what takes longer is a finding


def main() -> int:
    """1 if something was found."""
    parser = argparse.ArgumentParser("python -m tests.engines.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="for how long (1)")
    parser.add_argument("--first", type=int, help="the first seed; by chance if none is given")
    parser.add_argument("--jobs", action="store_true", help="whole jobs")
    arguments = parser.parse_args()
    run = run_mutated if arguments.jobs else read_mutated
    until = time.monotonic() + 60 * arguments.minutes
    first = seed = first_seed(arguments.first)
    found, seen = 0, Counter[str]()
    while time.monotonic() < until:
        begun = time.monotonic()
        try:
            seen[str(run(seed))] += 1
        except Exception as error:
            found += 1
            print(f"seed {seed}: {type(error).__name__} {error}", flush=True)
        if time.monotonic() - begun > SLOW:
            found += 1
            print(f"seed {seed}: took {time.monotonic() - begun:.1f} s", flush=True)
        seed += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{seed - first} runs, peak {peak} MB: {dict(seen)}; {found} findings")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
