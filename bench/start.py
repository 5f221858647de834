"""Benchmark: what the first task of a Python worker of Spark's takes besides writing.

A process has what Spark itself loads for a task of Arrow batches. Then it takes a pickled task of
`s3commit.spark.write`, and writes a row of each of two partitions to moto. What is measured is its
CPU time until the task has answered: imports, the client, the first requests.
"""

import json
import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import Callable
from typing import Final

import s3commit
from bench.cold import BUCKET, on_moto
from bench.figures import Figure, Sample

ROUNDS: Final = 7
GOAL: Final = 2.0
BARE: Final = "import boto3; a client of S3; a request"

# What Spark's worker has loaded. A list of Python's would have pyarrow load pandas.
_PROGRAM: Final = """
import json, os, pickle, struct, sys, time
import numpy, pyarrow as pa, pyspark.worker, pyspark.sql
texts = pa.py_buffer(struct.pack("=iii", 0, 1, 2)), pa.py_buffer(b"ab")
columns = [
    pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(struct.pack("=qq", 1, 2))]),
    pa.Array.from_buffers(pa.string(), 2, [None, *texts]),
]
batches = iter([pa.RecordBatch.from_arrays(columns, ["c0", "c1"])])
given = sys.stdin.buffer.read()
start = time.process_time()
exec(sys.argv[1])
print(json.dumps([time.process_time() - start, sorted(sys.modules)]))
"""
_TASK: Final = """
job = pickle.loads(given)
from s3commit.spark.tasks import answer
answer(job, batches, 0, 0)
"""
_BARE: Final = f"import boto3; boto3.client('s3').put_object(Bucket={BUCKET!r}, Key='bare')"


def start(say: Callable[[str], None], rounds: int = ROUNDS) -> list[Figure]:
    """In turn a task and a bare client, each in a process of its own."""
    say(f"start: {rounds} workers of Spark's")
    with on_moto():
        pairs = [(first_task()[0], _run(_BARE, b"")[0]) for _ in range(rounds + 1)][1:]
    task, bare = (Sample(tuple(values)) for values in zip(*pairs, strict=True))
    name, what = "a new Python worker of Spark's", "its first task, 2 files of one row"
    return [Figure(name, what, "CPU s", task, BARE, bare, goal=GOAL)]


def first_task() -> tuple[float, list[str]]:
    """CPU seconds of one in a new process, and the modules that it has then."""
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    from s3commit.spark.schema import check_schema
    from s3commit.spark.tasks import SparkJob

    place = f"s3://{BUCKET}/{uuid.uuid4().hex}/"
    schema = StructType([StructField("id", LongType()), StructField("k", StringType())])
    with s3commit.open_job(place, partition_by="k") as job:
        task = SparkJob(job.task("0"), check_schema(schema, ("k",)))
        measured = _run(_TASK, pickle.dumps(task))
        job.abort("measured")
    return measured


def _run(program: str, given: bytes) -> tuple[float, list[str]]:
    command = [sys.executable, "-c", _PROGRAM, program]
    done = subprocess.run(command, input=given, env=os.environ, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    cpu, modules = json.loads(done.stdout)
    return cpu, modules
