"""A PySpark driver as anyone would write it, to be killed.

Run as ``python -m tests.engines.chaos.driver.program CLIENT TASK``.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import s3commit.spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS = 2
ROWS = 3_600  # of some 4 KB: four files, two of which take two parts
REPEATED = 64


class Client(StrEnum):
    """What the driver writes with."""

    WRITE = "write"  # the function `write`
    NATIVE = "native"  # Spark's own writer, with the jar


@dataclass(frozen=True)
class Task:
    """What the driver is to do. ``survives``: its JVM lives on without it."""

    uri: str
    mode: str = "append"
    options: Mapping[str, str] = field(default_factory=dict)
    survives: bool = False

    def encode(self) -> str:
        """As an argument of the program."""
        return json.dumps(asdict(self))


def text_of(number: int) -> str:
    """The long column of a row; not to be compressed by snappy, nor by dictionaries."""
    return hashlib.sha256(str(number).encode()).hexdigest() * REPEATED


def partition_of(number: int) -> int:
    """The partition of a row: most are in one."""
    return int(number % 5 == 0)


def rows(spark: SparkSession) -> DataFrame:
    """The source of the batch writes."""
    return spark.range(0, ROWS, 1, TASKS).selectExpr(
        "id", "int(id % 5 = 0) as k", f"repeat(sha2(string(id), 256), {REPEATED}) as text"
    )


def make_session(*, native: bool) -> SparkSession:
    """Small, quiet and quick to start; a task is tried three times."""
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = (
        SparkSession.builder.master(f"local[{TASKS},3]")
        .appName("a driver that will be killed")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(TASKS))
        .config("spark.driver.memory", "512m")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.log.level", "ERROR")
    )
    if native:
        from s3commit.spark.native import configure
        from tests.native.s3a import settings

        s3a = settings(os.environ["AWS_ENDPOINT_URL"])
        s3a["spark.hadoop.fs.s3a.access.key"] = os.environ["AWS_ACCESS_KEY_ID"]
        builder = configure(builder.config(map={**s3a}))
    return builder.getOrCreate()


def write(spark: SparkSession, task: Task, client: Client) -> None:
    if client is Client.NATIVE:
        options = {"compression": "uncompressed", "commitTimeout": "120s", **task.options}
        writer = rows(spark).write.mode(task.mode).partitionBy("k").options(**options)
        writer.parquet(task.uri.replace("s3://", "s3a://"))
        return
    uploads = s3commit.UploadSettings(s3commit.PartSizes(first=5 * 1024 * 1024))
    mode: Any = task.mode
    scope: Any = task.options.get("partitionOverwriteMode")
    s3commit.spark.write(
        rows(spark),
        task.uri,
        mode=mode,
        partition_by="k",
        partition_overwrite_mode=scope,
        idempotency_key=task.options.get("idempotencyKey"),
        commit_timeout=120,
        compression="none",
        uploads=uploads,
    )


def _leave_a_helper() -> None:
    """A child that holds the pipe by whose end the JVM learns of our death."""
    if os.fork() == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            time.sleep(3600)


def main() -> None:
    client, task = Client(sys.argv[1]), Task(**json.loads(sys.argv[2]))
    spark = make_session(native=client is Client.NATIVE)
    if task.survives:
        _leave_a_helper()
    write(spark, task, client)


if __name__ == "__main__":
    main()
