"""Threads of one session write side by side, each by its own settings."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.native.conftest import FAILURES, settings, uri
from tests.native.sides import DONE, kind
from tests.native.test_session import await_requests
from tests.spark.tiny import Place, TinyPipeline

OURS = "spark.s3commit."
THREADS = "s3commit."  # what the names of a thread's settings begin with
DAYS = range(6)


def ended(spark: SparkSession, place: Place, *, by: str, also: Barrier, **own: str) -> str:
    """How a write of this thread ended, whose settings are those beside the session's."""
    context: Any = spark.sparkContext  # its types know no unset
    for name, value in own.items():
        context.setLocalProperty(THREADS + name.replace("__", "."), value)
    try:
        also.wait()
        frame = spark.range(6).selectExpr("id", "'x' AS dt", "id AS hour")
        frame.write.mode("append").partitionBy(*by.split()).parquet(uri(place))
    except FAILURES as error:
        return kind(error)
    finally:
        for name in own:
            context.setLocalProperty(THREADS + name.replace("__", "."), None)
    return DONE


@pytest.mark.parametrize(
    ("by", "own", "how"),
    [
        ("dt", {"conditions__minFiles": "99"}, "CONDITION_FAILED"),
        ("dt hour", {"checkPartitions": "false"}, DONE),
        ("dt", {"commitTimeout": "1s"}, "OUTCOME_UNKNOWN"),
        ("dt", {"idempotencyKey": "used"}, "KEY_TAKEN"),
    ],
    ids=str,
)
def test_a_threads_settings_act_on_its_own_writes(
    spark: SparkSession, tiny: TinyPipeline, place: Place, by: str, own: dict[str, str], how: str
) -> None:
    """Beside it another thread does the same without them."""
    used = spark.range(1).selectExpr("id", "'first' AS dt").write.mode("append")
    used.option("idempotencyKey", "used").partitionBy("dt").parquet(uri(place))
    also = Barrier(2)
    with ThreadPoolExecutor(2) as threads:
        with tiny.held():
            mine = threads.submit(ended, spark, place, by=by, also=also, **own)
            other = threads.submit(ended, spark, place, by=by, also=also)
            if how == "OUTCOME_UNKNOWN":
                assert mine.result() == how
            elif "checkPartitions" in own:
                assert other.result() == "OTHER_PARTITIONS"
            else:
                await_requests(tiny, place.destination.prefix, 2)
        assert mine.result() == how
        assert other.result() == ("OTHER_PARTITIONS" if "checkPartitions" in own else DONE)


@pytest.mark.parametrize(
    "by", [THREADS, OURS, ""], ids=["the thread's", "its own", "the session's"]
)
def test_no_rows_are_lost_under_keys_of_threads(spark: SparkSession, db: str, by: str) -> None:
    """Six days by three threads. By keys of the session, which threads share, a write can fail."""
    table = f"{db}.days"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, dt STRING) USING parquet PARTITIONED BY (dt)")

    def write(day: int) -> bool:
        key = (by or OURS) + "idempotencyKey"
        context: Any = spark.sparkContext
        if by:
            context.setLocalProperty(key, f"day-{day}")
        else:
            spark.conf.set(key, f"day-{day}")
        try:
            spark.sql(f"INSERT INTO {table} SELECT id, 'd{day}' FROM range(10)")
        except FAILURES as error:
            assert kind(error) == "KEY_TAKEN"
            return False
        finally:
            if by:
                context.setLocalProperty(key, None)
            else:
                spark.conf.unset(key)
        return True

    others = {OURS + "idempotencyKey": "of-the-session"} if by == THREADS else {}
    with settings(spark, **others), ThreadPoolExecutor(3) as threads:
        done = list(threads.map(write, DAYS))
    assert all(done) or not by
    assert spark.table(table).count() == 10 * sum(done)
