"""Whether a write's columns agree with those that are committed at its destination.

Nothing else looks at that: files with two types of one column can be committed side by side, and
then no reader takes them together. So the columns are compared, before any row is written, with
one file of the job that was committed last (docs/spark.md, "A table of another schema").
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StructField, StructType

from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.model.job import Conflict, Destination, Scope
from s3commit.spark.committed import newest_file
from s3commit.spark.discover import FoundFile
from s3commit.spark.footer import orc_schema, parquet_schema
from s3commit.spark.merging import Fitting, UnlikeError, is_wider
from s3commit.spark.messages import say
from s3commit.spark.options import SchemaPolicy
from s3commit.spark.schema import WriteSchema

if TYPE_CHECKING:
    from s3commit.spark.job import SparkJob

_WITH_SCHEMA: Final = frozenset({"parquet", "orc"})


def agreed(job: SparkJob, *, once: bool = False) -> SparkJob:
    """``job`` with the columns that its files are to have; some four requests if files are to stay.

    ``once``: this process need not look again for the same columns there, as for the batches of a
    stream. What can't be read is said in a line, and the write goes on. Raises `InvalidInputError`
    (``SCHEMA_DIFFERS``).
    """
    spec, options = job.spec, job.options
    stays = spec.conflict is Conflict.APPEND or spec.scope is Scope.PARTITION
    policy = options.schema_policy
    if not stays or policy is SchemaPolicy.IGNORE or options.file_format not in _WITH_SCHEMA:
        return job
    look = _compared_once if once else _compared
    return replace(job, schema=look(spec.destination, options.file_format, policy, job.schema))


def _compared(
    place: Destination, file_format: str, policy: SchemaPolicy, ours: WriteSchema
) -> WriteSchema:
    try:
        file = newest_file(place, file_format)
        theirs, exact = (None, True) if file is None else _columns(place, file, file_format)
    except Exception as error:  # whatever a foreign file holds, it must not end the write
        why = error.message if isinstance(error, S3CommitError) else repr(error)
        say(f"the columns of this write were not compared with those at {place.uri}: {why}")
        return ours
    if file is None or theirs is None:
        return ours
    _compare_partitions(place, file, ours)
    fitting = Fitting(widen=policy is SchemaPolicy.MERGE, guessed=not exact)
    try:
        data = fitting.fit(ours.data, theirs)
    except UnlikeError as unlike:
        raise _differs(place, file, unlike, policy) from None
    assert isinstance(data, StructType)  # noqa: S101 - fitted to one
    _say_news(place, ours, theirs, fitting)
    if policy is SchemaPolicy.MERGE:
        data = _with_all(data, theirs, {*file.names})
    return ours if data == ours.data else replace(ours, data=data, merged=True)


_compared_once = functools.lru_cache(maxsize=256)(_compared)


def _columns(place: Destination, file: FoundFile, file_format: str) -> tuple[StructType, bool]:
    """The file's columns, and whether their types are exact."""
    if file_format == "orc":
        return orc_schema(place.bucket, file), False
    return parquet_schema(place.bucket, file)


def _with_all(data: StructType, theirs: StructType, directories: set[str]) -> StructType:
    """``data`` and the columns that only the files have: this write's files have nulls there."""
    known = {column.name.lower() for column in data} | {name.lower() for name in directories}
    more = [
        StructField(column.name, column.dataType, True, column.metadata)
        for column in theirs
        if column.name.lower() not in known
    ]
    return StructType([*data, *more])


def _compare_partitions(place: Destination, file: FoundFile, ours: WriteSchema) -> None:
    if file.names == ours.partition_names:
        return
    there, here = (", ".join(one) or "nothing" for one in (file.names, ours.partition_names))
    advice = f"partitionBy {','.join(file.names)!r}" if file.names else "no partitionBy"
    raise _refused(
        f"the files at {place.uri} are partitioned by {there} ({file.key}), and this write's by"
        f" {here}: no reader takes both. Give {advice}, or another path"
    )


def _differs(
    place: Destination, file: FoundFile, unlike: UnlikeError, policy: SchemaPolicy
) -> InvalidInputError:
    ours, theirs = unlike.ours.simpleString(), unlike.theirs.simpleString()
    ways = [f"cast it to {theirs}", "write to another path"]
    if policy is SchemaPolicy.FAIL and is_wider(unlike.theirs, unlike.ours):
        ways.append(f"give schemaPolicy=merge, which writes it as {theirs}")
    elif policy is SchemaPolicy.FAIL and is_wider(unlike.ours, unlike.theirs):
        ways.append("give schemaPolicy=merge, and have it read with a schema")
    return _refused(
        f"column {unlike.path} is {ours} here and {theirs} in the files at {place.uri}"
        f" ({file.key}), which Spark's readers can't merge: {', or '.join(ways)}"
    )


def _refused(line: str) -> InvalidInputError:
    return InvalidInputError(
        f"{line} (schemaPolicy=ignore writes all the same). Nothing was written.",
        code="SCHEMA_DIFFERS",
    )


def _say_news(place: Destination, ours: WriteSchema, theirs: StructType, fitting: Fitting) -> None:
    """What readers of the table have to know from now on."""
    known = {column.name.lower() for column in theirs}
    added = [column.name for column in ours.data if column.name.lower() not in known]
    if added:
        say(
            f"new at {place.uri}: {', '.join(added)}. Read with the option mergeSchema, or with a"
            " schema: else Spark may take the columns of an older file"
        )
    if fitting.outgrown:
        say(
            f"wider than in the files at {place.uri}: {', '.join(fitting.outgrown)}. Read with a"
            " schema that has the wider type, which Spark can from 4.0 on"
        )
