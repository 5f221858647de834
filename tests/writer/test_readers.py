"""What libraries without Spark and Iceberg tables read while jobs write (docs/guide/readers.md)."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg
import pandas as pd
import polars as pl
import pytest
from pyarrow import dataset
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField

import s3commit
from examples.recipes.iceberg_snapshot import JOBS, follow
from s3commit.core.model.destination import Scope
from tests import names
from tests.lake import Lake
from tests.moments import STATES, Table, body
from tests.past import past_job

Rows = tuple[list[str], list[int]]  # the columns, and the ids


@contextmanager
def connected(endpoint: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with its extensions for Iceberg and for S3, which leads to the server."""
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        for module in (duckdb_extension_httpfs, duckdb_extension_avro, duckdb_extension_iceberg):
            [extension] = Path(module.__file__ or "").parent.rglob("*.duckdb_extension")
            connection.load_extension(str(extension))
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID 'testing', SECRET 'testing', REGION 'us-east-1',"
            f" ENDPOINT '{urlsplit(endpoint).netloc}', URL_STYLE 'path', USE_SSL false)"
        )
        yield connection


@pytest.fixture
def duck(lake: Lake) -> Iterator[duckdb.DuckDBPyConnection]:
    with connected(lake.client.meta.endpoint_url) as connection:
        yield connection


def arrow(form: str, uri: str) -> Rows:
    found = dataset.dataset(uri, format=form, partitioning="hive").to_table()
    return found.column_names, list(found["id"].to_pylist())


def ducks(connection: duckdb.DuckDBPyConnection, read: str, pattern: str, uri: str) -> Rows:
    found = connection.sql(f"SELECT * FROM {read}('{uri}{pattern}')")
    return found.columns, [row[0] for row in found.project("id").fetchall()]


def rows(frame: Any) -> Rows:
    return list(frame.columns), list(frame["id"])


def readers(form: str, duck: duckdb.DuckDBPyConnection) -> dict[str, names.Reader]:
    """By the patterns of the page."""
    if form == "parquet":
        hive = partial(pl.scan_parquet, hive_partitioning=True)
        return {
            "pyarrow": partial(arrow, form),
            "pandas": lambda uri: rows(pd.read_parquet(uri)),
            "polars": lambda uri: rows(hive(f"{uri}**/*.parquet").collect()),
            "DuckDB": partial(ducks, duck, "read_parquet", "**/*.parquet"),
        }
    if form == "csv":
        return {
            "pyarrow": partial(arrow, form),
            "polars": lambda uri: rows(pl.scan_csv(f"{uri}**/*.csv").collect()),
            "DuckDB": partial(ducks, duck, "read_csv", "**/*.csv"),
        }
    return {
        "pyarrow": partial(arrow, form),
        "polars": lambda uri: rows(pl.scan_ndjson(f"{uri}**/part-*.json").collect()),
        "DuckDB": partial(ducks, duck, "read_json", "**/part-*.json"),
    }


# Parquet in each layout; the other formats in one, and in the other every night.
LAYOUTS = [
    *(("parquet", False), ("parquet", True), ("csv", True), ("json", False)),
    *(pytest.param(*pair, marks=pytest.mark.long) for pair in (("csv", False), ("json", True))),
]


@pytest.mark.parametrize(("form", "partitioned"), LAYOUTS)
def test_readers_get_the_rows_of_the_data_at_each_moment(
    lake: Lake, duck: duckdb.DuckDBPyConnection, form: str, partitioned: bool
) -> None:
    table = Table(lake.ports, lake.bucket, form, partitioned)
    asked = readers(form, duck)

    def look() -> None:
        for name, read in asked.items():
            columns, ids = read(table.uri)
            assert sorted(ids) == table.ids, name
            # Polars has no way to read partitions of other formats.
            known = partitioned and (name, form) not in {("polars", "csv"), ("polars", "json")}
            assert ("p" in columns) == (known and bool(ids)), name

    assert table.live(look) > 50


def test_readers_find_what_the_page_says(lake: Lake, duck: duckdb.DuckDBPyConnection) -> None:
    tables = names.fill(lake.client, lake.bucket)
    for reader, read in readers("parquet", duck).items():
        fates = {key: names.found(read, uri) for key, uri in tables.items()}
        assert fates == names.on_the_page(reader), reader
    assert names.on_the_page("written") == names.WRITTEN


@pytest.mark.parametrize("column", ["_load_date", "dt"])
def test_what_is_written_is_read_or_refused_before_the_first_task(
    lake: Lake, duck: duckdb.DuckDBPyConnection, column: str
) -> None:
    uri, frame = f"s3://{lake.bucket}/_raw/t/", pd.DataFrame({"id": [1], column: ["_a"]})

    def by_a_task(**how: Any) -> None:
        with s3commit.open_job(uri, **how) as job:
            task = pickle.loads(pickle.dumps(job.task("0")))
            with task, task.open(f"{column}=_a/part-0.parquet") as file:
                file.write(body("parquet", [2]))
            job.commit([task.counted])

    by_a_table = partial(s3commit.write_table, frame, uri, mode="append")
    for write in (by_a_table, by_a_task):
        if column.startswith("_"):
            with pytest.raises(s3commit.InvalidInputError, match="check_names=False"):
                write(partition_by=column)
        write(partition_by=column, check_names=column == "dt")
    for reader, read in readers("parquet", duck).items():
        if column == "dt" or reader in {"polars", "DuckDB"}:
            assert sorted(read(uri)[1]) == [1, 2], reader
    own = {"ignore_prefixes": [".", "_SUCCESS", "_commits", "__magic"]}
    assert sorted(pd.read_parquet(uri, **own)["id"]) == [1, 2]
    assert dataset.dataset(uri, partitioning="hive", **own).count_rows() == 2


SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", LongType()))
BY_P = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))
# What the jobs of `Table.live` commit, one after the other: two appends, and a replace.
COMMITTED = [[1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7, 8], [13, 14, 15, 16]]


@pytest.fixture(params=[UNPARTITIONED_PARTITION_SPEC, BY_P], ids=["flat", "partitions"])
def table(lake: Lake, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[IcebergTable]:
    credentials = dict.fromkeys(("s3.access-key-id", "s3.secret-access-key"), "testing")
    endpoint = {"s3.endpoint": lake.client.meta.endpoint_url, "s3.region": "us-east-1"}
    database, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"s3://{lake.bucket}/iceberg"
    catalog = SqlCatalog("lake", uri=database, warehouse=warehouse, **endpoint, **credentials)
    catalog.create_namespace("lake")
    yield catalog.create_table("lake.table", SCHEMA, partition_spec=request.param)
    catalog.close()


def ids_of(table: IcebergTable) -> list[int]:
    """By PyIceberg, which opens the files."""
    return sorted(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


def test_every_count_is_one_that_a_commit_made_true(
    lake: Lake, duck: duckdb.DuckDBPyConnection, table: IcebergTable
) -> None:
    partitioned = bool(table.spec().fields)
    files = Table(lake.ports, lake.bucket, "parquet", partitioned)
    seen: list[list[int]] = []

    def ducks() -> list[int]:
        found = duck.sql(f"SELECT id FROM iceberg_scan('{table.metadata_location}') ORDER BY id")
        return [number for (number,) in found.fetchall()]

    def look() -> None:
        """Before the table follows, a file may be gone: an error, and no wrong count."""
        if table.current_snapshot():
            with suppress(FileNotFoundError):
                seen.append(ids_of(table))
            with suppress(duckdb.HTTPException, duckdb.IOException):
                seen.append(ducks())
        new = follow(table, files.uri)
        assert follow(table, files.uri) == [], "repeated"
        if new:
            seen.append(ids_of(table))
            assert seen[-1] == ducks() == files.ids
            snapshot: Any = table.current_snapshot()
            assert snapshot.summary[JOBS].split() == new

    files.live(look, (*STATES, "PublishSuccess"))
    assert [ids for index, ids in enumerate(seen) if ids not in seen[:index]] == COMMITTED
    assert len(table.snapshots()) == 3, "the job that was aborted has none"
    if partitioned:
        found: Any = table.scan(row_filter="p = 1").to_arrow().to_pydict()
        assert sorted(found["id"]) == [15, 16]
        assert found["p"] == [1, 1], "the files do not have the column"
    # Without the snapshots that name them, the jobs are known by their files.
    old = [one.snapshot_id for one in table.snapshots()]
    table.maintenance.expire_snapshots().by_ids(old[:-1]).commit()
    assert follow(table, files.uri) == []
    before = files.ids
    job_id = files.append()
    assert (len(follow(table, files.uri)), ids_of(table)) == (3, files.ids)
    undone = s3commit.undo(files.uri, job_id)
    assert (follow(table, files.uri), ids_of(table)) == ([undone.job_id], before)


def past(lake: Lake, files: dict[str, int], *, ended: bool = True, **how: Any) -> str:
    """A committed job with a row in each file, as it has left S3; the key of its result."""
    bodies = {f"t/{name}": body("parquet", [row]) for name, row in files.items()}
    job = past_job(lake.store, f"s3://{lake.bucket}/t/", bodies, **how)
    for key in (job.job, job.result)[: 1 + ended]:
        lake.store.put(lake.bucket, key, b"{}")
    return job.result


def remove(lake: Lake, *names: str) -> None:
    for one in list(lake.store.list(lake.bucket, "t/")):
        if one.key.startswith(tuple(f"t/{name}-" for name in names)):
            lake.store.delete(lake.bucket, one.key)


def test_what_a_job_is_removing_waits_until_it_has_ended(lake: Lake, table: IcebergTable) -> None:
    """An append stayed beside one that replaces; the next one has removed half of it."""
    uri = f"s3://{lake.bucket}/t/"
    past(lake, {"p=0/a": 1, "p=0/b": 2})
    past(lake, {"p=0/c": 3}, removes=1)
    result = past(lake, {"p=0/d": 4}, removes=3, ended=False)
    remove(lake, "p=0/a")
    assert (follow(table, uri), table.current_snapshot()) == ([], None)
    remove(lake, "p=0/b", "p=0/c")
    lake.store.put(lake.bucket, result, b"{}")
    assert (len(follow(table, uri)), ids_of(table)) == (3, [4])


def test_of_a_job_that_a_later_one_has_replaced_in_part_there_is_no_snapshot_alone(
    lake: Lake, table: IcebergTable
) -> None:
    past(lake, {"p=0/a": 1, "p=1/b": 2})
    past(lake, {"p=0/c": 3}, removes=1, scope=Scope.PARTITION)
    remove(lake, "p=0/a")
    assert len(follow(table, f"s3://{lake.bucket}/t/")) == 2
    assert (len(table.snapshots()), ids_of(table)) == (1, [2, 3])
