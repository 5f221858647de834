"""A statement that is run again while the first one waits, as after a driver that died."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from s3commit.core.model.job import Conflict, Scope
from s3commit.core.model.states import JobState
from tests.spark.tiny import BUCKET, Place, TinyPipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def await_requests(tiny: TinyPipeline, prefix: str, count: int) -> None:
    """Until so many jobs below the prefix have asked for their commit."""
    end = time.monotonic() + 60
    while (
        sum(one.key.endswith("/_request.json") for one in tiny.store.list(BUCKET, prefix)) < count
    ):
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("static", "where"), [("dt = 'a b', hour", "dt=a b/"), ("dt = 'x', hour = 1", "dt=x/hour=1/")]
)
def test_i6_the_first_overwrite_of_a_partition_replaces_it(
    spark: SparkSession, tiny: TinyPipeline, place: Place, db: str, static: str, where: str
) -> None:
    """The rows are there once."""
    table = f"{db}.t"
    spark.sql(
        f"CREATE TABLE {table} (id INT, dt STRING, hour INT) USING parquet"
        " PARTITIONED BY (dt, hour)"
    )
    values = "VALUES (7, 1)" if static.endswith("hour") else "VALUES (7)"
    insert = f"INSERT OVERWRITE {table} PARTITION ({static}) {values}"
    with ThreadPoolExecutor() as threads:
        with tiny.held():
            runs = [threads.submit(spark.sql, insert) for _ in range(2)]
            await_requests(tiny, f"{db}/", 2)
        for run in runs:
            run.result()
    assert [row.id for row in spark.sql(f"SELECT id FROM {table}").collect()] == [7]
    committed = tiny.ledger.jobs_in(JobState.COMMITTED, before="9")
    jobs = [job for job in committed if job.destination.prefix == f"{db}/t/{where}"]
    assert [(one.conflict, one.scope) for one in jobs] == [
        (Conflict.REPLACE, Scope.DIRECTORY),
        (Conflict.REPLACE, Scope.DIRECTORY),
    ]
