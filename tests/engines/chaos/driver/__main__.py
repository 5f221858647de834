"""Kill drivers at all points: ``make chaos-driver ARGS="--client native"``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.e2e.conftest import Deployed
from tests.engines.chaos.driver import spark
from tests.engines.chaos.driver.deployment import local_up
from tests.engines.chaos.driver.gate import How
from tests.engines.chaos.driver.plans import of_spark
from tests.engines.chaos.driver.program import Client

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
    parser.add_argument("--client", type=Client, choices=list(Client), action="append")
    parser.add_argument("--case", choices=list(spark.CASES), action="append", help="a policy")
    parser.add_argument("--most", type=int, default=0, help="so many of a policy's, spread out")
    parser.add_argument("--how", type=How, choices=list(How), action="append")
    chosen = parser.parse_args()
    tally = Tally()
    with local_up() as deployed:
        for client in chosen.client or [Client.WRITE]:
            _spark(deployed, tally, chosen, client)
    return tally.close()


def _spark(
    deployed: Deployed,
    tally: Tally,
    chosen: argparse.Namespace,
    client: Client,
) -> None:
    cases = spark.NATIVE_CASES if client is Client.NATIVE else spark.CASES
    with (
        tempfile.TemporaryDirectory() as work,
        spark.Drivers(deployed, SPARE, client) as drivers,
    ):
        stage = spark.Stage(deployed, drivers, Path(work))
        for case in [case for case in chosen.case or cases if case in cases]:
            points = of_spark(case, stage.record(cases[case]))
            points = [one for one in points if one.how in (chosen.how or How)]
            if client is Client.NATIVE:  # it has no workers
                points = [one for one in points if one.how is not How.WORKER]
            step = max(1, len(points) / chosen.most) if chosen.most else 1
            for number in range(int(len(points) / step)):
                point = points[int(number * step)]
                do = partial(stage.kill_at, cases[case], point)
                tally.run(f"{client} {case} {point}", do)


if __name__ == "__main__":
    sys.exit(main())
