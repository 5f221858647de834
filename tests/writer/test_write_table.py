"""`write_table`: what each library's frame has is what readers find."""

import io
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import date, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import s3commit
from s3commit import AccessError, InvalidInputError, JobFailedError, NotFoundError, S3CommitError
from s3commit.arrow import files
from s3commit.arrow.other_schema import check_schema
from s3commit.core.formats.layout import parse_destination
from s3commit.core.ports.objects import ListedObject
from s3commit.writer.access import shared_client
from s3commit.writer.target import StreamClosedError
from tests.fakes.memory import MemoryObjectStore
from tests.lake import Lake

DAYS = [date(2026, 11, 20), date(2026, 11, 21), date(2026, 11, 20), None]
ROWS = {"n": [1, 2, 3, 4], "name": ["a/b", "ü", "", None], "dt": DAYS, "hot": [True, False] * 2}
TABLE = pa.table(ROWS)
MAKERS: dict[str, Callable[[], Any]] = {
    "pyarrow": lambda: TABLE,
    "reader": lambda: TABLE.to_reader(1),
    "pandas": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.DataFrame(TABLE),
    "categories": lambda: pl.DataFrame(TABLE).cast({"name": pl.Categorical}),
    "duckdb": lambda: duckdb.from_arrow(TABLE),
}


@pytest.fixture
def lake(memory_lake: Lake) -> Lake:
    return memory_lake


def found(lake: Lake) -> dict[str, list[dict[str, Any]]]:
    """The rows of the table's files, by directory; of hidden files nothing."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for key in lake.visible("t/"):
        directory, _, name = key.removeprefix("t/").rpartition("/")
        if name.startswith("part-"):
            read = parquet.ParquetFile(io.BytesIO(lake.body(key))).read()
            rows.setdefault(directory, []).extend(read.to_pylist())
    return rows


@pytest.mark.parametrize("maker", MAKERS)
def test_rows_of_every_library_are_what_readers_find(lake: Lake, maker: str) -> None:
    uri = f"s3://{lake.bucket}/t/"
    result = s3commit.write_table(MAKERS[maker](), uri, compression="zstd", max_records_per_file=3)
    assert (result.rows, result.files) == (4, 2)
    assert found(lake) == {"": TABLE.to_pylist()}
    again = s3commit.write_table(
        MAKERS[maker](), uri, mode="overwrite", partition_by=["dt", "name"], min_rows=4
    )
    assert (again.rows, again.replaced) == (4, 2)
    rows = {
        "dt=2026-11-20/name=a%2Fb": [{"n": 1, "hot": True}],
        "dt=2026-11-21/name=ü": [{"n": 2, "hot": False}],
        "dt=2026-11-20/name=__HIVE_DEFAULT_PARTITION__": [{"n": 3, "hot": True}],
        "dt=__HIVE_DEFAULT_PARTITION__/name=__HIVE_DEFAULT_PARTITION__": [{"n": 4, "hot": False}],
    }
    assert found(lake) == rows


def test_a_table_obeys_mode_scope_key_and_conditions(lake: Lake) -> None:
    uri = f"s3://{lake.bucket}/t/"
    first = s3commit.write_table(TABLE, uri, partition_by="hot", idempotency_key="day")
    with pytest.raises(InvalidInputError, match="already exists; give mode='append'"):
        s3commit.write_table(TABLE, uri, partition_by="hot")
    how: Any = {"mode": "append", "partition_by": "hot", "idempotency_key": "day"}
    look = s3commit.write_table(TABLE, uri, dry_run=True, **how)
    assert (look.job_id, look.already_committed, look.dry_run) == (first.job_id, True, True)
    assert (first.outcome, look.outcome) == ("COMMITTED", None)
    how["note"] = "no part of the key"
    again = s3commit.write_table(TABLE, uri, **how)
    assert (again.job_id, again.already_committed, again.rows) == (first.job_id, True, 0)
    some = TABLE.slice(1, 1)
    s3commit.write_table(
        some, uri, mode="overwrite", partition_by="hot", partition_overwrite_mode="dynamic"
    )
    assert {where: [row["n"] for row in rows] for where, rows in found(lake).items()} == {
        "hot=true": [1, 3],
        "hot=false": [2],
    }
    with pytest.raises(JobFailedError, match="the job has 1 row, fewer than 2"):
        s3commit.write_table(some, uri, mode="append", partition_by="hot", min_rows=2)


def test_times_are_those_that_every_reader_has_and_lose_nothing_in_silence(lake: Lake) -> None:
    uri = f"s3://{lake.bucket}/t/"
    times = pd.DataFrame({"t": [pd.Timestamp("2026-11-26T01:02:03.5")]})
    s3commit.write_table(times.astype({"t": "datetime64[ns]"}), uri)
    (key,) = [key for key in lake.visible("t/") if "/part-" in key]
    assert parquet.read_schema(io.BytesIO(lake.body(key))).field("t").type == pa.timestamp("us")
    exact = pa.table({"t": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(InvalidInputError, match="cast it first"):
        s3commit.write_table(exact, uri, mode="append")
    assert (len(lake.visible("t/part")), lake.open_uploads()) == (1, [])


def test_rows_that_cannot_be_read_abort_the_job_in_one_line(lake: Lake) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches()
        raise KeyError("no")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(InvalidInputError, match=r"no.* The job is aborted; none of its") as caught:
        s3commit.write_table(reader, f"s3://{lake.bucket}/t/")
    assert "\n" not in caught.value.message
    assert lake.visible() == lake.open_uploads() == []


@pytest.mark.parametrize("columns", [(), "p"])
@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("in_struct", [True, False])
def test_a_null_where_the_schema_permits_none_aborts_the_job_in_one_line(
    lake: Lake, in_struct: bool, unit: Any, columns: Any
) -> None:
    values, field = pa.array([1000, None], pa.timestamp(unit)), pa.field("v", pa.timestamp(unit))
    field = field.with_nullable(False)
    if in_struct:  # which is itself null there
        values = pa.StructArray.from_arrays([values], fields=[field], mask=values.is_null())
        field = pa.field("s", values.type)
    table = pa.table([values, ["x", "x"]], schema=pa.schema([field, ("p", pa.string())]))
    with pytest.raises(InvalidInputError, match=r"null.* The job is aborted; none of") as caught:
        s3commit.write_table(table, f"s3://{lake.bucket}/t/", partition_by=columns)
    assert (caught.value.code, "\n" in caught.value.message) == ("BAD_SCHEMA", False)
    assert lake.visible() == lake.open_uploads() == []


def test_an_upload_that_was_aborted_is_no_fault_of_the_rows(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise StreamClosedError("write to s3://lake/t/part-0, which is aborted")

    monkeypatch.setattr(files, "open_writer", fail)
    with pytest.raises(StreamClosedError):
        s3commit.write_table(TABLE, f"s3://{lake.bucket}/t/")


@pytest.mark.parametrize(
    ("day", "name"),
    [
        (-(2**31), None),
        (-719529, None),  # the last before the year 0
        (-719528, "0000-01-01"),
        (2932896, "9999-12-31"),
        (2932897, None),
        (2**31 - 1, None),  # has no text in Arrow
    ],
)
def test_a_date_makes_sparks_name_or_is_refused(lake: Lake, day: int, name: str | None) -> None:
    table = pa.table({"d": pa.array([None, day], pa.date32()), "n": [0, 1]})
    if name is None:
        with pytest.raises(InvalidInputError, match="outside of the years 0 to 9999") as caught:
            s3commit.write_table(table, f"s3://{lake.bucket}/t/", partition_by="d")
        assert caught.value.message.endswith("none of its files becomes visible.")
        assert lake.visible() == lake.open_uploads() == []
    else:
        s3commit.write_table(table, f"s3://{lake.bucket}/t/", partition_by="d")
        assert any(key.startswith(f"t/d={name}/part-") for key in lake.visible())


@pytest.mark.parametrize("columns", [(), "hot"])
def test_a_batch_without_rows_is_a_table_without_rows(lake: Lake, columns: Any) -> None:
    empty = pa.RecordBatchReader.from_batches(
        TABLE.schema,
        TABLE.slice(0, 0).to_batches() or [pa.RecordBatch.from_pylist([], schema=TABLE.schema)],
    )
    result = s3commit.write_table(empty, f"s3://{lake.bucket}/none/", partition_by=columns)
    assert (result.rows, result.files) == (0, 0 if columns else 1)


@pytest.mark.parametrize(
    ("table", "columns", "says"),
    [
        ([1], (), "__arrow_c_stream__"),
        (SimpleNamespace(mapInArrow=None), (), r"s3commit\.spark\.write\(df, path\)"),
        (pa.table({"a": [1], "A": [2]}), (), "'a' exists twice"),
        (pa.table([[1], [2]], names=["a", "a"]), (), "'a' exists twice"),
        (TABLE, "day", "'day' of partition_by is not in the table"),
        (TABLE, ["dt", "dt"], "'dt' is in partition_by twice"),
        (pa.table({".a": [1], "b": [1]}), ".a", "starts with a dot"),
        (pa.table({"a": [0.5], "b": [1]}), "a", "without a directory name"),
        (pa.table({"a": [1]}), "a", "no column is left"),
        (pa.table({"a": pa.nulls(1, pa.month_day_nano_interval())}), (), "parquet can't hold"),
        (pa.table({"a": pa.nulls(1)}), (), "'a' has the type null, .* give it one"),
        (pd.DataFrame({"a": ["x"]}).astype(object).head(0), (), "'a' has the type null"),
        (
            pl.DataFrame({"a": [[timedelta(1)]]}),
            (),
            r"has the type large_list<.*duration\[us\]>, .* a duration",
        ),
        *(
            (pa.table({"t": pa.nulls(1, kind)}), (), "'t' has the type time.* a time to text")
            for kind in (pa.time32("s"), pa.time64("us"), pa.time64("ns"))
        ),
        (duckdb.sql("select error('no') as a"), (), "cannot be read as Arrow: .*no"),
        (pa.table({"": [1]}), (), "'' needs a name"),
        (pa.table({"s": [{"a": 1, "A": 2}]}), (), "'a' exists twice"),
        (pd.DataFrame({"a": [1, 2, 1]}).query("a == 1"), (), "index of pandas without a name"),
        (pd.DataFrame({"a": [1, "x"]}), (), "cannot be read as Arrow"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), (), "Duplicate column names"),
        (pl.LazyFrame({"a": [1]}), (), r"LazyFrame: call .collect\(\) first"),
        (duckdb.connect().execute("select 1"), (), r"the relation that .sql\(...\) returns"),
        ([1], (), "not builtins.list"),
    ],
)
def test_what_can_not_be_written_is_told(lake: Lake, table: Any, columns: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says) as caught:
        s3commit.write_table(table, f"s3://{lake.bucket}/t/", partition_by=columns)
    assert caught.value.message.endswith("Nothing was written.")
    assert "\n" not in caught.value.message
    assert lake.visible() == lake.open_uploads() == []


@pytest.mark.parametrize(
    "start",
    [
        s3commit.open_job,
        partial(s3commit.write_table, TABLE),
        partial(s3commit.write_table, TABLE, dry_run=True),
    ],
)
@pytest.mark.parametrize(
    "wrong", ["bucket", "endpoint", "credentials", "pipeline", "path", "files"]
)
def test_each_error_before_the_first_file_says_that_nothing_was_written(
    served_lake: Lake, monkeypatch: pytest.MonkeyPatch, start: Callable[..., Any], wrong: str
) -> None:
    bucket = "no-such-bucket" if wrong == "bucket" else served_lake.bucket
    if wrong == "endpoint":
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    elif wrong == "credentials":
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
    elif wrong == "pipeline":
        quiet: Any = {}
        served_lake.client.put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration=quiet
        )
    elif wrong in {"path", "files"}:
        served_lake.client.put_object(
            Bucket=bucket, Key="t" if wrong == "path" else "t/a", Body=b"1"
        )
    shared_client.cache_clear()
    with pytest.raises(S3CommitError) as caught:
        start(f"s3://{bucket}/t/", mode="error")
    assert str(caught.value).endswith(". Nothing was written.")
    assert caught.value.message.count("Nothing was written") == 1


def test_a_dry_run_writes_nothing_and_says_what_an_overwrite_would_remove(
    served_lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = f"s3://{served_lake.bucket}/t/"
    s3commit.write_table(TABLE, uri, partition_by="hot")
    before = served_lake.visible()
    for mode, removed in (("append", 0), ("overwrite", 2)):
        how: Any = {"mode": mode, "partition_by": "hot", "dry_run": True}
        result = s3commit.write_table(TABLE, uri, **how)
        assert (result.dry_run, result.replaced, result.files) == (True, removed, 0)
        assert "dry run at" in capsys.readouterr().err
    with pytest.raises(InvalidInputError, match="already exists"):
        s3commit.write_table(TABLE, uri, partition_by="hot", dry_run=True)
    with pytest.raises(InvalidInputError, match="partitioned by hot"):
        s3commit.write_table(TABLE, uri, mode="append", partition_by="dt", dry_run=True)
    with pytest.raises(NotFoundError):
        s3commit.write_table(TABLE, "s3://no-such-bucket/t/", dry_run=True)

    def refuse(*_: object, **__: object) -> None:
        raise AccessError("AccessDenied")

    monkeypatch.setattr("s3commit.aws.s3.S3ObjectStore.create_upload", refuse)
    with pytest.raises(AccessError):
        s3commit.write_table(TABLE, uri, mode="append", partition_by="hot", dry_run=True)
    assert (served_lake.visible(), served_lake.open_uploads()) == (before, [])


def test_another_type_is_refused_where_files_stay_and_nothing_is_written(lake: Lake) -> None:
    uri, other = f"s3://{lake.bucket}/t/", pa.table({"n": ["x"], "hot": [True]})
    appends: list[Any] = [{"mode": "append"}, {"mode": "append", "dry_run": True}]
    s3commit.write_table(TABLE, uri, partition_by="hot")
    before = lake.visible()
    for how in appends:
        with pytest.raises(
            InvalidInputError, match="'n' has the type string here and int64 in s3:"
        ):
            s3commit.write_table(other, uri, partition_by="hot", **how)
    with pytest.raises(InvalidInputError, match=r"'N' is spelled 'n' in .* rename it") as caught:
        s3commit.write_table(
            pa.table({"N": [1], "hot": [True]}), uri, mode="append", partition_by="hot"
        )
    assert caught.value.code == "OTHER_SCHEMA"
    assert caught.value.message.endswith("or give check_schema=False. Nothing was written.")
    assert (lake.visible(), lake.open_uploads()) == (before, [])
    more: Any = {"mode": "append", "partition_by": "hot"}
    assert s3commit.write_table(TABLE.add_column(0, "x", [[0] * 4]), uri, **more).rows == 4
    assert s3commit.write_table(other, uri, check_schema=False, **more).rows == 1
    assert s3commit.write_table(other, uri, mode="overwrite", partition_by="hot").replaced == 5
    # Without the check of partitions that of the schema is made too.
    with pytest.raises(InvalidInputError, match="'n' has the type int64 here and string in"):
        s3commit.write_table(TABLE, uri, mode="append", check_partitions=False)


class Ends(MemoryObjectStore):
    """Counts the requests for the end of a file."""

    asked = 0

    def last_bytes(self, bucket: str, key: str, count: int) -> bytes:
        self.asked += 1
        if key == "t/closed":
            raise AccessError("no")
        return super().last_bytes(bucket, key, count)


def parquet_of(table: pa.Table, **how: Any) -> bytes:
    sink = io.BytesIO()
    parquet.write_table(table, sink, **how)
    return sink.getvalue()


SMALL = parquet_of(pa.table({"n": ["x"]}))
WIDE = parquet_of(pa.table({"n": ["x"], **{f"column {number}": [1] for number in range(2000)}}))
FILES: dict[str, tuple[bytes, int, bool]] = {  # with requests, and whether they are compared
    "small": (SMALL, 1, True),
    "wide": (WIDE, 2, True),
    "text": (b"n\nx\n", 1, False),
    "empty": (b"", 1, False),
    "cut": (SMALL[-100:], 2, False),
    "huge": (SMALL[:-8] + (2**31).to_bytes(4, "little") + b"PAR1", 1, False),
    "encrypted": (SMALL[:-4] + b"PARE", 1, False),
    "closed": (SMALL, 1, False),
    "gone": (SMALL, 1, False),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_compared_by_its_end_if_that_can_be_read(name: str) -> None:
    body, requests, compared = FILES[name]
    store, place = Ends("lake"), parse_destination("s3://lake/t/")
    if name != "gone":
        store.put("lake", f"t/{name}", body)
    file = ListedObject(f"t/{name}", "", len(body))
    check = partial(
        check_schema, pa.schema({"n": pa.int64()}), store=store, destination=place, file=file
    )
    with pytest.raises(InvalidInputError) if compared else nullcontext():
        check(partition_by=[])
    assert store.asked == requests
    check(partition_by=["N"])  # readers take the path's values
