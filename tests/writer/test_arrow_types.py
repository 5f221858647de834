"""`write_table` has every type of Arrow in files that Spark reads, or refuses it."""

import io
import uuid
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import s3commit
from s3commit import InvalidInputError
from tests.arrow_types import PLAIN, nested
from tests.lake import Lake

# https://github.com/apache/spark/blob/v4.0.0/sql/core/src/main/scala/org/apache/spark/sql/execution/
# datasources/parquet/ParquetSchemaConverter.scala: convertPrimitiveField raises for all others.
LOGICAL = {"NONE", "STRING", "ENUM", "JSON", "BSON", "INT", "DATE"}


def is_readable(column: Any) -> bool:
    """True if Spark has a type for the column of a footer."""
    kind = column.logical_type
    if kind.type == "TIMESTAMP":
        return "nanoseconds" not in str(kind)
    if kind.type == "DECIMAL":
        return bool(column.precision <= 38)
    return kind.type in LOGICAL


def written(lake: Lake, kind: Any) -> list[Any]:
    """The columns of the file's footer, or nothing if a table with the type is refused whole."""
    schema = pa.schema({"id": pa.int64(), "x": kind})
    try:
        table = pa.RecordBatchReader.from_batches(schema, [])
        s3commit.write_table(table, f"s3://{lake.bucket}/t/", mode="overwrite")
    except InvalidInputError as error:
        assert error.code == "BAD_SCHEMA"
        assert error.message.endswith("Nothing was written.")
        assert lake.open_uploads() == []
        return []
    (key,) = [key for key in lake.visible("t/") if "/part-" in key]
    footer = parquet.ParquetFile(io.BytesIO(lake.body(key))).schema
    return [footer.column(number) for number in range(len(footer))]


def test_every_type_is_readable_by_spark_or_refused(memory_lake: Lake) -> None:
    refused = set[Any]()
    for plain in PLAIN:
        for kind in nested(plain):
            columns = written(memory_lake, kind)
            assert all(map(is_readable, columns)), kind
            if not columns:
                refused.add(kind)
    assert {kind for kind in PLAIN if kind in refused} == {
        *(pa.null(), pa.float16(), pa.uuid(), pa.decimal256(39, 2), pa.decimal128(9, -2)),
        *map(pa.duration, ("s", "ms", "us", "ns")),
        *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
        *(pa.month_day_nano_interval(), pa.struct([])),
        *(pa.bool8(), pa.fixed_shape_tensor(pa.int32(), [2])),
        *(pa.opaque(pa.int64(), "x", "y"), pa.opaque(pa.timestamp("ns"), "x", "y")),
    }


@pytest.mark.parametrize(
    "within", [kind for kind in nested(pa.timestamp("ns")) if not pa.types.is_run_end_encoded(kind)]
)
def test_nanoseconds_are_microseconds_wherever_they_are(memory_lake: Lake, within: Any) -> None:
    columns = written(memory_lake, within)
    assert any("microseconds" in str(column.logical_type) for column in columns)


def test_objects_of_python_in_a_frame_of_polars_are_refused(memory_lake: Lake) -> None:
    frame = pl.DataFrame({"n": [1], "u": [uuid.uuid4()]})
    with pytest.raises(InvalidInputError, match="'u' has the type Object of polars: cast it"):
        s3commit.write_table(frame, f"s3://{memory_lake.bucket}/t/")
    assert memory_lake.visible() == memory_lake.open_uploads() == []


@pytest.mark.parametrize(
    "values", [pd.period_range("2026-01", periods=2, freq="M"), pd.interval_range(0, 2)], ids=repr
)
def test_what_a_library_has_made_of_numbers_is_refused(memory_lake: Lake, values: Any) -> None:
    """January 2026 would be the number 672 to each reader."""
    with pytest.raises(InvalidInputError, match=r"'x' has the type .*: cast it") as refused:
        s3commit.write_table(pd.DataFrame({"x": values}), f"s3://{memory_lake.bucket}/t/")
    assert refused.value.code == "BAD_SCHEMA"
    assert memory_lake.visible() == memory_lake.open_uploads() == []


@pytest.mark.parametrize("kind", ["library.month", "geoarrow.wkb"])
@pytest.mark.parametrize("within", [False, True])
def test_a_type_whose_library_is_not_there_is_judged_by_its_name(
    memory_lake: Lake, kind: str, within: bool
) -> None:
    plain = pa.binary() if kind == "geoarrow.wkb" else pa.int64()
    column = pa.field("x", plain, metadata={"ARROW:extension:name": kind})
    schema = pa.schema([pa.field("s", pa.struct([column])) if within else column])
    table = pa.RecordBatchReader.from_batches(schema, [])
    if kind == "geoarrow.wkb":  # the same bytes to each reader
        assert s3commit.write_table(table, f"s3://{memory_lake.bucket}/t/").files == 1
        return
    shown = "struct" if within else kind
    with pytest.raises(InvalidInputError, match=f"has the type {shown}"):
        s3commit.write_table(table, f"s3://{memory_lake.bucket}/t/")
