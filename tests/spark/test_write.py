"""`write`: the function that commits a DataFrame on every Spark, classic and Connect."""

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

import s3commit.spark
from s3commit.core.model.errors import (
    InvalidInputError,
    JobFailedError,
    NotFoundError,
    S3CommitError,
)
from s3commit.core.model.states import JobState
from s3commit.spark import CommitResult, WrongPythonError, batch_writer, tasks, write
from tests.native.s3a import ROOT
from tests.servers import ran
from tests.spark.conftest import settings
from tests.spark.disturbed import LateJob, disturbed, fail_always, fail_first_try, kill_first_try
from tests.spark.tiny import BUCKET, Place


def ids(session: SparkSession, place: Place, target: Path) -> list[int]:
    """The column ``id`` of all files that are visible, read by Spark itself."""
    assert place.data
    return sorted(row.id for row in session.read.parquet(place.download(target)).collect())


def test_the_result_says_what_was_committed(session: SparkSession, place: Place) -> None:
    frame = session.range(0, 100, 1, 2).selectExpr("id", "id % 2 k")
    result = write(frame, place.uri, partition_by="k")
    assert dataclasses.asdict(result) == json.loads(json.dumps(dataclasses.asdict(result)))
    (job,) = place.jobs
    assert result == CommitResult(
        job_id=job,
        path=place.destination.uri,
        files=4,
        rows=100,
        bytes=sum(file.length for file in place.committed()),
        replaced=0,
        manifest=f"{place.destination.uri}_commits/_{job}.jsonl",
    )
    assert place.tidy().state is JobState.COMMITTED


def test_columns_of_every_type_of_spark_are_checked(session: SparkSession, place: Place) -> None:
    """At both bounds at once; then one too low, and one value that is null."""
    day, moment = date(2026, 11, 20), datetime(2026, 11, 20, 5, 30, tzinfo=UTC)
    values: dict[str, Any] = {
        **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), -7),
        **{"float": 0.5, "double": 0.1, "decimal(5,2)": Decimal("0.10"), "string": "ü"},
        **{"decimal(38,2)": Decimal("-0.1"), "boolean": True, "date": day},
        **{"timestamp": moment, "timestamp_ntz": moment.replace(tzinfo=None)},
    }
    texts = {"timestamp": "2026-11-20 05:30:00Z", "timestamp_ntz": "2026-11-20 05:30:00"}
    shown = {kind: texts.get(kind, value) for kind, value in values.items()}
    columns = [f"cast('{value}' as {kind}) `{kind}`" for kind, value in shown.items()]
    frame = session.range(0, 4, 1, 2).selectExpr("id % 2 k", *columns, "cast(null as binary) b")
    same = {kind: {"min": value, "max": value, "nulls": 0} for kind, value in values.items()}
    how: Any = {"mode": "append", "partition_by": "k"}
    write(frame, place.uri, checks={**same, "b": {"nulls": 4}}, **how)
    late = {"timestamp": {"min": moment + timedelta(0, 0, 1)}}
    for checks, says in (({"b": {"nulls": 3}}, "'b' has 4 nulls"), (late, "05:30:00.000001+00:00")):
        with pytest.raises(JobFailedError, match=re.escape(says)) as caught:
            batch_writer(place.uri, query=says, partition_by="k", checks=checks)(frame, 0)
        assert caught.value.code == "CHECK_FAILED"
    with pytest.raises(InvalidInputError, match="'k' is not in the files"):
        write(frame, place.uri, checks={"k": {"min": 0}}, **how)
    assert len(place.jobs) == 3


SAID: Any = {"note": "backfill, ticket 7", "labels": {"dag": "sales", "run": "7"}}
TABLE = pa.table({"id": [1]})
WRITES: dict[Callable[..., Any], Callable[[SparkSession, str], object]] = {
    write: lambda spark, uri: write(spark.range(1), uri, **SAID),
    batch_writer: lambda spark, uri: batch_writer(uri, query="q", **SAID)(spark.range(1), 7),
    s3commit.write_table: lambda _, uri: s3commit.write_table(TABLE, uri, **SAID),
    s3commit.open_job: lambda _, uri: s3commit.open_job(uri, **SAID).commit([]),
    s3commit.undo: lambda _, uri: s3commit.undo(
        uri, s3commit.write_table(TABLE, uri).job_id, **SAID
    ),
}


def test_every_call_that_writes_takes_a_note_and_labels() -> None:
    public = (getattr(at, name) for at in (s3commit, s3commit.spark) for name in at.__all__)
    calls = {one: {*inspect.signature(one).parameters} for one in public if inspect.isfunction(one)}
    writes = {*WRITES, s3commit.undo_back_to}  # which needs time: tests/cli/test_back_to.py
    assert {one for one, known in calls.items() if "commit_timeout" in known} == writes
    assert {one for one, known in calls.items() if {"note", "labels"} & known} == writes


@pytest.mark.parametrize("call", WRITES, ids=lambda call: call.__name__)
def test_each_document_has_the_note_and_labels_of_the_call(
    spark: SparkSession, place: Place, call: Callable[..., Any]
) -> None:
    WRITES[call](spark, place.uri)
    place.settle()
    said = []
    for name in place.names:
        if name.endswith(("/_job.json", "/_result.json", ".jsonl")):
            body = place.tiny.store.get(BUCKET, place.destination.prefix + name, max_bytes=10**6)
            document = json.loads(body.body.splitlines()[0])
            said.append((document.get("note"), document.get("labels")))
    assert said.count(("backfill, ticket 7", ["dag=sales", "run=7"])) == 3
    assert said.count((None, None)) == len(said) - 3 == (3 if call is s3commit.undo else 0)


def test_a_collection_leaves_out_what_is_loaded(session: SparkSession, place: Place) -> None:
    """With botocore's models it would take longer than to write a small file."""

    def frozen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import gc

        for _ in batches:
            yield pa.record_batch({"objects": [gc.get_freeze_count()]})

    write(session.range(0, 8, 1, 8), place.uri)
    rows = session.range(0, 8, 1, 8).mapInArrow(frozen, "objects long").collect()
    assert max(row.objects for row in rows) > 50_000


def test_modes_are_sparks_own(session: SparkSession, place: Place, tmp_path: Path) -> None:
    write(session.range(3), place.uri)
    jobs = set(place.jobs)
    for mode in ("error", "errorifexists"):
        with pytest.raises(InvalidInputError, match="already exists; give mode='append'") as e:
            write(session.range(9), place.uri, mode=mode)
        assert f"s3://{BUCKET}/{place.destination.prefix}part-" in e.value.message
    assert set(place.jobs) <= jobs  # refused before a job was opened
    assert write(session.range(3, 5), place.uri, mode="append").replaced == 0
    assert ids(session, place, tmp_path / "1") == [0, 1, 2, 3, 4]
    assert write(session.range(5, 7), place.uri, mode="overwrite").replaced > 0
    assert ids(session, place, tmp_path / "2") == [5, 6]


def test_a_dry_run_runs_no_task_and_writes_nothing(session: SparkSession, place: Place) -> None:
    frame = disturbed(session.range(3), fail_always)
    with pytest.raises(InvalidInputError, match="'no' is not in the DataFrame"):
        write(frame, place.uri, partition_by="no", dry_run=True)
    result = write(frame, place.uri, idempotency_key="k", dry_run=True)
    assert (result.dry_run, result.job_id, result.rows) == (True, "", 0)
    # An error, so that Spark does not record the batch as written.
    with pytest.raises(S3CommitError, match="dry run of batch 0: nothing was written") as caught:
        batch_writer(place.uri, query="q", dry_run=True)(frame, 0)
    assert caught.value.code == "DRY_RUN"
    assert place.names == place.uploads == []


def test_partitions_alone_are_replaced(session: SparkSession, place: Place, tmp_path: Path) -> None:
    frame = session.range(6).selectExpr("id", "id % 3 k")
    write(frame, place.uri, partition_by=["k"])
    one = frame.where("id = 4")
    write(one, place.uri, mode="overwrite", partition_by="k", partition_overwrite_mode="dynamic")
    assert ids(session, place, tmp_path / "1") == [0, 2, 3, 4, 5]
    with settings(session, spark__sql__sources__partitionOverwriteMode="dynamic"):
        write(frame.where("id = 3"), place.uri, mode="overwrite", partition_by="k")
        assert ids(session, place, tmp_path / "2") == [2, 3, 4, 5]
    write(frame.where("id = 0"), place.uri, mode="overwrite", partition_by="k")
    assert ids(session, place, tmp_path / "3") == [0]


@pytest.mark.parametrize("given", [[1, 2], pd.DataFrame({"id": [1]})], ids=["list", "pandas"])
def test_what_is_no_dataframe_of_spark_is_refused_in_one_line(place: Place, given: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"spark\.createDataFrame\(\.\.\.\)") as caught:
        write(given, place.uri)
    assert "\n" not in caught.value.message
    assert place.names == []


def test_a_stream_or_no_pipeline_is_refused(session: SparkSession, place: Place) -> None:
    place.tiny.add_bucket("no-pipeline-here", notifies=False)
    with pytest.raises(NotFoundError, match="no-pipeline-here"):
        write(session.range(1), "s3://no-pipeline-here/table/")
    stream = session.readStream.format("rate").load()
    with pytest.raises(InvalidInputError, match="foreachBatch"):
        write(stream, place.uri)
    assert place.names == []


@pytest.mark.parametrize("empty", ["id < 0", "false"], ids=["filtered", "no partition"])
def test_a_dataframe_without_rows_is_one_file_that_keeps_the_schema(
    session: SparkSession, place: Place, tmp_path: Path, empty: str
) -> None:
    frame = session.range(0, 4, 1, 3).selectExpr("id", "'x' s").where(empty)
    result = write(frame, place.uri)
    assert (result.files, result.rows) == (1, 0)
    read = session.read.parquet(place.download(tmp_path))
    assert (read.dtypes, read.count()) == (frame.dtypes, 0)


def test_i10_an_overwrite_replaces_the_earlier_data_files_and_says_how_many(
    spark: SparkSession, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    write(spark.range(0, 10, 1, 2), place.uri)
    place.put("_hidden/x.parquet", b"not data")
    earlier = set(place.data)
    capsys.readouterr()
    result = write(spark.range(0, 7, 1, 1), place.uri, mode="overwrite")
    assert result.replaced == 2
    assert len(place.data) == 1
    assert not earlier & set(place.data)
    assert "_hidden/x.parquet" in place.names
    said = capsys.readouterr().err
    assert "\ns3commit: replaced 2 files with 1 file, " in said
    assert f"7 rows; see: s3commit show {place.uri}/__magic_job-{result.job_id}/" in said


# What may happen to a task.


@pytest.fixture
def small_batches(session: SparkSession) -> Iterator[None]:
    with settings(session, spark__sql__execution__arrow__maxRecordsPerBatch="100"):
        yield


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("disturb", [fail_first_try, kill_first_try])
def test_i2_i3_a_task_that_fails_once_is_counted_once(
    session: SparkSession, place: Place, tmp_path: Path, disturb: Callable[[int, int], None]
) -> None:
    frame = disturbed(session.range(0, 1000, 1, 2), disturb)
    result = write(frame, place.uri, max_records_per_file=50)
    assert (result.files, result.rows) == (20, 1000)
    assert ids(session, place, tmp_path) == list(range(1000))
    place.tidy()
    assert place.uploads == []


@pytest.mark.usefixtures("small_batches")
def test_i3_i4_of_two_attempts_that_finish_one_counts(
    session: SparkSession, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "SparkJob", LateJob)
    write(session.range(0, 1000, 1, 2), place.uri, max_records_per_file=50)
    record = place.tidy()
    attempts = {(one.task_id, one.attempt_id) for one in place.tiny.ledger.attempts(record.ref)}
    assert len({task for task, _ in attempts}) == 2
    assert len(attempts) == 3
    assert ids(session, place, tmp_path) == list(range(1000))
    assert len(place.data) == 20
    assert place.uploads == []


@pytest.mark.usefixtures("small_batches")
def test_i1_i4_a_task_that_fails_for_good(session: SparkSession, place: Place) -> None:
    frame = disturbed(session.range(0, 1000, 1, 2), fail_always)
    with pytest.raises(Exception, match="this task always fails"):
        write(frame, place.uri, max_records_per_file=50)
    assert place.tidy().state is JobState.ABORTED
    place.await_no_uploads()
    assert place.data == []
    assert "_SUCCESS" not in place.names


def test_an_error_of_ours_in_a_task_is_one_line(session: SparkSession, place: Place) -> None:
    long = session.sql("select 1 id, repeat('x', 1100) d")
    with pytest.raises(InvalidInputError, match=r"^file path .*more than S3's 1024 bytes") as e:
        write(long, place.uri, partition_by="d")
    assert "\n" not in str(e.value)
    assert e.value.code == "BAD_PATH"
    assert place.tidy().state is JobState.ABORTED


# Without Spark.


@pytest.mark.parametrize(
    ("package", "version", "says"),
    [
        (pyspark, "3.4.4", r"^pyspark 3\.4\.4 is too old: this needs pyspark>=3\.5\. Nothing"),
        (pa, "17.0.0", r"^pyarrow 17\.0\.0 is too old: this needs pyarrow>=18\.0\. Nothing"),
    ],
)
def test_a_package_that_is_too_old_is_refused(
    monkeypatch: pytest.MonkeyPatch, package: ModuleType, version: str, says: str
) -> None:
    monkeypatch.setattr(package, "__version__", version)
    with pytest.raises(WrongPythonError, match=says):
        batch_writer("s3://bucket/t/")


PROGRAM = (sys.executable, "-m", "tests.engines.chaos.driver")
KILLS = [
    "once:_request.json:after",
    pytest.param("partition:_request.json:after", marks=pytest.mark.long),
    pytest.param("append:part 1:zombie", marks=pytest.mark.long),
]


@pytest.mark.parametrize("kill", KILLS)
def test_i1_i2_i4_i10_i11_a_driver_killed_at_a_request(kill: str) -> None:
    done = ran(*PROGRAM, kill, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
