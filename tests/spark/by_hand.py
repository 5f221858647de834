"""What Spark does with a writer, without Spark: tasks of a given session, pickled messages."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from s3commit.spark.batch import BatchWriter, start_batch
from s3commit.spark.job import TaskMessage
from s3commit.spark.options import parse_options
from s3commit.writer.config import load_config
from tests.spark.tiny import Place

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter

SCHEMA = StructType([StructField("id", LongType()), StructField("k", IntegerType())])
PATIENCE = {"committimeout": "60s"}

_attempts = itertools.count()


def batch(ids: range) -> pa.RecordBatch:
    """Rows of `SCHEMA`; ``k`` is the id modulo 3."""
    keys = pa.array([n % 3 for n in ids], pa.int32())
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "k": keys})


def start(
    place: Place, schema: StructType = SCHEMA, *, overwrite: bool = False, **options: Any
) -> BatchWriter:
    """The writer, as Spark's planner makes it."""
    lowered = {name.lower(): value for name, value in options.items()}
    parsed = parse_options({"path": place.uri, **PATIENCE, **lowered}, load_config())
    writer = start_batch(parsed, schema, overwrite)
    assert isinstance(writer, BatchWriter)
    return writer


def run_task(
    writer: DataSourceArrowWriter | DataSourceStreamArrowWriter,
    partition: int,
    *batches: pa.RecordBatch,
    **properties: Any,
) -> TaskMessage:
    """One attempt of a task, with the local properties of its session."""
    copy = pickle.loads(pickle.dumps(writer))
    with running(partition, properties):
        message = copy.write(iter(batches))
    found = pickle.loads(pickle.dumps(message))
    assert isinstance(found, TaskMessage)
    return found


@contextmanager
def running(partition: int, properties: dict[str, str]) -> Iterator[None]:
    """For the length of the block this process runs a Spark task."""
    context = object.__new__(TaskContext)
    context._partitionId = partition
    context._taskAttemptId = next(_attempts)
    context._localProperties = properties
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TaskContext, "_taskContext", context)
        yield


def write(writer: BatchWriter, *batches: pa.RecordBatch, **properties: Any) -> None:
    """The whole write: a task a batch, then the commit."""
    messages = [run_task(writer, n, rows, **properties) for n, rows in enumerate(batches)]
    pickle.loads(pickle.dumps(writer)).commit(messages)
