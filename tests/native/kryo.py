"""A program whose session has Kryo for everything, and lets it serialize known classes alone.

``SETTINGS TARGET...``: writes 100 rows in two partitions to each target.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

from s3commit.spark.native import configure

KRYO = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrationRequired": "true",
}


def main() -> None:
    """Write to each target in turn."""
    settings, *targets = sys.argv[1:]
    builder = SparkSession.builder.master("local[2]").config(map={**json.loads(settings), **KRYO})
    spark = configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for target in targets:
        frame = spark.range(0, 100, 1, 2).selectExpr("id", "id % 2 as k")
        frame.write.partitionBy("k").parquet(target)
    spark.stop()


if __name__ == "__main__":
    main()
