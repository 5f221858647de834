"""Checks by `write` of a DataFrame and its session."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from s3commit.core.model.destination import Destination
from s3commit.writer.options import refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_frame(frame: DataFrame) -> None:
    """Raise `InvalidInputError` if it is not a DataFrame of Spark's, or a stream."""
    if not hasattr(frame, "mapInArrow"):
        kind = type(frame)
        raise refused(
            f"write needs a DataFrame of Spark, not {kind.__module__}.{kind.__qualname__}: make"
            " one with spark.createDataFrame(...)"
        )
    if frame.isStreaming:
        raise refused(
            "this DataFrame is a stream: use .writeStream.foreachBatch(batch_writer(path))"
        )


def arranged(frame: DataFrame, partitions: Sequence[int]) -> DataFrame:
    """The rows in the order of their directories, so that each task has one file open.

    ``partitions`` are the positions of the partition columns, which become texts, cast by Spark as
    for its own directories' names. The columns are named by their positions (`by_position`):
    PySpark parses the names that it is given, and a user's name may have a dot or a backtick.
    """
    plain = frame.toDF(*map(by_position, range(len(frame.columns))))
    names = list(map(by_position, partitions))
    if not names:
        return plain
    if not _is_sorted(frame, partitions):
        plain = plain.sortWithinPartitions(*names)
    return plain.withColumns({name: plain[name].cast("string") for name in names})


def by_position(number: int) -> str:
    """The form in which the tasks get a column."""
    return f"c{number}"


def refresh_cached(frame: DataFrame, destination: Destination) -> None:
    """Let the session read what was committed: Spark's own writes refresh cached plans too.

    Both spellings of the path are tried; a session that has no file system for one has nothing
    cached there.
    """
    for scheme in ("s3a", "s3"):
        uri = f"{scheme}://{destination.bucket}/{destination.prefix}"
        with suppress(Exception):
            frame.sparkSession.catalog.refreshByPath(uri)


def _is_sorted(frame: DataFrame, partitions: Sequence[int]) -> bool:
    """True if Spark knows that the columns at these positions come first in the rows' order.

    A sort would drop that order, which may have more columns. Spark's own writer looks too
    (org.apache.spark.sql.execution.datasources.V1WritesUtils.isOrderingMatched). With
    Spark Connect the order is not known.
    """
    if not hasattr(frame, "_jdf"):
        return False
    plan = frame._jdf.queryExecution().analyzed()
    columns, ordering = plan.output(), plan.outputOrdering()
    if ordering.size() < len(partitions):
        return False
    first = [ordering.apply(number).child() for number in range(len(partitions))]
    return all(
        one.getClass().getSimpleName() == "AttributeReference"
        and one.exprId().equals(columns.apply(position).exprId())
        for one, position in zip(first, partitions, strict=True)
    )
