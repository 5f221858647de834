"""Looks at the writes that name this format before PySpark makes them.

It refuses what Spark would drop in silence, a layout that no Python data source is told of:
``partitionBy`` on a stream, and the partitions, buckets or clusters of a new table, end in Spark's
driver, and the sink would write one flat directory. And it lets a write find the format from any
thread: Spark looks for it in the thread's active session, and a new thread has none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from s3commit.core.model.errors import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT: Final = "s3commit"
_NOTES: Final = "_s3commit_notes"
_DONE: Final = "_s3commit_guarded"

# Methods that say the format, those that say the layout, and those that begin the write.
_FORMATS: Final = ("format", "using")
_LAYOUTS: Final = ("partitionBy", "partitionedBy", "bucketBy", "clusterBy")
_WRITES: Final = ("start", "toTable", "save", "saveAsTable", "create", "replace", "createOrReplace")


def install(spark: SparkSession) -> None:
    """Guard the writers of sessions such as this one, classic or Connect; harmless to repeat."""
    if is_classic(spark):
        from pyspark.sql import readwriter as batch  # noqa: PLC0415
        from pyspark.sql.streaming import readwriter as streams  # noqa: PLC0415
    else:
        from pyspark.sql.connect import readwriter as batch  # type: ignore[no-redef] # noqa: PLC0415
        from pyspark.sql.connect.streaming import (  # type: ignore[no-redef] # noqa: PLC0415
            readwriter as streams,
        )
    for kind in (batch.DataFrameWriter, batch.DataFrameWriterV2, streams.DataStreamWriter):
        if _DONE in vars(kind):
            continue
        setattr(kind, _DONE, True)
        for name in _FORMATS:
            _wrap(kind, name, _note_format)
        for name in _LAYOUTS:
            _wrap(kind, name, functools.partial(_note_layout, name))
        for name in _WRITES:
            _wrap(kind, name, functools.partial(_check, name))


def is_classic(spark: SparkSession) -> bool:
    """Whether the session is of this process's own JVM, and not of Spark Connect."""
    return getattr(spark, "_jvm", None) is not None


def activate(spark: SparkSession) -> None:
    """Make ``spark`` the active session of this thread, as ``createDataFrame`` does too.

    A session of Spark Connect is named in each request, and needs it not.
    """
    if is_classic(spark):
        jvm: Any = spark._jvm
        jvm.SparkSession.setActiveSession(spark._jsparkSession)


def _wrap(kind: type, name: str, before: Callable[..., None]) -> None:
    original = vars(kind).get(name)
    if original is None:
        return

    @functools.wraps(original)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before(self, *args, **kwargs)
        return original(self, *args, **kwargs)

    setattr(kind, name, guarded)


def _notes(writer: Any) -> dict[str, Any]:
    notes: dict[str, Any] = writer.__dict__.setdefault(_NOTES, {})
    return notes


def _note_format(writer: Any, *args: Any, **kwargs: Any) -> None:
    _notes(writer)["format"] = next(iter((*args, *kwargs.values())), None)


def _note_layout(name: str, writer: Any, *columns: Any, **_: Any) -> None:
    flat: list[Any] = []
    for part in columns:
        flat += part if isinstance(part, list | tuple) else [part]
    # None and an empty list take a layout back.
    _notes(writer)["layout"] = (name, [column for column in flat if column is not None])


def _check(name: str, writer: Any, *args: Any, **kwargs: Any) -> None:
    # All of them take a path or a name, the format, the mode and partitionBy, in this order.
    given = {**dict(zip(("name", "format", "mode", "partitionBy"), args, strict=False)), **kwargs}
    notes = _notes(writer)
    by = given.get("partitionBy")
    call, columns = ("partitionBy", by) if by else notes.get("layout", ("", []))
    source = given.get("format") or notes.get("format")
    session = getattr(writer, "_spark", None) or writer._session
    if not columns:
        if str(source).lower() == FORMAT:
            activate(session)
        return
    if name == "toTable":
        table = str(given.get("name", given.get("tableName")))
        source = _provider(session, table) or source
    if str(source or _usual_format(session)).lower() != FORMAT:
        return
    names = [columns] if isinstance(columns, str) else columns
    raise InvalidInputError(
        f"{name}: Spark tells a Python data source nothing of .{call}(...), and would write one"
        f" flat directory: {_instead(call, names)}. Nothing was written.",
        code="LAYOUT_NOT_TOLD",
    )


def _instead(call: str, columns: list[Any]) -> str:
    if call.startswith("partition") and all(isinstance(one, str) for one in columns):
        return f"use .option('partitionBy', '{','.join(columns)}') in its place"
    if call.startswith("partition"):
        return "use .option('partitionBy', 'column,...') in its place"
    return "leave it out"


def _usual_format(spark: SparkSession) -> str:
    return str(spark.conf.get("spark.sql.sources.default", ""))


def _provider(spark: SparkSession, name: str) -> str | None:
    """The format of a table that exists in the session's catalog: it decides, not the writer."""
    from pyspark.errors import PySparkException  # noqa: PLC0415

    *namespace, table = name.replace("`", "").split(".")
    where = "IN " + ".".join(f"`{part}`" for part in namespace) if namespace else ""
    try:
        found = spark.sql(f"SHOW TABLE EXTENDED {where} LIKE '{table}'").collect()
    except PySparkException:  # no such namespace, or a catalog that can't tell
        return None
    lines = (line for row in found for line in str(row.information).splitlines())
    label = "Provider: "
    return next((line.removeprefix(label) for line in lines if line.startswith(label)), None)
