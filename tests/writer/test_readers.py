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

Reader = Callable[[str], list[int]]


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


def arrow(form: str, uri: str) -> list[int]:
    found = dataset.dataset(uri, format=form, partitioning="hive").to_table(columns=["id"])
    return list(found["id"].to_pylist())


def ducks(connection: duckdb.DuckDBPyConnection, read: str, pattern: str, uri: str) -> list[int]:
    rows = connection.execute(f"SELECT id FROM {read}('{uri}{pattern}')").fetchall()
    return [row[0] for row in rows]


def readers(form: str, duck: duckdb.DuckDBPyConnection) -> dict[str, Reader]:
    """By the patterns of the page."""

    def ids(frame: Any) -> list[int]:
        return list(frame["id"])

    if form == "parquet":
        return {
            "pyarrow": partial(arrow, form),
            "pandas": lambda uri: ids(pandas.read_parquet(uri)),
            "polars": lambda uri: ids(polars.scan_parquet(f"{uri}**/*.parquet").collect()),
            "DuckDB": partial(ducks, duck, "read_parquet", "**/*.parquet"),
        }
    if form == "csv":
        return {
            "pyarrow": partial(arrow, form),
            "polars": lambda uri: ids(polars.scan_csv(f"{uri}**/*.csv").collect()),
            "DuckDB": partial(ducks, duck, "read_csv", "**/*.csv"),
        }
    return {
        "pyarrow": partial(arrow, form),
        "polars": lambda uri: ids(polars.scan_ndjson(f"{uri}**/part-*.json").collect()),
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
        found = {name: sorted(read(table.uri)) for name, read in asked.items()}
        assert found == dict.fromkeys(asked, table.ids)

    assert table.live(look) > 50
