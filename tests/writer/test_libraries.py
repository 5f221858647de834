"""The libraries that people write data with, by the file object of a task, and what comes back."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal
from pyarrow import csv, parquet

import s3commit
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


def test_file_objects_of_a_task_take_what_every_library_writes(
    lake: Lake, frame: pd.DataFrame
) -> None:
    polars_frame = pl.from_pandas(frame)
    with s3commit.open_job(f"s3://{lake.bucket}/t/") as job:
        with job.task("0") as task:

            def opened(name: str) -> Any:
                return task.open(name, rows=len(frame))

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
