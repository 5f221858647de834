"""Tables to read, with jobs that are under way there."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import parquet

import s3commit

TABLES = {"sales": 6, "flat": 6, "events": 2}  # the rows of each


@contextmanager
def fill(place: str) -> Iterator[None]:
    """Commit the tables below ``place``; meanwhile a job of each has an open upload."""
    file = io.BytesIO()
    parquet.write_table(pa.table({"id": [1, 2, 3]}), file)
    rows = file.getvalue()
    jobs = {
        "sales": [("dt=2026-11-20/part-0.parquet", rows), ("dt=2026-11-21/part-0.parquet", rows)],
        "flat": [("part-0.parquet", rows), ("part-1.parquet", rows)],
        "events": [("part-0.json", b'{"id": 1}\n{"id": 2}\n')],
    }
    with ExitStack() as under_way:
        for table, files in jobs.items():
            for path, body in files:
                with s3commit.open_job(f"{place}{table}/") as job:
                    job.commit([_add(job, path, body)])
            under_way.callback(
                (job := s3commit.open_job(f"{place}{table}/")).abort, "the test ends"
            )
            _add(job, *files[0])
        yield


def _add(job: Any, path: str, body: bytes) -> Any:
    with job.task("0") as task, task.open(path) as file:
        file.write(body)
    return task.counted
