"""Where drivers are killed: each kind of request that they make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.engines.chaos.driver.gate import REQUEST, RESULT, THE_RESULT, How, Point, Seen

# Requests that change nothing, so it is the same when they arrive.
LOOKS = ("probe", RESULT, THE_RESULT, "GET ", "HEAD ")
OF_TASKS = {"start upload", "part 1", "part 2", "manifest"}
DECISIVE = {"part 1", "manifest", REQUEST, THE_RESULT}
AT_ONCE = (How.BEFORE, How.AFTER)


def of_spark(case: str, requests: Sequence[Seen]) -> list[Point]:
    """The points for one policy; a driver takes its time, so the policies share them out."""
    if case == "append":
        last = _of_each_kind(requests[::-1], AT_ONCE)
        return list(dict.fromkeys((*_of_each_kind(requests, tuple(How)), *last)))
    killed = list(_of_each_kind(requests, AT_ONCE))
    if case == "stream":
        late = _of_each_kind(requests, (How.LATE,))
        return [one for one in killed if one.how is How.AFTER or one.name == REQUEST] + [*late]
    return [one for one in killed if one.how is How.AFTER and one.name in DECISIVE] + [
        Point(REQUEST, 1, how) for how in (How.BEFORE, How.LATE, How.ZOMBIE)
    ]


def _of_each_kind(requests: Sequence[Seen], hows: Sequence[How]) -> Iterator[Point]:
    """Of each kind of request the first, in each way that says something there."""
    first = {seen.name: seen.nth for seen in reversed(requests)}
    for name, nth in first.items():
        for how in hows:
            if how is How.WORKER and name not in OF_TASKS:
                continue
            if how is How.LATE and name.startswith(LOOKS):
                continue
            yield Point(name, nth, how)
