"""A task that writes sorted rows to some directories in a process of its own, for its memory."""

import random
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from s3commit.arrow.files import write_rows
from s3commit.arrow.partitions import runs
from s3commit.core.formats.layout import JobDirectory
from s3commit.spark.schema import check_schema
from s3commit.writer.options import make_options
from s3commit.writer.task import Task
from s3commit.writer.transfer import MIB
from tests.writer.support import Forgetful, resident_bytes

JOB = "49f3d0eb-15fa-4d99-95ae-ddd67f0abad4"
BATCH = 1_280_000  # bytes


def batches(megabytes: int, partitions: int, width: int) -> Iterator[pa.RecordBatch]:
    """Rows that do not compress, in the order of their partitions."""
    rows = BATCH // width
    source = random.Random(7)
    offsets = pa.array(range(0, (rows + 1) * width, width), pa.int32()).buffers()[1]
    count = megabytes * MIB // (rows * width)
    for number in range(count):
        text = pa.py_buffer(source.randbytes(rows * width // 2).hex().encode())
        keys = pa.array([str(number * partitions // count)] * rows)
        texts = pa.StringArray.from_buffers(rows, offsets, text)
        yield pa.record_batch({"text": texts, "k": keys})


def main() -> None:
    """Print the peak above what the process took before, in bytes."""
    partitions, width = map(int, sys.argv[1:])
    options = make_options("s3://bucket/p/", partition_by="k")
    schema = StructType([StructField("text", StringType()), StructField("k", IntegerType())])
    directory = JobDirectory(options.destination, JOB)
    task = Task(directory, "00000", "a", Forgetful("bucket"), options=options)
    checked = check_schema(schema, options.partition_by)
    before = resident_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    rows = chain.from_iterable(runs(batch, ("k",)) for batch in batches(500, partitions, width))
    write_rows(task, 0, rows, checked.of_files)
    print(resident_bytes("VmHWM") - before)


if __name__ == "__main__":
    main()
