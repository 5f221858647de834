"""The writer's own work, without Spark around it."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from s3commit.core.model.errors import InvalidInputError, JobFailedError, S3CommitError
from s3commit.core.model.states import JobState
from s3commit.spark.job import TaskMessage
from tests.spark.by_hand import batch, run_task, start
from tests.spark.tiny import Place

JOB = "49f3d0eb-15fa-4d99-95ae-ddd67f0abad4"


def test_a_job_says_what_it_did_in_one_line(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = start(place)
    messages = [run_task(writer, n, batch(range(500))) for n in (0, 1)]
    writer.commit(messages)
    job, said = writer.job.spec.job_id, capsys.readouterr()
    size = sum(file.length for file in place.committed()) / 1024
    assert said.err == (
        f"s3commit: committed 2 files, {size:.1f} KiB, 1000 rows;"
        f" see: s3commit show {place.uri}/__magic_job-{job}/\n"
    )
    assert said.out == ""


def test_i2_a_task_without_a_message_is_never_left_out_in_silence(place: Place) -> None:
    writer = start(place)
    message = run_task(writer, 0, batch(range(500)))
    with pytest.raises(S3CommitError, match="1 of 2 tasks sent no word"):
        writer.commit([message, None])
    assert not [name for name in place.names if name.endswith("/request.json")]


def test_the_writer_and_its_messages_travel_between_processes(place: Place) -> None:
    writer = pickle.loads(pickle.dumps(start(place, partitionBy="k")))
    message = pickle.loads(pickle.dumps(run_task(writer, 0, batch(range(9)))))
    pickle.loads(pickle.dumps(writer)).commit([message])
    assert [name.split("/")[0] for name in place.data] == ["k=0", "k=1", "k=2"]
    assert [file.rows for file in place.committed()] == [3, 3, 3]


def test_i3_an_attempt_that_spark_does_not_count_is_never_visible(place: Place) -> None:
    writer = start(place)
    loser = run_task(writer, 0, batch(range(5)))
    winner = run_task(writer, 0, batch(range(7)))
    assert loser.attempt is not None
    writer.commit([winner])
    place.tidy()
    assert [file.rows for file in place.committed()] == [7]
    assert len(place.data) == 1
    assert place.uploads == []


def test_i3_two_messages_of_one_task_are_refused(place: Place) -> None:
    writer = start(place)
    messages = [run_task(writer, 0, batch(range(5))) for _ in range(2)]
    with pytest.raises(InvalidInputError, match="two attempts of one task"):
        writer.commit(messages)
    writer.abort(messages)
    assert place.tidy().state is JobState.ABORTED
    assert place.data == place.uploads == []


def test_an_abort_after_a_commit_changes_nothing_and_says_so(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = start(place)
    messages = [run_task(writer, 0, batch(range(5)))]
    writer.commit(messages)
    writer.abort([*messages, None])
    assert "is not aborted: its commit was requested first" in capsys.readouterr().err
    assert place.tidy().state is JobState.COMMITTED
    assert len(place.data) == 1


def test_a_manifest_changed_after_its_task_fails_the_job_in_one_line(place: Place) -> None:
    writer = start(place)
    message = run_task(writer, 0, batch(range(5)))
    assert message.attempt is not None
    place.put(f"__magic_job-{writer.job.spec.job_id}/{message.attempt.manifest}", b"{}")
    with pytest.raises(JobFailedError) as caught:
        writer.commit([message])
    assert "ended ABORTED, none of its files is visible: manifest" in caught.value.message
    assert "\n" not in caught.value.message
    place.tidy()
    assert place.data == place.uploads == []


def test_a_task_without_rows_leaves_no_manifest(place: Place) -> None:
    writer = start(place)
    empty = run_task(writer, 2)  # the first one makes a file, which keeps the schema
    assert empty == TaskMessage(None, 0)
    writer.commit([empty, run_task(writer, 1, batch(range(0)))])
    assert place.tidy().state is JobState.COMMITTED
    assert [name for name in place.names if "tasks" in name] == []


def test_i4_a_batch_that_cannot_be_written_leaves_no_upload_after_the_abort(place: Place) -> None:
    writer = start(place, partitionBy="k")
    other = pa.record_batch({"id": pa.array(["x"]), "k": pa.array([0], pa.int32())})
    with pytest.raises(pa.ArrowException):
        run_task(writer, 0, batch(range(9)), other)
    writer.abort([None])
    place.tidy()
    assert place.data == place.uploads == []


def test_partition_values_that_are_no_key_fail_the_task_with_the_reason(place: Place) -> None:
    schema = StructType([StructField("id", LongType()), StructField("p", StringType())])
    writer = start(place, schema, partitionBy="p")
    long = pa.record_batch({"id": [1], "p": ["x" * 1100]})
    with pytest.raises(InvalidInputError, match="1024 bytes"):
        run_task(writer, 0, long)
    writer.abort([None])
    assert place.tidy().state is JobState.ABORTED


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"conditions.maxnullfraction.x": "0.5"}, r"column 'x' is not in the DataFrame \(id, k\)"),
        (
            {"conditions.minrows": "5", "conditions.maxrows": "4"},
            "minRows 5 is more than maxRows 4",
        ),
        ({"jobid": JOB}, "a write makes its own id"),
        ({"partitionby": "id,k"}, "all columns are partition columns"),
    ],
)
def test_nothing_is_left_by_a_job_that_is_refused(
    place: Place, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidInputError, match=says):
        start(place, **options)
    assert place.names == place.uploads == []
