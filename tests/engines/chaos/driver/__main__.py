"""Kill drivers at all points, or by seed: ``make chaos-driver ARGS="--client native"``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.e2e.conftest import Deployed
from tests.engines.chaos.driver import spark
from tests.engines.chaos.driver.deployment import local_up
from tests.engines.chaos.driver.gate import How, Point, Seen
from tests.engines.chaos.driver.plans import OF_SPARK, by_seed, of_spark
from tests.engines.chaos.driver.program import Client
from tests.engines.chaos.driver.trial import Watch

SPARE = 1_000_000


@dataclass
class Tally:
    """What was run, and what went wrong."""

    begun: float = field(default_factory=time.monotonic)
    runs: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def run(self, what: str, do: Callable[[], object]) -> None:
        """Do it, and say how it went; a failure does not keep the next from its turn."""
        since = time.monotonic()
        try:
            do()
        except Exception:
            self.failures.append(what)
            traceback.print_exc()
        self.runs[" ".join(what.split(" ", 2)[:2])] += 1
        print(f"{what}: {'FAILED' if what in self.failures else 'holds'}", end="")
        print(f", {time.monotonic() - since:.0f} s", flush=True)

    def close(self) -> int:
        """The sum; the exit code."""
        minutes = (time.monotonic() - self.begun) / 60
        for name, count in self.runs.items():
            print(f"{name}: {count}")
        print(f"{self.runs.total()} kills in {minutes:.0f} minutes, {len(self.failures)} failures")
        for what in self.failures:
            print(f"failed: {what}")
        return 1 if self.failures else 0


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="make chaos-driver ARGS=…", description=__doc__)
    parser.add_argument("--points", choices=["all", "none"], default="all")
    parser.add_argument("--seeds", type=int, default=0, help="more points, chosen by seed")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--client", choices=list(Client), action="append")
    parser.add_argument("--case", action="append", help="a policy, in this order; else all")
    parser.add_argument("--most", type=int, default=0, help="so many of a policy's, spread out")
    parser.add_argument("--how", type=How, choices=list(How), action="append")
    chosen = parser.parse_args()
    tally = Tally()
    with local_up() as deployed, Watch() as watch:
        for client in chosen.client or [Client.WRITE]:
            _spark(deployed, watch, tally, chosen, Client(client))
    return tally.close()


def _spark(
    deployed: Deployed,
    watch: Watch,
    tally: Tally,
    chosen: argparse.Namespace,
    client: Client,
) -> None:
    native = client is Client.NATIVE
    cases = spark.NATIVE_CASES if native else spark.CASES
    hows = [how for how in OF_SPARK if not native or how is not How.WORKER]  # it has no workers
    with (
        tempfile.TemporaryDirectory() as work,
        spark.Drivers(deployed, SPARE, client) as drivers,
    ):
        stage = spark.Stage(deployed, watch, drivers, Path(work))
        for case in _cases(list(cases), chosen.case):
            policy = cases[case]
            requests = stage.record(policy)
            points = of_spark(case, requests) if chosen.points == "all" else []
            points = [one for one in points if one.how in hows]
            for point in _chosen(points + _seeded(chosen, requests, hows), chosen):
                do = partial(stage.kill_at, policy, point)
                tally.run(f"{client} {case} {point}", do)


def _cases(known: list[str], wanted: list[str] | None) -> list[str]:
    return known if wanted is None else [case for case in wanted if case in known]


def _chosen(points: Sequence[Point], chosen: argparse.Namespace) -> list[Point]:
    hows = chosen.how or list(How)
    found = [one for one in dict.fromkeys(points) if one.how in hows]
    step = max(1, len(found) / chosen.most) if chosen.most else 1
    return [found[int(number * step)] for number in range(int(len(found) / step))]


def _seeded(
    chosen: argparse.Namespace, requests: Sequence[Seen], hows: Sequence[How]
) -> list[Point]:
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    return [by_seed(seed, requests, hows) for seed in seeds]


if __name__ == "__main__":
    sys.exit(main())
