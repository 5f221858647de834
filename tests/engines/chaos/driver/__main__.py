"""Kill drivers at each kind of request: ``make chaos-driver ARGS="--client native"``.

Or only where one says: ``ARGS="once:_request.json:after"``, a policy, a request, and how.
"""

import argparse
import sys
import time
import traceback
from collections.abc import Iterator, Sequence

from tests.engines.chaos.driver.gate import REQUEST, THE_RESULT, How, Point
from tests.engines.chaos.driver.program import Client
from tests.engines.chaos.driver.stage import Stage
from tests.engines.chaos.driver.trial import OLD, Case

DECISIVE = {"part 1", "manifest", REQUEST, THE_RESULT}
AT_ONCE = (How.BEFORE, How.AFTER)
DYNAMIC = ("k=0/old.bin", "k=1/old.bin")
CASES = {
    case.name: case
    for case in (
        Case("append"),
        Case("directory", "overwrite", {"partitionOverwriteMode": "static"}, tuple(OLD)),
        Case("partition", "overwrite", {"partitionOverwriteMode": "dynamic"}, DYNAMIC),
        Case("once", options={"idempotencyKey": "the day"}, again=True),
    )
}
Requests = Sequence[tuple[str, int]]


def main() -> int:
    """Kill one after the other; 1 if one did harm."""
    parser = argparse.ArgumentParser(prog="make chaos-driver ARGS=…", description=__doc__)
    parser.add_argument("--client", type=Client, choices=list(Client), default=Client.WRITE)
    parser.add_argument("kills", nargs="*")
    arguments = parser.parse_args()
    stage, kills, failed = Stage(arguments.client), 0, []
    with stage.up():
        for case, point in chosen(arguments.kills) if arguments.kills else every(stage):
            what, since = f"{arguments.client} {case.name} {point}", time.monotonic()
            kills += 1
            try:
                stage.kill_at(case, point)
            except Exception:
                failed.append(what)
                traceback.print_exc()
            print(f"{what}: {time.monotonic() - since:.0f} s", flush=True)
    print(f"{kills} kills; failed: {failed}")
    return 1 if failed else 0


def chosen(kills: Sequence[str]) -> Iterator[tuple[Case, Point]]:
    for case, name, how in (one.split(":") for one in kills):
        yield CASES[case], Point(name, 1, How(how))


def every(stage: Stage) -> Iterator[tuple[Case, Point]]:
    """At the requests of a driver that nothing happens to."""
    for case in CASES.values():
        for point in points(case, stage.record(case)):
            yield case, point


def points(case: Case, requests: Requests) -> list[Point]:
    """Where to kill; a driver takes its time, so the policies share them out."""
    if case.name == "append":
        last = _of_each_kind(requests[::-1], AT_ONCE)
        return list(dict.fromkeys((*_of_each_kind(requests, tuple(How)), *last)))
    killed = [one for one in _of_each_kind(requests, (How.AFTER,)) if one.name in DECISIVE]
    return [*killed, *(Point(REQUEST, 1, how) for how in (How.BEFORE, How.ZOMBIE))]


def _of_each_kind(requests: Requests, hows: Sequence[How]) -> Iterator[Point]:
    """Of each kind of request the first, in each way."""
    first = dict(reversed(requests))
    return (Point(name, nth, how) for name, nth in first.items() for how in hows)


if __name__ == "__main__":
    sys.exit(main())
