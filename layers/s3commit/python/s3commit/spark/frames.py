"""What `write` asks of packages, DataFrame, session and destination before the tasks run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

from s3commit.core.formats.layout import JobDirectory, is_data
from s3commit.core.model.errors import AccessError, InvalidInputError, NotFoundError, S3CommitError
from s3commit.core.model.job import Destination
from s3commit.core.model.locks import key_digest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAST: Final = {"pyspark": (3, 5), "pyarrow": (18, 0)}
# Spark is the cluster's: another one of pip's would cover it, and may not fit its Java part.
_SOURCES: Final = {
    "pyspark": "run this with the cluster's Python; where there is no cluster, pip install pyspark",
    "pyarrow": "pip install '.[spark]' in a checkout of s3commit, or pyarrow alone",
}

NOT_EMPTY: Final = "DESTINATION_NOT_EMPTY"
WAY_OUT: Final = "give mode='append' to add files, or mode='overwrite' to replace those"


class WrongPythonError(S3CommitError):
    """A package is missing or too old. Nothing was written."""

    code = "WRONG_PYTHON"


def check_versions() -> None:
    """Raise `WrongPythonError` if a package is missing or too old."""
    for package, least in LEAST.items():
        try:
            found = str(__import__(package).__version__)
        except ImportError as error:
            where = _SOURCES[package]
            raise WrongPythonError(f"{package} is not installed here: {where}") from error
        if tuple(map(int, found.split(".")[:2])) < least:
            wanted = ".".join(map(str, least))
            raise WrongPythonError(f"{package} {found} is too old: this needs {package}>={wanted}")


def refused(why: str) -> InvalidInputError:
    """The error of a write that can't be made as it was asked for."""
    return InvalidInputError(f"{why}. Nothing was written.", code="BAD_OPTIONS")


def check_frame(frame: DataFrame) -> None:
    """Raise `InvalidInputError` if it is no DataFrame of Spark's, or a stream."""
    if not hasattr(frame, "mapInArrow"):
        kind = type(frame)
        raise refused(
            f"write takes a DataFrame of Spark, not {kind.__module__}.{kind.__qualname__}: make one"
            " with spark.createDataFrame(...)"
        )
    if frame.isStreaming:
        raise refused(
            "this DataFrame is a stream: use .writeStream.foreachBatch(batch_writer(path))"
        )


def earlier_job(destination: Destination, key: str | None) -> JobDirectory | None:
    """The job that has committed the data of the idempotency key, if one surely has.

    By the pipeline's hint, which spares the program to write the data again. Without one, the
    pipeline itself refuses a second job with the key.
    """
    from s3commit.core.job.idempotency_key import hinted_job  # noqa: PLC0415
    from s3commit.writer.connect import shared_store  # noqa: PLC0415

    return hinted_job(shared_store(None), destination, key_digest(key)) if key is not None else None


def refuse_files(destination: Destination) -> None:
    """Raise `InvalidInputError` if a data file is there: better now than after the last task.

    The pipeline checks again at the decision; only that check counts.
    """
    from s3commit.writer.connect import shared_store  # noqa: PLC0415
    from s3commit.writer.place import LOOKED_AT  # noqa: PLC0415

    bucket, prefix = destination.bucket, destination.prefix
    try:
        listed = islice(shared_store(None).list(bucket, prefix), LOOKED_AT)
        found = next((one.key for one in listed if is_data(one.key[len(prefix) :])), None)
    except (AccessError, NotFoundError):  # the right to write is another; no bucket
        return
    if found is not None:
        raise InvalidInputError(
            f"mode 'error': s3://{bucket}/{found} is there already; {WAY_OUT}."
            " Nothing was written.",
            code=NOT_EMPTY,
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
    """What the tasks get a column as."""
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
    """Whether Spark knows that the columns at these positions come first in the rows' order.

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
