"""Every public function, given what it can't take: an error of ours, and nothing is written."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet
from pyspark.sql import DataFrameWriter

import s3commit
from s3commit import InvalidInputError, S3CommitError, spark
from s3commit.core.model.outcome import Outcome
from s3commit.writer.access import shared_client
from s3commit.writer.job import Job
from s3commit.writer.options import make_options
from s3commit.writer.task import Task
from tests.fakes.store import MemoryObjectStore
from tests.writer.ending import end
from tests.writer.support import JOB, ScriptedEnvironment, open_on

PLACE = "s3://lake/t/"


class Spark:
    """A frame, and a session, that refuses whoever comes so far."""

    mapInArrow = createDataFrame = None  # noqa: N815 - Spark's names
    isStreaming = False  # noqa: N815

    def __getattr__(self, name: str) -> Any:
        if name not in {"read", "sparkSession"}:
            raise AttributeError(name)
        raise S3CommitError("Spark is asked. Nothing was written.")


CALLS: dict[Callable[..., Any], tuple[Any, ...]] = {
    s3commit.open_job: (PLACE,),
    s3commit.write_table: (pa.table({"a": [1]}), PLACE),
    s3commit.undo: (PLACE, JOB),
    s3commit.undo_back_to: (PLACE, JOB),
    spark.write: (Spark(), PLACE),
    spark.batch_writer: (PLACE,),
    spark.read: (Spark(), PLACE),
}
ODD: tuple[Any, ...] = (
    7,
    -1,
    0.5,
    "",
    "\ud800",
    "{{ ds }}",
    b"x",
    object,
    [None],
    {1: 2},
    Path("x"),
)
WRITERS: tuple[Callable[..., Any], ...] = (
    pd.DataFrame.to_parquet,
    pl.DataFrame.write_parquet,
    parquet.write_to_dataset,
    dataset.write_dataset,
    DataFrameWriter.parquet,
    DataFrameWriter.save,
)
FOREIGN = {name for one in WRITERS for name in inspect.signature(one).parameters}
MEANT = {
    **dict.fromkeys(("partitionBy", "partition_cols", "partitioning"), "partition_by"),
    **dict.fromkeys(("existing_data_behavior", "if_exists", "saveMode"), "mode"),
    **dict.fromkeys(("max_rows_per_file", "maxRecordsPerFile"), "max_records_per_file"),
    **{"codec": "compression", "dryRun": "dry_run", "timeout": "commit_timeout"},
    **{"partitionOverwriteMode": "partition_overwrite_mode", "minRows": "min_rows"},
}


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Without credentials: what is taken for right is not written either."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    shared_client.cache_clear()
    yield
    shared_client.cache_clear()


def refusal(call: Callable[..., Any], *given: Any, **named: Any) -> S3CommitError:
    with pytest.raises(S3CommitError) as caught:
        call(*given, **named)
    said = caught.value.message
    assert (said.endswith("Nothing was written."), "\n" in said) == (True, False), said
    return caught.value


def test_every_function_is_here() -> None:
    public = [getattr(place, name) for place in (s3commit, spark) for name in place.__all__]
    assert {one for one in public if inspect.isfunction(one)} == {*CALLS}
    for one in (*CALLS, Job.task):  # who signs: test_credentials.py here, and Spark's
        assert "boto3_session" in inspect.signature(one).parameters


@pytest.mark.parametrize("call", CALLS)
def test_an_argument_that_it_does_not_take_is_named_with_the_one_that_was_meant(
    call: Callable[..., Any],
) -> None:
    known = {*inspect.signature(call).parameters}
    for stray in {*FOREIGN, *MEANT} - known:
        error = refusal(call, *CALLS[call], **{stray: "x"})
        assert (type(error), error.code, stray in error.message) == (
            InvalidInputError,
            "UNKNOWN_OPTION",
            True,
        )
        meant = MEANT.get(stray)
        assert meant not in known or f"give {meant}" in error.message, error.message
    assert "missing" in refusal(call).message
    assert "too many" in refusal(call, *range(9)).message


def test_the_key_of_a_batch_and_the_connection_are_not_asked_for() -> None:
    for stray in ("idempotency_key", "idempotencyKey"):
        assert "a key of its own" in refusal(spark.batch_writer, PLACE, **{stray: "x"}).message
    assert "AWS configuration" in refusal(s3commit.open_job, PLACE, storage_options={}).message


@pytest.mark.parametrize("call", CALLS)
def test_an_odd_value_is_refused_before_anything(call: Callable[..., Any]) -> None:
    """No error of Python, pandas, pyarrow or botocore; what is fine is refused for who calls."""
    names = [*inspect.signature(call).parameters]
    given = dict(zip(names, CALLS[call], strict=False))

    def tried(**named: Any) -> None:
        if callable(done := call(**named)):
            done(Spark(), 7)

    for name in names:
        for odd in (*ODD, *([None] if name in given else [])):
            refusal(tried, **{**given, name: odd})


@pytest.mark.parametrize("call", [one for one in CALLS if one is not spark.read])
def test_a_switch_is_on_by_true_alone(call: Callable[..., Any]) -> None:
    """A setting's text is true, ``"false"`` too: a dry run that succeeds would write nothing."""
    switches = {"dry_run", "leave_removed", "check_partitions", "check_names", "check_schema"}
    for name in switches & {*inspect.signature(call).parameters}:
        for odd in ("false", "True", "", 0, 1, [True]):
            error = refusal(call, *CALLS[call], **{name: odd})
            assert error.message == f"{name}={odd!r}: give True or False. Nothing was written."


def test_an_odd_value_of_a_job_or_its_settings_is_no_error_of_python(
    store: MemoryObjectStore,
) -> None:
    """What it is given is refused, or taken, also by the manifest."""

    def task(job: Job, **named: Any) -> None:
        job.task(**{"task_id": "0", **named}).finish()

    def commit(job: Job, **named: Any) -> None:
        end(store, job, Outcome.COMMITTED)
        job.commit(**{"attempts": [], **named})

    def abort(job: Job, reason: Any) -> None:
        job.abort(reason)

    def opened(job: Job, **named: Any) -> None:
        with job.task("0") as one, one.open(**{"relative_path": "a", **named}):
            pass

    def settings(_job: Job, **named: Any) -> None:
        s3commit.UploadSettings(**named)

    def sizes(_job: Job, **named: Any) -> None:
        s3commit.UploadSettings(s3commit.PartSizes(**named)).parts.size(2000)

    def encryption(_job: Job, **named: Any) -> None:
        make_options(PLACE, encryption=s3commit.Encryption(**{"algorithm": "aws:kms", **named}))

    calls: dict[Callable[..., None], Callable[..., Any]] = {
        task: Job.task,
        commit: Job.commit,
        abort: Job.abort,
        opened: Task.open,
        settings: s3commit.UploadSettings,
        sizes: s3commit.PartSizes,
        encryption: s3commit.Encryption,
    }
    for tried, real in calls.items():
        for name in {*inspect.signature(real).parameters} - {"self"}:
            for odd in ODD:
                job = open_on(store, environment=ScriptedEnvironment())
                with suppress(S3CommitError):
                    tried(job, **{name: odd})
