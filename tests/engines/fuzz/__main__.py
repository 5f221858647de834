"""Fuzz until the time is up: ``make fuzz ARGS="--minutes 10"``, or ``--seed 17`` once more.

Documents that are changed by chance are read, ``--jobs`` instead runs whole jobs of such documents.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from typing import Any

from tests.engines.fuzz.targets import read_mutated, run_mutated

SLOW = 5.0  # seconds; what takes longer is a finding


def main() -> int:
    """1 if something was found."""
    arguments = _parse()
    run = run_mutated if arguments.jobs else read_mutated
    if arguments.seed is not None:
        print(f"seed {arguments.seed}: {run(arguments.seed)}")
        return 0
    return _by_chance(run, arguments.first, 60 * arguments.minutes)


def _by_chance(run: Any, seed: int, seconds: float) -> int:
    started = time.monotonic()
    found = 0
    seen = Counter[str]()
    while time.monotonic() - started < seconds:
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
    told = ", ".join(f"{name} {count}" for name, count in sorted(seen.items()))
    print(f"{sum(seen.values()) + found} runs in {seconds:.0f} s, peak {peak} MB: {told}")
    print(f"{found} findings")
    return int(found > 0)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.engines.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="for how long (1)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--seed", type=int, help="run this one again")
    parser.add_argument("--jobs", action="store_true", help="whole jobs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
