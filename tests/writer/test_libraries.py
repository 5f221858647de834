"""The libraries that people write data with, by the file object of a task, and what comes back."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
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
