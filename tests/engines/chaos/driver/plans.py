"""Where drivers are killed: each kind of request that they make."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from tests.engines.chaos.driver.gate import REQUEST, RESULT, THE_RESULT, How, Point, Seen

POLLS = 2  # looks at a result that is not there yet: one is like the other
# Requests that change nothing, so it is the same when they arrive.
LOOKS = ("probe", RESULT, THE_RESULT, "GET ", "HEAD ")
OF_TASKS = {"start upload", "part 1", "part 2", "manifest"}
OF_SPARK = (How.BEFORE, How.AFTER, How.LATE, How.ORPHAN, How.ZOMBIE, How.WORKER)


def every(requests: Sequence[Seen], hows: Collection[How]) -> list[Point]:
    """Every request of a client that was left in peace, in each way that says something there."""
    found = [
        Point(seen.name, seen.nth, how)
        for seen in requests
        for how in hows
        if seen.name != RESULT or seen.nth <= POLLS
    ]
    return [one for one in found if _says(one)]


def _says(point: Point) -> bool:
    if point.how is How.WORKER:
        return point.name in OF_TASKS
    return point.how is not How.LATE or not point.name.startswith(LOOKS)


def of_each_kind(points: Sequence[Point], nth: str = "first") -> list[Point]:
    """Of each name and way the ``first`` point, or the first and the last (``ends``)."""
    kept: dict[tuple[str, How], list[Point]] = {}
    for point in points:
        kept.setdefault((point.name, point.how), []).append(point)
    return [
        point
        for found in kept.values()
        for point in dict.fromkeys((found[0], found[-1] if nth == "ends" else found[0]))
    ]


def of_spark(case: str, requests: Sequence[Seen]) -> list[Point]:
    """The points for one policy; a driver takes its time, so the policies share them out."""
    if case == "append":
        killed = of_each_kind(every(requests, (How.BEFORE, How.AFTER)), "ends")
        others = (How.LATE, How.ORPHAN, How.ZOMBIE, How.WORKER)
        return killed + of_each_kind(every(requests, others))
    killed = of_each_kind(every(requests, (How.BEFORE, How.AFTER)))
    if case == "stream":
        late = of_each_kind(every(requests, (How.LATE,)))
        return [one for one in killed if one.how is How.AFTER or one.name == REQUEST] + late
    decisive = [one for one in killed if one.name in {"part 1", "manifest", REQUEST, THE_RESULT}]
    return [one for one in decisive if one.how is How.AFTER] + [
        Point(REQUEST, 1, how) for how in (How.BEFORE, How.LATE, How.ZOMBIE)
    ]


def by_seed(seed: int, requests: Sequence[Seen], hows: Collection[How]) -> Point:
    """Any request, in any way."""
    return Random(seed).choice(every(requests, hows))
