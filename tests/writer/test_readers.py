"""What libraries without Spark read while jobs write (docs/guide/readers.md), and write."""

import io
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import duckdb_extension_httpfs
import pandas
import pandas as pd
import polars
import polars as pl
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal
from pyarrow import csv, dataset, parquet

import s3commit
from tests.lake import Lake
from tests.moments import Table

Rows = tuple[list[str], list[int]]  # the columns, and the ids
Reader = Callable[[str], Rows]


@pytest.fixture
def duck(lake: Lake) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with its extension for S3, which leads to the test's server."""
    folder = Path(duckdb_extension_httpfs.__file__).parent / "extensions"
    [extension] = folder.rglob("httpfs.duckdb_extension")
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        connection.load_extension(str(extension))
        endpoint = urlsplit(lake.client.meta.endpoint_url).netloc
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID 'testing', SECRET 'testing', REGION 'us-east-1',"
            f" ENDPOINT '{endpoint}', URL_STYLE 'path', USE_SSL false)"
        )
        yield connection


def arrow(form: str, uri: str) -> Rows:
    found = dataset.dataset(uri, format=form, partitioning="hive").to_table()
    return found.column_names, list(found["id"].to_pylist())


def ducks(connection: duckdb.DuckDBPyConnection, read: str, pattern: str, uri: str) -> Rows:
    found = connection.sql(f"SELECT * FROM {read}('{uri}{pattern}')")
    return found.columns, [row[0] for row in found.project("id").fetchall()]


def rows(frame: Any) -> Rows:
    return list(frame.columns), list(frame["id"])


def readers(form: str, duck: duckdb.DuckDBPyConnection) -> dict[str, Reader]:
    """By the patterns of the page."""
    if form == "parquet":
        hive = partial(polars.scan_parquet, hive_partitioning=True)
        return {
            "pyarrow": partial(arrow, form),
            "pandas": lambda uri: rows(pandas.read_parquet(uri)),
            "polars": lambda uri: rows(hive(f"{uri}**/*.parquet").collect()),
            "DuckDB": partial(ducks, duck, "read_parquet", "**/*.parquet"),
        }
    if form == "csv":
        return {
            "pyarrow": partial(arrow, form),
            "polars": lambda uri: rows(polars.scan_csv(f"{uri}**/*.csv").collect()),
            "DuckDB": partial(ducks, duck, "read_csv", "**/*.csv"),
        }
    return {
        "pyarrow": partial(arrow, form),
        "polars": lambda uri: rows(polars.scan_ndjson(f"{uri}**/part-*.json").collect()),
        "DuckDB": partial(ducks, duck, "read_json", "**/[!_]*.json"),
    }


@pytest.mark.parametrize("partitioned", [False, True], ids=["flat", "partitions"])
@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
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


ROWS = 1000


@pytest.fixture
def frame() -> pd.DataFrame:
    days = ["2026-11-20", "2026-11-21"]
    return pd.DataFrame(
        {
            "n": range(ROWS),
            "price": [number / 7 for number in range(ROWS)],
            "name": [f"ü{number % 13}" for number in range(ROWS)],
            "dt": [days[number % 2] for number in range(ROWS)],
        }
    )


def test_file_objects_of_a_task_take_what_every_library_writes(
    lake: Lake, frame: pd.DataFrame
) -> None:
    arrow, polars = pa.Table.from_pandas(frame), pl.from_pandas(frame)
    writers: dict[str, Callable[[Any], object]] = {
        "plain.csv": lambda file: file.write(b"n\n1\n"),
        "arrow.parquet": partial(parquet.write_table, arrow),
        "arrow.csv": partial(csv.write_csv, arrow),
        "pandas.parquet": frame.to_parquet,
        "pandas.csv": partial(frame.to_csv, index=False),
        "polars.parquet": polars.write_parquet,
        "polars.csv": polars.write_csv,
        "lazy.parquet": polars.lazy().sink_parquet,
    }
    with s3commit.open_job(f"s3://{lake.bucket}/t/") as job:
        with job.task("0") as task:
            for name, write in writers.items():
                with task.open(name, rows=ROWS) as file:
                    write(file)
        result = job.commit([task.counted])
    assert (result.files, result.rows) == (8, 8 * ROWS)
    for key in lake.visible("t/"):
        body = io.BytesIO(lake.body(key))
        if "plain" in key:
            assert body.getvalue() == b"n\n1\n"
        else:
            read = pd.read_parquet(body) if "parquet" in key else pd.read_csv(body)
            assert_frame_equal(read, frame, obj=key)
