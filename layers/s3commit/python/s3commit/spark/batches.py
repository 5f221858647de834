"""The batches in which a task gets its rows: Spark's own bound is 10,000 rows of any size.

Spark 4 bounds a batch by its bytes too. Spark 3.5 counts rows alone, and a batch whose column has
more than 1 GiB ends the task: the buffers of Arrow's Java library double, and none may have 2 GiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from s3commit.core.model.errors import InvalidInputError
from s3commit.writer.system import say
from s3commit.writer.transfer import MIB

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

RECORDS_KEY: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
BYTES_KEY: Final = "spark.sql.execution.arrow.maxBytesPerBatch"  # since 4.0
BYTES: Final = 16 * MIB
# On Spark 3.5 for rows of 76 bytes: as fast as with 10,000; 1,000 take 7 % more of a processor.
RECORDS: Final = 2_000
FEWEST: Final = 10  # rows of 100 MB, whose batch takes 1 GiB
# Of Arrow's Java library: the first where a buffer would be too large, the others where the memory
# outside of the heap (-XX:MaxDirectMemorySize) has no room for it.
_TOO_LARGE: Final = re.compile(
    r"(?=.*org\.apache\.arrow).*"
    r"(OversizedAllocationException|OutOfDirectMemoryError|arrow\.memory\.OutOfMemoryException)",
    re.DOTALL,
)


def collect(frame: DataFrame) -> list[Row]:
    """The rows of ``frame``, whose plan has a ``mapInArrow``: it gets batches of a bounded size.

    A bound that the session sets itself counts. If a batch is too large nevertheless, the tasks run
    again, with the fewest rows. Raises the tasks' error, and `InvalidInputError`
    (``ROWS_TOO_LARGE``) if there is no smaller batch: Spark Connect has no settings of one plan.
    """
    plan = frame
    try:
        _tag(frame)
        for plan in _plans(frame):
            try:
                return plan.collect()
            except Exception as error:
                if not _TOO_LARGE.search(str(error)):
                    raise
                cause = error
        raise InvalidInputError(
            "the rows are too large for Arrow: a column may have 1 GiB in a batch. No file becomes"
            f" visible. Set {RECORDS_KEY} so low that so many of the largest rows have less than 64"
            f" MB together, such as {FEWEST} for rows of 6 MB, and write again",
            code="ROWS_TOO_LARGE",
        ) from cause
    finally:
        _untag(frame, plan)


def _tag(frame: DataFrame) -> None:
    """Let an interrupt of the session, in Spark 4, end this thread's plans of clones of it too."""
    with suppress(Exception):  # Spark 3.5 and Connect have no tags of a session here
        session: Any = frame.sparkSession._jsparkSession
        frame.sparkSession.sparkContext.addJobTag(session.sessionJobTag())


def _untag(frame: DataFrame, ran: DataFrame) -> None:
    """Take the tag off, and complete the session's observations by those of ``ran``.

    Spark 4 itself completes those of the plan's own session alone, which may be a clone.
    """
    with suppress(Exception):  # before 4.3 Spark completes them itself, by the first run
        session: Any = frame.sparkSession._jsparkSession
        frame.sparkSession.sparkContext.removeJobTag(session.sessionJobTag())
        session.observationManager().tryComplete(ran._jdf.queryExecution())


def _plans(frame: DataFrame) -> Iterator[DataFrame]:
    settings = frame.sparkSession.conf
    # A release that does not know a setting can't modify it.
    key, bound = (BYTES_KEY, BYTES) if settings.isModifiable(BYTES_KEY) else (RECORDS_KEY, RECORDS)
    yield (settings.get(key, None) is None and _with(frame, key, bound)) or frame
    asked = settings.get(RECORDS_KEY, None) or "0"
    if asked.isdecimal() and 0 < int(asked) <= FEWEST:
        return
    fewest = _with(frame, RECORDS_KEY, FEWEST)
    if fewest is not None:
        say(f"the rows are large: the tasks run again, with {FEWEST} rows in a batch of Arrow")
        yield fewest


def _with(frame: DataFrame, key: str, value: int) -> DataFrame | None:
    """The same plan in a clone of its session: other statements of the session keep its settings.

    None if there is no access to Spark's JVM.
    """
    if not hasattr(frame, "_jdf"):
        return None
    from py4j.protocol import Py4JError  # noqa: PLC0415 - Spark Connect's client has none

    plan = frame._jdf
    try:
        session = plan.sparkSession().cloneSession()
        session.conf().set(key, str(value))
        # org.apache.spark.sql.Dataset, in Spark 4 org.apache.spark.sql.classic.Dataset
        dataset: Any = reduce(
            getattr, plan.getClass().getName().split("."), frame.sparkSession._jvm
        )
        own = dataset.ofRows(session, plan.queryExecution().analyzed())
    except Py4JError:  # a platform that lets no program call these
        return None
    return type(frame)(own, frame.sparkSession)
