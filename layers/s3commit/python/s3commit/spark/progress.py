"""The progress of a write's tasks, on a line that a person watches."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from s3commit.core.model.amounts import many

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import SparkSession

WATCHED: Final = 0.5  # seconds between two looks, in a notebook
LOGGED: Final = 5.0  # seconds between two lines, elsewhere

Tally = tuple[int, int]  # files and rows of the tasks that have ended


def is_notebook() -> bool:
    """True if standard error is a notebook's."""
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def is_terminal() -> bool:
    """True if standard error is a terminal's."""
    return sys.stderr is not None and sys.stderr.isatty()


def tally_of(session: SparkSession, *, wanted: bool | None) -> Accumulator[Tally] | None:
    """The accumulator of the tasks, if it is to be shown; None where Spark has none.

    So with Spark Connect. ``wanted`` None means: in a terminal or a notebook.
    """
    if wanted is None:
        wanted = is_notebook() or is_terminal()
    if not wanted or not hasattr(session, "_jsparkSession"):
        return None
    from pyspark.accumulators import AccumulatorParam  # noqa: PLC0415

    class Pairs(AccumulatorParam[Tally]):
        def zero(self, value: Tally) -> Tally:
            return value

        def addInPlace(self, one: Tally, other: Tally) -> Tally:  # noqa: N802 - PySpark's name
            return one[0] + other[0], one[1] + other[1]

    return session.sparkContext.accumulator((0, 0), Pairs())


@contextmanager
def shown(tally: Accumulator[Tally] | None) -> Iterator[None]:
    """Show the tally on standard error until the block ends, whenever it has changed."""
    if tally is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_show, args=(tally, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _show(tally: Accumulator[Tally], over: threading.Event) -> None:
    """In a notebook on one line; else on new ones: Spark may draw its bar of tasks on this one."""
    one_line, last, ended = is_notebook(), (0, 0), False
    while not ended:  # one more look at the end
        ended = over.wait(WATCHED if one_line else LOGGED)
        if tally.value != last:
            last = tally.value
            line = f"s3commit: tasks have written {many(last[0], 'file')}, {many(last[1], 'row')}"
            sys.stderr.write(f"\r{line}" if one_line else f"\r{line:80}\n")
            sys.stderr.flush()
    if one_line and last != (0, 0):
        sys.stderr.write("\n")
