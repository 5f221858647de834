"""Kill drivers at each kind of request: ``make chaos-driver ARGS="--client native"``."""

import argparse
import sys
import time
import traceback
from collections.abc import Iterator, Sequence

from tests.engines.chaos.driver.deployment import local_up
from tests.engines.chaos.driver.gate import REQUEST, THE_RESULT, How, Point, Seen
from tests.engines.chaos.driver.program import Client
from tests.engines.chaos.driver.spark import CASES, Case, Stage

DECISIVE = {"part 1", "manifest", REQUEST, THE_RESULT}
AT_ONCE = (How.BEFORE, How.AFTER)


def main() -> int:
    """Kill one after the other; 1 if one did harm."""
    parser = argparse.ArgumentParser(prog="make chaos-driver ARGS=…", description=__doc__)
    parser.add_argument("--client", type=Client, choices=list(Client), default=Client.WRITE)
    client = parser.parse_args().client
    kills, failed = 0, []
    with local_up() as deployed:
        stage = Stage(deployed, client)
        for case in CASES.values():
            for point in points(case, stage.record(case)):
                what, since = f"{client} {case.name} {point}", time.monotonic()
                kills += 1
                try:
                    stage.kill_at(case, point)
                except Exception:
                    failed.append(what)
                    traceback.print_exc()
                print(f"{what}: {time.monotonic() - since:.0f} s", flush=True)
    print(f"{kills} kills; failed: {failed}")
    return 1 if failed else 0


def points(case: Case, requests: Sequence[Seen]) -> list[Point]:
    """Where to kill; a driver takes its time, so the policies share them out."""
    if case.name == "append":
        last = _of_each_kind(requests[::-1], AT_ONCE)
        return list(dict.fromkeys((*_of_each_kind(requests, tuple(How)), *last)))
    killed = [one for one in _of_each_kind(requests, (How.AFTER,)) if one.name in DECISIVE]
    return [*killed, *(Point(REQUEST, 1, how) for how in (How.BEFORE, How.ZOMBIE))]


def _of_each_kind(requests: Sequence[Seen], hows: Sequence[How]) -> Iterator[Point]:
    """Of each kind of request the first, in each way."""
    first = {seen.name: seen.nth for seen in reversed(requests)}
    return (Point(name, nth, how) for name, nth in first.items() for how in hows)


if __name__ == "__main__":
    sys.exit(main())
