"""A driver of its own: ``URI SETTINGS DIRECTORY``.

With speculation the first attempt of one task waits until Spark has started another one beside it.
Each attempt leaves an empty file in the directory.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from s3commit.spark.native import configure

PATIENCE_SECONDS = 120
AHEAD_SECONDS = 5  # of the second attempt, which then ends first


def slow_first(directory: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        attempt = (context.partitionId(), context.attemptNumber())
        Path(directory, "-".join(map(str, attempt))).touch()
        for number, batch in enumerate(batches):
            yield batch
            if number == 0 and attempt == (1, 0):
                end = time.monotonic() + PATIENCE_SECONDS
                while not Path(directory, "1-1").exists() and time.monotonic() < end:
                    time.sleep(0.1)
                time.sleep(AHEAD_SECONDS)

    return pass_on


def main() -> None:
    """Write 1000 rows by four tasks."""
    uri, settings, directory = sys.argv[1:]
    builder = SparkSession.builder.config(map=json.loads(settings))
    spark = configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    frame = spark.range(0, 1000, 1, 4)
    if "spark.speculation" in settings:
        frame = frame.mapInArrow(slow_first(directory), frame.schema)
    frame.write.parquet(uri)
    spark.stop()


if __name__ == "__main__":
    main()
