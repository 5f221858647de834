"""The libraries that people write data with, by file object and by URL, and what comes back."""

from __future__ import annotations

import io
from typing import Any

import duckdb
import fsspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal
from pyarrow import csv, dataset, fs, parquet

import s3commit
from s3commit.core.model.errors import InvalidInputError
from tests.lake import Lake

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


def only(lake: Lake, prefix: str = "t/") -> io.BytesIO:
    """The one file that became visible."""
    (key,) = lake.visible(prefix)
    return io.BytesIO(lake.body(key))


# --- by file object, from a task


@pytest.mark.parametrize("upload", ["stream", "stage"])
def test_file_objects_of_a_task_take_what_every_library_writes(
    lake: Lake, frame: pd.DataFrame, upload: str
) -> None:
    polars_frame = pl.from_pandas(frame)
    with s3commit.open_job(f"s3://{lake.bucket}/t/") as job:
        with job.task("0") as task:

            def opened(name: str) -> Any:
                return task.open(name, upload=upload, rows=len(frame))

            with opened("plain.csv") as file:
                file.write(b"n\n1\n")
            with opened("arrow.parquet") as file:
                parquet.write_table(pa.Table.from_pandas(frame), file)
            with opened("arrow.csv") as file:
                csv.write_csv(pa.Table.from_pandas(frame), file)
            with opened("pandas.parquet") as file:
                frame.to_parquet(file)
            with opened("pandas.csv") as file:
                frame.to_csv(file, index=False)
            with opened("polars.parquet") as file:
                polars_frame.write_parquet(file)
            with opened("polars.csv") as file:
                polars_frame.write_csv(file)
            with opened("lazy.parquet") as file:
                polars_frame.lazy().sink_parquet(file)
        result = job.commit([task.counted])
    assert (result.files, result.rows) == (8, 8 * ROWS)
    for key in lake.visible("t/"):
        body = io.BytesIO(lake.body(key))
        if "plain" in key:
            assert body.getvalue() == b"n\n1\n"
        else:
            read = pd.read_parquet(body) if "parquet" in key else pd.read_csv(body)
            assert_frame_equal(read, frame, obj=key)


# --- by URL, in a transaction


def test_pandas_by_url(lake: Lake, fs: Any, url: str, frame: pd.DataFrame) -> None:
    with fs.transaction:
        frame.to_parquet(f"{url}/a.parquet")
        frame.to_csv(f"{url}/b.csv", index=False)
        frame.to_csv(f"{url}/c.csv.gz", index=False)
        frame.to_json(f"{url}/d.json", orient="records")
    read = {key.rpartition(".")[2]: f"s3commit://{lake.bucket}/{key}" for key in lake.visible()}
    assert_frame_equal(pd.read_parquet(read["parquet"]), frame)
    assert_frame_equal(pd.read_csv(read["csv"]), frame)
    assert_frame_equal(pd.read_csv(read["gz"]), frame)
    assert_frame_equal(pd.read_json(read["json"], convert_dates=False), frame, rtol=1e-9)


def test_pandas_partitions_and_reads_the_table_back(
    lake: Lake, fs: Any, url: str, frame: pd.DataFrame
) -> None:
    with fs.transaction as job:
        frame.to_parquet(url, partition_cols=["dt"])
    assert job.result.files == 2
    read = pd.read_parquet(url).sort_values("n", ignore_index=True)
    assert_frame_equal(read.astype({"dt": "object"}), frame)


def test_pyarrow_writes_a_dataset_through_the_filesystem(
    lake: Lake, fs: Any, url: str, frame: pd.DataFrame
) -> None:
    table = pa.Table.from_pandas(frame)
    options = {"format": "parquet", "partitioning": ["dt"], "partitioning_flavor": "hive"}
    with fs.transaction as job:
        dataset.write_dataset(table, f"{lake.bucket}/t", filesystem=fs, **options)
    assert job.result.files == 2
    assert [key.split("/")[1] for key in lake.visible()] == ["dt=2026-11-20", "dt=2026-11-21"]
    read = dataset.dataset(f"{lake.bucket}/t", filesystem=fs, partitioning="hive").to_table()
    assert read.sort_by("n").to_pandas().equals(frame)


def test_i2_a_dataset_that_fails_in_the_middle_shows_nothing(
    lake: Lake, fs: Any, url: str, frame: pd.DataFrame
) -> None:
    batch = pa.RecordBatch.from_pandas(frame)

    def half() -> Any:
        yield batch
        raise KeyError("the source is gone")

    with pytest.raises(KeyError, match="the source is gone"), fs.transaction:
        dataset.write_dataset(
            pa.RecordBatchReader.from_batches(batch.schema, half()),
            f"{lake.bucket}/t",
            filesystem=fs,
            format="parquet",
            max_rows_per_file=100,
            max_rows_per_group=100,
        )
    lake.run_pipeline()
    assert lake.visible() == []
    assert lake.open_uploads() == []


def test_pyarrow_may_not_remove_what_is_there(
    lake: Lake, fs: Any, url: str, frame: pd.DataFrame
) -> None:
    lake.client.put_object(Bucket=lake.bucket, Key="t/old.parquet", Body=b"old")
    with pytest.raises(OSError, match="conflict='replace'"), fs.transaction:
        dataset.write_dataset(
            pa.Table.from_pandas(frame),
            f"{lake.bucket}/t",
            filesystem=fs,
            format="parquet",
            existing_data_behavior="delete_matching",
        )
    lake.run_pipeline()
    assert lake.visible() == ["t/old.parquet"]


def test_pyarrow_by_its_own_filesystem_interface(lake: Lake, fs: Any, url: str) -> None:
    through = _arrow(fs)
    with fs.transaction, through.open_output_stream(f"{lake.bucket}/t/a.bin") as stream:
        stream.write(b"abc")
    (key,) = lake.visible()
    found = through.get_file_info(f"{lake.bucket}/{key}")
    assert (found.size, found.is_file) == (3, True)


def _arrow(filesystem: Any) -> Any:
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem))


def test_pyarrow_by_uri(lake: Lake, fs: Any, frame: pd.DataFrame) -> None:
    table, uri = pa.Table.from_pandas(frame), f"fsspec+s3commit://{lake.bucket}/t"
    with fs.transaction as job:
        parquet.write_table(table, f"{uri}/a.parquet")
        dataset.write_dataset(table, f"{uri}/more", format="parquet")
    assert job.result.files == 2
    assert parquet.read_table(uri).num_rows == 2 * ROWS


def test_polars_takes_a_file_and_no_url_of_ours(lake: Lake, fs: Any, url: str) -> None:
    with fs.transaction as job, pytest.raises(FileNotFoundError):  # not written elsewhere
        pl.DataFrame({"n": [1]}).write_parquet(f"{url}/a.parquet")
    assert job.result.files == 0


def test_polars_by_file(lake: Lake, fs: Any, url: str, frame: pd.DataFrame) -> None:
    table = pl.from_pandas(frame)
    with fs.transaction, fsspec.open(f"{url}/a.parquet", "wb") as file:
        table.write_parquet(file)
    assert pl.read_parquet(only(lake)).equals(table)
    with fsspec.open(f"s3commit://{lake.bucket}/{lake.visible()[0]}") as file:
        assert pl.read_parquet(file).equals(table)


def test_duckdb_copies_to_and_reads_from_urls(
    lake: Lake, fs: Any, url: str, frame: pd.DataFrame
) -> None:
    with duckdb.connect() as database:
        database.register_filesystem(fs)
        with fs.transaction as job:
            database.execute(f"COPY (SELECT * FROM frame) TO '{url}/a.parquet' (FORMAT parquet)")
            database.execute(f"COPY (SELECT * FROM frame) TO '{url}/b.csv' (HEADER)")
        assert job.result.files == 2
        read = database.execute(f"SELECT * FROM read_parquet('{url}/a-*.parquet') ORDER BY n")
        assert_frame_equal(read.df(), frame)
        counted = database.execute(f"SELECT count(*), sum(n) FROM read_csv('{url}/b-*.csv')")
        assert counted.fetchone() == (ROWS, sum(range(ROWS)))


def test_duckdb_outside_of_a_transaction_is_refused_with_our_line(
    lake: Lake, fs: Any, url: str
) -> None:
    with duckdb.connect() as database:
        database.register_filesystem(fs)
        with pytest.raises((InvalidInputError, duckdb.Error), match="within a transaction only"):
            database.execute(f"COPY (SELECT 1 AS n) TO '{url}/a.parquet' (FORMAT parquet)")
    assert lake.visible() == []
