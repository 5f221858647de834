"""A Spark driver that writes one table through S3A's magic committer: see README.md beside it.

Run by record.py, which kills it. Arguments: endpoint, jars, destination, then what to write.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLOUD = "org.apache.spark.internal.io.cloud"


def session(endpoint: str, jars: Path, settings: list[str]) -> SparkSession:
    """Spark with S3A and the magic committer, bound as Spark's cloud integration page says."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[3]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraClassPath", str(jars / "*"))
        .config("spark.hadoop.fs.s3a.endpoint", endpoint)
        .config("spark.hadoop.fs.s3a.endpoint.region", "us-east-1")
        .config("spark.hadoop.fs.s3a.path.style.access", "true")
        .config("spark.hadoop.fs.s3a.connection.ssl.enabled", "false")
        .config("spark.hadoop.fs.s3a.access.key", "testing")
        .config("spark.hadoop.fs.s3a.secret.key", "testing")
        .config("spark.hadoop.fs.s3a.committer.name", "magic")
        .config("spark.hadoop.fs.s3a.committer.magic.enabled", "true")
        .config("spark.sql.sources.commitProtocolClass", f"{CLOUD}.PathOutputCommitProtocol")
        .config(
            "spark.sql.parquet.output.committer.class", f"{CLOUD}.BindingParquetOutputCommitter"
        )
    )
    for setting in settings:
        name, _, value = setting.partition("=")
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> None:
    """Write ``--rows`` rows in ``--tasks`` tasks; column ``place`` has signs that keys escape."""
    parser = argparse.ArgumentParser()
    parser.add_argument("endpoint")
    parser.add_argument("jars", type=Path)
    parser.add_argument("destination")
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--tasks", type=int, default=3)
    parser.add_argument("--partition-by", default="")
    parser.add_argument("--records-per-file", type=int, default=0)
    parser.add_argument("--wide", action="store_true", help="64 more bytes a row")
    parser.add_argument("--set", action="append", default=[])
    given = parser.parse_args()
    spark = session(given.endpoint, given.jars, given.set)
    frame = spark.range(0, given.rows, 1, given.tasks).selectExpr(
        "id", "elt(1 + id % 3, 'Oslo', 'Bad Ems', '50%') AS place"
    )
    if given.wide:
        frame = frame.selectExpr("*", "sha2(cast(id AS string), 256) AS hash")
    writer = frame.write.mode("append").option("maxRecordsPerFile", given.records_per_file)
    if given.partition_by:
        writer = writer.partitionBy(given.partition_by)
    writer.parquet(given.destination)
    spark.stop()


if __name__ == "__main__":
    main()
