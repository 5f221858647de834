"""What libraries without Spark read of a table while jobs write it, by docs/guide/readers.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import duckdb_extension_httpfs
import pandas
import polars
import pytest
from pyarrow import dataset

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
