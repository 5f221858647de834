"""Every call of a run in turn, as a point at which something happens; every order of two runs."""

from collections.abc import Callable
from itertools import count
from threading import Semaphore, Thread

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


Run = Callable[[Callable[[], None]], None]  # it calls what it is given before each of its moves


def every_order(begin: Callable[[], tuple[list[Run], Callable[[], object]]]) -> int:
    """Run what ``begin`` returns side by side, in each order of the moves; how many there are.

    After each order what it returns with them is called.
    """
    order: list[int] = []
    for number in count(1):
        runs, check = begin()
        taken = _in_order(runs, order)
        check()
        while taken and taken[-1][0] == taken[-1][1] - 1:
            taken.pop()
        if not taken:
            return number
        order = [*(chosen for chosen, _ in taken[:-1]), taken[-1][0] + 1]
    raise AssertionError


def _in_order(runs: list[Run], order: list[int]) -> list[tuple[int, int]]:
    """At each move, which of how many had its turn: as ``order`` says, then the first."""
    moved, waiting = Semaphore(0), dict[int, Semaphore]()
    taken, errors = list[tuple[int, int]](), list[BaseException]()

    def start(number: int, run: Run) -> None:
        def wait() -> None:
            waiting[number] = turn = Semaphore(0)
            moved.release()
            turn.acquire()

        def all_of_it() -> None:
            try:
                run(wait)
            except BaseException as error:
                errors.append(error)
            moved.release()

        Thread(target=all_of_it, daemon=True).start()
        assert moved.acquire(timeout=60)

    for number, run in enumerate(runs):
        start(number, run)
    while waiting:
        chosen = order[len(taken)] if len(taken) < len(order) else 0
        taken.append((chosen, len(waiting)))
        waiting.pop(sorted(waiting)[chosen]).release()
        assert moved.acquire(timeout=60)
    for error in errors:
        raise error
    return taken
