"""Every call of a run in turn, as a point at which something happens."""

from collections.abc import Callable
from itertools import count

from tests.fakes.faults import FaultPlan


def every_point(check: Callable[[int], FaultPlan | bool], *, least: int = 15) -> None:
    """Call ``check`` with 1, 2, 3, ... until nothing has happened at that point.

    ``check`` says whether something has, or gives the plan of which it is the call's number.
    There must be more than ``least``, or the enumeration has not reached the whole run.
    """
    for point in count(1):
        happened = check(point)
        if isinstance(happened, FaultPlan):
            happened = any(call.number == point for call in happened.fired)
        if not happened:
            assert point > least, f"there are {point - 1} points"
            return
