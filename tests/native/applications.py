"""Applications one after the other, with the jar and without: ``ENDPOINT JARS``.

Prints as JSON, of each, which class commits a write that is not ours; and the rows of one whose
first attempt fails.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from tests.native import s3a
from tests.spark.conftest import SETTINGS

OURS = "io.s3commit.spark.S3CommitProtocol"
PROTOCOL = "spark.sql.sources.commitProtocolClass"
CLOUD = "org.apache.spark.internal.io.cloud"
COMMITTER = "spark.hadoop.fs.s3a.committer"
# As Hadoop's page has it: hadoop-aws/tools/hadoop-aws/committers.html
NAMED = {
    PROTOCOL: f"{CLOUD}.PathOutputCommitProtocol",
    "spark.sql.parquet.output.committer.class": f"{CLOUD}.BindingParquetOutputCommitter",
}
CLOUD_JAR = "spark-hadoop-cloud"
NEEDS_CLOUD = "directory, by name"
# What an application says beside it: all ways in which Spark comes to its protocol.
APPLICATIONS: dict[str, dict[str, str]] = {
    "nothing": {},
    "no magic": {f"{COMMITTER}.magic.enabled": "false"},
    "magic": {f"{COMMITTER}.magic.enabled": "true", f"{COMMITTER}.name": "magic"},
    "another committer of Parquet": {
        "spark.sql.parquet.output.committer.class": (
            "org.apache.parquet.hadoop.ParquetOutputCommitter"
        )
    },
    NEEDS_CLOUD: {**NAMED, f"{COMMITTER}.name": "directory"},
    "another protocol": {PROTOCOL: "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol"},
}
ROWS = 1_000


def fails_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The first attempt of each task writes its rows, and fails."""
    context = TaskContext.get()
    yield from batches
    if context is not None and context.attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")


def session(endpoint: str, jars: str, more: Mapping[str, str]) -> SparkSession:
    """A session that may have the jar on its class path."""
    builder = SparkSession.builder.master("local[1,3]").config(
        map={**SETTINGS, **s3a.settings(endpoint), "spark.jars": jars, **more}
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def class_behind(spark: SparkSession, output: str) -> str:
    """The class that commits a write to there."""
    jvm: Any = spark._jvm
    made = jvm.org.apache.spark.internal.io.FileCommitProtocol.instantiate(
        spark.conf.get(PROTOCOL), "a-job", output, False
    )
    if made.getClass().getName() != OURS:
        return str(made.getClass().getName())
    field = made.getClass().getDeclaredField("behind")
    field.setAccessible(True)
    return str(field.get(made).getClass().getName())


def rows(spark: SparkSession, output: str) -> int:
    """How many rows are there after a write of which the first attempt failed."""
    frame = spark.range(0, ROWS, 1, 2)
    frame.mapInArrow(fails_first, frame.schema).write.csv(output)
    return spark.read.csv(output).count()


def main() -> None:
    """Have each application without us, with us, and with us from its session on."""
    endpoint, jars = sys.argv[1:]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    ours = {PROTOCOL: OURS, "spark.s3commit.prefixes": "s3a://lake/ours/"}
    found: dict[str, dict[str, object]] = {}
    with_cloud = CLOUD_JAR in jars
    for name, more in APPLICATIONS.items():
        if name == NEEDS_CLOUD and not with_cloud:
            continue  # Spark itself refuses its classes
        sides = {"own": more, "ours": {**more, **ours}}
        if PROTOCOL in more or not more:
            sides["session"] = more
        found[name] = {}
        for side, settings in sides.items():
            spark = session(endpoint, jars, settings)
            if side == "session":
                for key, value in ours.items():
                    spark.conf.set(key, value)
            found[name][side] = [
                class_behind(spark, f"s3a://lake/{where}") for where in ("theirs", "_hidden/t")
            ]
            if name == "nothing" and side == "ours":
                places = (f"{with_cloud}/a", f"{with_cloud}/_hidden/b")
                found[name]["rows"] = [rows(spark, f"s3a://lake/{one}") for one in places]
            spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
