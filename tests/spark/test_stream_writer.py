"""A stream's writer by hand: each micro-batch is a job, made known by its tasks' messages."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.states import JobState
from s3commit.spark.job import TaskMessage
from s3commit.spark.options import parse_options
from s3commit.spark.streaming import StreamWriter, start_stream
from s3commit.writer.connect import shared_store
from s3commit.writer.job import put_job
from tests.spark.by_hand import PATIENCE, SCHEMA, batch, run_task
from tests.spark.tiny import Place

QUERY = "f1f61334-8a7e-4f2b-ae29-8c3a6a0a2f10"


def run_of(number: int, run: str = "run-1") -> dict[str, str]:
    """What Spark tells the tasks of a query's batch."""
    return {
        "sql.streaming.queryId": QUERY,
        "streaming.sql.batchId": str(number),
        "spark.jobGroup.id": run,
    }


def stream(place: Place, overwrite: bool = False, **options: Any) -> StreamWriter:
    raw = {
        "path": place.uri,
        **PATIENCE,
        "checkpointlocation": "/tmp/x",
        "queryname": "q",
        **options,
    }
    return start_stream(parse_options(raw), SCHEMA, overwrite)


def write(
    place: Place, number: int, *batches: pa.RecordBatch, run: str = "run-1", **options: Any
) -> list[TaskMessage]:
    """A whole micro-batch; the writer is made anew to commit, as Spark does."""
    writer = stream(place, **options)
    found = [run_task(writer, n, rows, **run_of(number, run)) for n, rows in enumerate(batches)]
    stream(place, **options).commit(found, number)
    return found


def rows_of(place: Place) -> int:
    store, prefix = place.tiny.store, place.destination.prefix
    bucket = place.destination.bucket
    bodies = [store.get(bucket, prefix + name, max_bytes=1 << 20).body for name in place.data]
    return sum(pa.parquet.read_metadata(pa.BufferReader(body)).num_rows for body in bodies)


def test_i11_a_batch_that_is_replayed_after_a_restart_adds_nothing_twice(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    (first, _) = write(place, 4, batch(range(5)), batch(range(6)))
    assert first.spec is not None
    assert "s3commit: batch 4: committed 2 files, " in capsys.readouterr().err
    (again,) = write(place, 4, batch(range(11)), run="run-2")
    said = capsys.readouterr().err
    assert said.startswith("s3commit: batch 4: ")
    assert first.spec.job_id in said
    assert said.endswith("; this job adds nothing\n")
    write(place, 5, batch(range(3)), run="run-2")
    assert rows_of(place) == 14
    assert again.spec is not None
    assert again.spec.idempotency_key == first.spec.idempotency_key == f"{QUERY}/4"
    assert uuid.UUID(again.spec.job_id) != uuid.UUID(first.spec.job_id)
    assert place.tiny.wait_until_tidy(again.spec.job_id).state is JobState.ABORTED
    assert place.uploads == []


def test_attempts_of_one_run_are_of_one_job_and_may_race_to_open_it(place: Place) -> None:
    writer = stream(place)
    specs = [run_task(writer, n, batch(range(3)), **run_of(0)).spec for n in range(3)]
    assert len(set(map(repr, specs))) == 1
    spec = specs[0]
    assert spec is not None
    other = replace(spec, job_id=str(uuid.uuid4()))
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: put_job(shared_store(None), other), range(64)))
    assert set(place.jobs) == {spec.job_id, other.job_id}


def test_an_abort_without_a_message_of_what_was_written_asks_for_nothing(place: Place) -> None:
    stream(place).abort([TaskMessage(None, 0), None], 0)
    assert place.names == []


def test_empty_tasks_cost_no_request_and_an_empty_batch_is_no_job(place: Place) -> None:
    messages = write(place, 0, batch(range(0)), batch(range(0)))
    assert [message.attempt for message in messages] == [None, None]
    assert place.names == []
    write(place, 1, batch(range(0)), batch(range(2)), batch(range(0)))
    assert len(place.data) == 1
    assert len(place.jobs) == 1


def test_an_empty_batch_is_a_job_where_that_matters(place: Place) -> None:
    write(place, 0, batch(range(4)))
    with pytest.raises(S3CommitError, match="minRows is 1, the job has 0"):
        write(place, 1, batch(range(0)), **{"conditions.minrows": "1"})
    assert len(place.data) == 1
    write(place, 2, batch(range(0)), overwrite=True)
    assert place.data == []


def test_i11_a_replayed_complete_batch_replaces_nothing(place: Place) -> None:
    write(place, 0, batch(range(4)), overwrite=True)
    write(place, 1, batch(range(5)), overwrite=True)
    write(place, 1, batch(range(7)), overwrite=True, run="run-2")
    assert rows_of(place) == 5
    assert len(place.data) == 1


def test_i2_a_batch_is_not_committed_without_a_word_of_each_task(place: Place) -> None:
    writer = stream(place)
    message = run_task(writer, 0, batch(range(4)), **run_of(0))
    with pytest.raises(S3CommitError, match=r"1 of 2 tasks sent no word.* of batch 0 "):
        stream(place).commit([message, None], 0)
    stream(place).abort([message, None], 0)
    assert place.tidy().state is JobState.ABORTED
    assert place.data == place.uploads == []


def test_a_task_that_does_not_know_its_query_writes_nothing(place: Place) -> None:
    with pytest.raises(S3CommitError, match="does not say which query and batch"):
        run_task(stream(place), 0, batch(range(4)))
    assert place.names == place.uploads == []


def test_an_abort_after_the_commit_changes_nothing(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    messages = write(place, 0, batch(range(4)))
    stream(place).abort(messages, 0)
    assert "batch 0: job " in (said := capsys.readouterr().err)
    assert "is not aborted: its commit was requested first" in said
    assert rows_of(place) == 4
