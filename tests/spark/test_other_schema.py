"""Which columns readers read together with which, and what `check_schema` therefore refuses."""

import itertools
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet
from pyspark.sql import SparkSession

from s3commit.arrow.other_schema import differences, schema_in
from s3commit.core.model.errors import InvalidInputError
from s3commit.spark import batch_writer, write
from tests.spark.conftest import VERSION
from tests.spark.tiny import Place

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "refused_writes.md"
NOON, INSTANT = datetime(2026, 1, 2, 12, 0, 0, 7), datetime(2026, 1, 2, 12, 0, 0, 7, UTC)


@dataclass(frozen=True, eq=False)
class Kind:
    """A column ``c`` with two values; ``named``: the file has Arrow's own type in its metadata."""

    type: pa.DataType
    values: Sequence[Any]
    named: bool = False
    int96: bool = False
    column: str = "c"
    nullable: bool = True

    def put(self, path: Path, first_id: int) -> None:
        fields = [pa.field("id", pa.int64()), pa.field(self.column, self.type, self.nullable)]
        ids = pa.array([first_id, first_id + 1], pa.int64())
        values = [ids, pa.array(self.values, self.type)]
        parquet.write_table(
            pa.table(values, pa.schema(fields)),
            path,
            store_schema=self.named,
            use_deprecated_int96_timestamps=self.int96,
            store_decimal_as_integer=True,
        )


def fields(*names: str, nullable: bool = True) -> pa.DataType:
    return pa.struct([pa.field(name, pa.int64(), nullable) for name in names])


SIGNED = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
EXACT = pd.Timestamp(1767323045000000007)
AB = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
KINDS = {
    "bool": Kind(pa.bool_(), [True, False]),
    **{str(one): Kind(one, [1, -(2 ** (one.bit_width - 1))]) for one in SIGNED},
    **{str(one): Kind(one, [1, 2**one.bit_width - 1]) for one in UNSIGNED},
    "half": Kind(pa.float16(), [0.1, 1.5]),
    "float": Kind(pa.float32(), [0.1, 1.5]),
    "double": Kind(pa.float64(), [0.1, 1.5]),
    "decimal(9,2)": Kind(pa.decimal128(9, 2), [Decimal("1.25"), None]),
    "decimal(18,2)": Kind(pa.decimal128(18, 2), [Decimal("9999999999.25"), None]),
    "decimal(9,3)": Kind(pa.decimal128(9, 3), [Decimal("1.255"), None]),
    "decimal(38,2)": Kind(pa.decimal128(38, 2), [Decimal(10) ** 30, None]),
    "text": Kind(pa.string(), ["a", "1"]),
    "large text": Kind(pa.large_string(), ["a", "1"], named=True),
    "dictionary": Kind(pa.dictionary(pa.int32(), pa.string()), ["a", "b"], named=True),
    "bytes": Kind(pa.binary(), [b"a", b"\xff"]),
    "large bytes": Kind(pa.large_binary(), [b"a", b"\xff"], named=True),
    "fixed bytes": Kind(pa.binary(4), [b"abcd", b"1234"]),
    "date": Kind(pa.date32(), [date(2026, 1, 2), None]),
    "date64": Kind(pa.date64(), [date(2026, 1, 2), None], named=True),
    "time of ms": Kind(pa.time32("ms"), [time(1, 2, 3), None]),
    "time of us": Kind(pa.time64("us"), [time(1, 2, 3, 4), None]),
    "naive ms": Kind(pa.timestamp("ms"), [datetime(2026, 1, 2), None]),
    "naive us": Kind(pa.timestamp("us"), [NOON, None]),
    "naive ns": Kind(pa.timestamp("ns"), [EXACT, None]),
    "INT96": Kind(pa.timestamp("ns"), [NOON, None], int96=True),
    "instant ms": Kind(pa.timestamp("ms", "UTC"), [datetime(2026, 1, 2, tzinfo=UTC), None]),
    "instant us": Kind(pa.timestamp("us", "UTC"), [INSTANT, None]),
    "instant ns": Kind(pa.timestamp("ns", "UTC"), [EXACT.tz_localize("UTC"), None]),
    "zone": Kind(pa.timestamp("us", "Europe/Berlin"), [INSTANT, None], named=True),
    "duration": Kind(pa.duration("us"), [timedelta(1), None], named=True),
    "null": Kind(pa.null(), [None, None]),
    "list": Kind(pa.list_(pa.int64()), [[2**40], None]),
    "large list": Kind(pa.large_list(pa.int64()), [[1], None], named=True),
    "fixed list": Kind(pa.list_(pa.int64(), 2), [[1, 2], [3, 4]], named=True),
    "list of int": Kind(pa.list_(pa.int32()), [[1], None]),
    "list of texts": Kind(pa.list_(pa.string()), [["a"], None]),
    "list of all": Kind(pa.list_(pa.field("element", pa.int64(), nullable=False)), [[1], None]),
    "list of structs": Kind(pa.list_(fields("a", "b")), [AB, None]),
    "list of turned": Kind(pa.list_(fields("b", "a")), [AB, None]),
    "struct": Kind(fields("a", "b"), [AB[0], {"a": None, "b": None}]),
    "turned struct": Kind(fields("b", "a"), [AB[0], None]),
    "sure struct": Kind(fields("a", "b", nullable=False), AB),
    "struct of texts": Kind(pa.struct([("a", pa.string()), ("b", pa.int64())]), [{"a": "x"}, None]),
    "struct in capitals": Kind(fields("A", "b"), [{"A": 1, "b": 2}, None]),
    "map": Kind(pa.map_(pa.string(), pa.int64()), [{"a": 1}, None]),
    "map of ints": Kind(pa.map_(pa.string(), pa.int32()), [{"a": 1}, None]),
    "map by number": Kind(pa.map_(pa.int64(), pa.int64()), [{1: 1}, None]),
}  # fmt: skip
# Of Arrow's own files, and Spark's: what polars takes for another type.
ONLY_TO_POLARS = {"dictionary", "date64", "INT96", "zone"}


def plain(value: Any) -> Any:
    """What readers call by other names: a null, an instant, a map."""
    if isinstance(value, pd.Timestamp) or (isinstance(value, datetime) and value.tzinfo):
        stamp = pd.Timestamp(value)
        return (stamp if stamp.tz else stamp.tz_localize("UTC")).value
    if isinstance(value, datetime):
        return pd.Timestamp(value, tz="UTC").value
    if value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        value = dict(value)
    if isinstance(value, list):
        return [*map(plain, value)]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


Rows = dict[int, dict[str, Any]]  # by the id


def by_pyarrow(path: str, **how: Any) -> list[dict[str, Any]]:
    table = dataset.dataset(path, partitioning="hive", **how).to_table(use_threads=False)
    columns = [plain_nanoseconds(column).to_pylist() for column in table.columns]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def plain_nanoseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """With a number for each instant: Python's own type has microseconds."""
    if not pa.types.is_timestamp(column.type):
        return column
    return column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())


def by_pandas(path: str, **how: Any) -> Any:
    return pd.read_parquet(path, **how).to_dict("records")


def by_polars(path: str, **how: Any) -> list[dict[str, Any]]:
    found = pl.scan_parquet(f"{path}/**/*.parquet", hive_partitioning=True, **how).collect()
    return found.to_dicts()


def by_duckdb(path: str, how: str = "") -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT * FROM read_parquet('{path}/**/*.parquet'{how})")
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


def by_spark(spark: SparkSession, path: str, **how: Any) -> list[dict[str, Any]]:
    """As JSON, so that an instant is not one with another type: the session has a time zone."""
    frame = spark.read.parquet(path, **how)
    empty = dict.fromkeys(frame.columns)
    rows = frame.selectExpr("to_json(struct(*))").collect()
    return [empty | json.loads(row[0]) for row in rows]


READERS: dict[str, Callable[..., Any]] = {
    "pyarrow": by_pyarrow,
    "pandas": by_pandas,
    "polars": by_polars,
    "DuckDB": by_duckdb,
}


class Files:
    """Directories with files of these kinds, one for each order, which are only read."""

    def __init__(self, root: Path, spark: SparkSession) -> None:
        self.root = root
        by_this: Callable[..., Any] = partial(by_spark, spark)
        self.readers = {"Spark": by_this, **READERS}
        self.alone, self.holding = cache(self._alone), cache(self._holding)
        self.numbers = itertools.count()

    def _holding(self, *kinds: Kind) -> Path:
        path = self.root / str(next(self.numbers))
        path.mkdir()
        for number, kind in enumerate(kinds):
            kind.put(path / f"{number}.parquet", 2 * number)
        return path

    def read(self, reader: str, path: Path, **how: Any) -> Rows:
        rows = self.readers[reader](str(path), **how)
        lower = [{name.lower(): plain(one) for name, one in row.items()} for row in rows]
        return {row["id"]: row for row in lower}

    def _alone(self, reader: str, one: str) -> list[Any] | None:
        """The values of a file alone; None if the reader can't read it at all."""
        try:
            rows = self.read(reader, self.holding(KINDS[one]))
        except Exception:
            return None
        return [rows[number]["c"] for number in range(2)]

    def reads(self, reader: str, first: str, second: str) -> bool:
        """True if it gets the values that it gets from each alone."""
        wanted = self.alone(reader, first), self.alone(reader, second)
        if wanted[0] is None or wanted[1] is None:
            return False
        try:
            rows = self.read(reader, self.holding(KINDS[first], KINDS[second]))
        except Exception:
            return False
        return [rows[number].get("c") for number in range(4)] == [*wanted[0], *wanted[1]]


@pytest.fixture
def files(tmp_path: Path, spark: SparkSession) -> Files:
    return Files(tmp_path, spark)


def unlike(files: Files, *kinds: Kind) -> list[tuple[str, str]]:
    path = files.holding(*kinds)
    one, other = (schema_in((path / f"{number}.parquet").read_bytes()) for number in range(2))
    found = [*differences(one, other)]
    assert bool(found) == any(differences(other, one)), "a listing is in any order"
    return found


def test_types_are_the_same_if_all_readers_get_the_values_of_both(files: Files) -> None:
    for one, other in itertools.combinations(KINDS, 2):
        is_same = not unlike(files, KINDS[one], KINDS[other])
        orders = [(one, other), (other, one)]
        judges = ("pyarrow", "pandas", "DuckDB", "Spark")  # the slowest last, for those alone
        judged = all(files.reads(judge, *order) for judge in judges for order in orders)
        assert judged == is_same, orders
        if is_same and not {one, other} & ONLY_TO_POLARS:
            assert all(files.reads("polars", *order) for order in orders), orders


# What two files may differ in, and what a reader of both needs to get all columns.
NUMBERS = Kind(pa.int64(), [1, 2])
CASES = {
    "`NOT NULL`": (NUMBERS, replace(NUMBERS, nullable=False)),
    "the order of a struct's fields": (KINDS["struct"], KINDS["turned struct"]),
    "Spark's INT96 and s3commit's timestamps": (KINDS["INT96"], KINDS["instant us"]),
    "a column that one lacks": (NUMBERS, replace(NUMBERS, column="x")),
    "a struct's field that one lacks": (KINDS["struct"], Kind(fields("a"), [{"a": 1}, {"a": 2}])),
    "`NOT NULL` of a struct's field": (KINDS["struct"], KINDS["sure struct"]),
    "`int` and `bigint`": (KINDS["int32"], KINDS["int64"]),
    "`float` and `double`": (KINDS["float"], KINDS["double"]),
    "`decimal(9,2)` and `decimal(18,2)`": (KINDS["decimal(9,2)"], KINDS["decimal(18,2)"]),
    "timestamps with and without time zone": (KINDS["instant us"], KINDS["naive us"]),
    "`c` and `C`": (NUMBERS, replace(NUMBERS, column="C")),
}
UNION = pa.schema([(name, pa.int64()) for name in ("id", "c", "x")])
TO_GET_ALL: dict[str, dict[str, Any]] = {
    "Spark": {"mergeSchema": "true"},
    "pyarrow": {"schema": UNION},
    "pandas": {"schema": UNION},
    "polars": {
        "schema": dict.fromkeys(UNION.names, pl.Int64),
        "missing_columns": "insert",
        "extra_columns": "ignore",
    },
    "DuckDB": {"how": ", union_by_name = true"},
}


OUTCOMES = ("reads", "loses values", "other values", "fails")


def outcome(files: Files, reader: str, kinds: Sequence[Kind], **how: Any) -> str:
    """What a reader gives of both files, in the worse of their orders."""

    alone = {kind: files.read(reader, files.holding(kind)) for kind in kinds}

    def worst(*kinds: Kind) -> int:
        try:
            rows = files.read(reader, files.holding(*kinds), **how)
        except Exception:
            return OUTCOMES.index("fails")
        each = [alone[kind][number] for kind in kinds for number in range(2)]
        return max(changed(rows[number], one) for number, one in enumerate(each))

    return OUTCOMES[max(worst(*kinds), worst(*kinds[::-1]))]


def changed(found: Any, wanted: Any) -> int:
    """An index of `OUTCOMES`. The ids are those that the files have together."""
    if isinstance(wanted, dict):
        inside = {name: one for name, one in wanted.items() if name != "id"}
        return max(
            (changed((found or {}).get(name), one) for name, one in inside.items()), default=0
        )
    return 0 if found == wanted else 1 if found is None else 2


def test_the_guide_says_what_readers_give_of_files_that_differ(files: Files) -> None:
    lines = ["| the files differ in | | " + " | ".join(files.readers) + " |"]
    lines.append("|---" * (2 + len(files.readers)) + "|")
    for name, kinds in CASES.items():
        is_refused = "**refused**" if unlike(files, *kinds) else ""
        found = [outcome(files, reader, kinds) for reader in files.readers]
        if VERSION < (4, 3):  # the page is of that release: earlier ones may fail instead
            found[0] = "ANY"
        lines.append(f"| {name} | {is_refused} | {' | '.join(found)} |")
    table = "\n".join(lines).replace("|  |", "| |")
    cells = re.escape(table).replace("ANY", "[a-z' ]+")
    assert re.search(cells, GUIDE.read_text()), f"\n{table}"


@pytest.mark.parametrize("reader", TO_GET_ALL)
def test_with_an_argument_each_reader_fills_columns(files: Files, reader: str) -> None:
    kinds = CASES["a column that one lacks"]
    assert outcome(files, reader, kinds) != "reads"
    assert outcome(files, reader, kinds, **TO_GET_ALL[reader]) == "reads"
    text = re.sub(r"\s+", " ", GUIDE.read_text())
    assert all(name in text for name in ("union_by_name", *TO_GET_ALL[reader]) if name != "how")


@pytest.mark.parametrize("first", ["sure", "cast"])
def test_a_cast_lets_fields_be_null(session: SparkSession, place: Place, first: str) -> None:
    sure = session.range(1).selectExpr("named_struct('a', id) AS c", "array(struct(id)) AS l")
    cast = sure.selectExpr("CAST(c AS STRUCT<a: BIGINT>)", "CAST(l AS ARRAY<STRUCT<id: BIGINT>>)")
    old, other = (sure, cast) if first == "sure" else (cast, sure)
    write(old, place.uri)
    with pytest.raises(InvalidInputError, match=r"'c\.a' .* null here and .* null in ") as refused:
        write(other, place.uri, mode="append")
    assert (": cast it, " in refused.value.message) == (other is sure)
    assert write(old, place.uri, mode="append").rows == 1


def test_write_refuses_another_type_by_default(session: SparkSession, place: Place) -> None:
    """tests/writer/test_write_table.py has more columns, and an overwrite."""
    uri = place.uri
    frame = session.createDataFrame([(1, "a")], "id bigint, dt string")
    other = frame.selectExpr("CAST(id AS string) AS id", "dt")
    write(frame, uri, partition_by="dt")
    appends: list[Any] = [{"mode": "append"}, {"mode": "append", "dry_run": True}]
    for how in appends:
        with pytest.raises(InvalidInputError, match="'id' has the type string here and int64 in"):
            write(other, uri, partition_by="dt", **how)
    with pytest.raises(InvalidInputError) as caught:
        batch_writer(uri, query="q", partition_by="dt")(other, 0)
    assert caught.value.code == "OTHER_SCHEMA"
    assert write(other, uri, partition_by="dt", mode="append", check_schema=False).rows == 1


def test_write_leaves_no_partition_of_another_type(session: SparkSession, place: Place) -> None:
    """By its tasks' manifests; tests/writer/test_overwrite_of_partitions.py has more."""
    frame = session.createDataFrame([(1, "a"), (2, "b")], "id bigint, dt string")
    other = frame.selectExpr("CAST(id AS string) AS id", "dt")
    how: Any = {"mode": "overwrite", "partition_overwrite_mode": "dynamic", "partition_by": "dt"}
    write(frame, place.uri, partition_by="dt")
    for name in ("a", "b"):
        with pytest.raises(InvalidInputError, match="'id' has the type string here and int64 in"):
            write(other.where(f"dt = '{name}'"), place.uri, **how)
    assert write(other, place.uri, **how).replaced == 2
