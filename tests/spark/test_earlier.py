"""What is committed already: found under a key before a task runs, and read."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import s3commit
from s3commit.core.documents.commit_manifest import CommitHeader, CommittedFile, commit_lines
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs.idempotency import hinted_job
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import AccessError, InvalidInputError, NotFoundError
from s3commit.core.model.locks import key_digest
from s3commit.spark import read, write
from s3commit.writer.options import make_options
from s3commit.writer.table_write import earlier_result
from tests.core.world import BUCKET as LAKE
from tests.core.world import World, job_directory
from tests.spark.tiny import BUCKET, Place

KEY = "2026-11-23"
SALES = Destination(LAKE, "sales/")
JOB = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
HINT = {"version": 1, "jobId": JOB, "files": 1, "rows": 3}
LIST = CommitHeader(JOB, "", "2026Z", 0, 0, 3, idempotency_key=key_digest(KEY))


@pytest.mark.parametrize(
    ("hint", "listed", "found"),
    [
        (None, LIST, False),
        (HINT, LIST, True),
        (HINT, None, False),  # forged, or left behind by who has deleted the list
        (HINT, "no json", False),
        (HINT, "", False),
        (HINT, replace(LIST, job_id=OTHER), False),
        (HINT, replace(LIST, destination="s3://lake/copied/from/"), False),  # by aws s3 cp
        (HINT, replace(LIST, idempotency_key=key_digest("2026-11-24")), False),
        (HINT, replace(LIST, idempotency_key=None), False),
        ({**HINT, "jobId": "../x"}, LIST, False),
        ({**HINT, "jobId": OTHER}, LIST, False),
        ("no json", LIST, False),
    ],
)
def test_i11_i12_a_hint_counts_if_the_list_of_its_job_has_the_key(
    place: Place, hint: object, listed: CommitHeader | str | None, found: bool
) -> None:
    directory, put = JobDirectory(place.destination, JOB), place.tiny.store.put
    if hint is not None:
        # The key of the hint is the digest of what _job.json has, which is the key's digest.
        body = hint.encode() if isinstance(hint, str) else json.dumps(hint).encode()
        put(BUCKET, directory.once(key_digest(key_digest(KEY))), body)
    if isinstance(listed, CommitHeader):
        header = replace(listed, destination=listed.destination or place.destination.uri)
        put(BUCKET, directory.commits, b"".join(commit_lines(header, ())))
    elif listed is not None:
        put(BUCKET, directory.commits, listed.encode())
    earlier = earlier_result(make_options(place.uri, idempotency_key=KEY))
    assert (earlier and earlier.job_id) == (directory.job_id if found else None)
    assert earlier_result(make_options(place.uri)) is None


@pytest.mark.parametrize("unreadable", ["the hint", "the list"])
@pytest.mark.parametrize(
    "answer", [InvalidInputError("400 of SSE-C"), AccessError("403 of a foreign key")]
)
def test_i12_a_hint_that_can_not_be_read_is_none(unreadable: str, answer: Exception) -> None:
    world, key = World(), key_digest(KEY)
    world.commit(job_directory(), idempotency_key=key)
    assert hinted_job(world.store, SALES, key) == job_directory()
    verb = "get" if unreadable == "the hint" else "first_bytes"
    world.plan.fail(verb, answer)
    assert hinted_job(world.ports.store, SALES, key) is None


class DiedError(BaseException):
    """Stands for the death of a driver."""


def test_i11_a_driver_that_died_adds_its_rows_once(session: SparkSession, place: Place) -> None:
    def die(*_: Any) -> None:
        raise DiedError

    frame = session.range(3)
    said: dict[str, Any] = {"mode": "append", "idempotency_key": KEY}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("s3commit.writer.job.wait_for_result", die)
        with pytest.raises(DiedError):
            write(frame, place.uri, **said)
    again = write(frame, place.uri, **said)
    assert again.already_committed
    place.settle()
    assert place.data
    assert all(again.job_id in key for key in place.data)
    assert write(frame, place.uri, **said).job_id == again.job_id


def test_i11_a_key_whose_files_were_overwritten_stays_spent(
    session: SparkSession, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = session.range(0, 4, 1, 1)
    said: dict[str, Any] = {"mode": "append", "idempotency_key": KEY}
    first = write(frame, place.uri, **said)
    other = write(frame, place.uri, mode="overwrite")
    capsys.readouterr()
    again = write(frame, place.uri, **said)
    assert (again.job_id, again.already_committed) == (first.job_id, True)
    assert f"job {first.job_id} already committed the data" in capsys.readouterr().err
    assert {other.job_id in name for name in place.data} == {True}


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select("id", "k").collect())


@pytest.mark.usefixtures("copies")
def test_all_or_one_jobs_files_are_read(session: SparkSession, place: Place) -> None:
    frame = session.range(4).selectExpr("id", "id % 2 k")
    first = write(frame, place.uri, partition_by="k")
    write(frame.where("id = 3"), place.uri, mode="append", partition_by="k")
    assert rows(read(session, place.uri)) == [(0, 0), (1, 1), (2, 0), (3, 1), (3, 1)]
    assert rows(read(session, place.uri, job_id=first.job_id)) == rows(frame)
    assert dict(read(session, place.uri, job_id=first.job_id).dtypes) == {
        "id": "bigint",
        "k": "int",
    }


@pytest.mark.usefixtures("copies")
def test_names_that_look_like_patterns_are_read(session: SparkSession, place: Place) -> None:
    frame = session.sql("select 1 id, 'a{b},*[c]\\'d' k")
    job = write(frame, place.uri, partition_by="k").job_id
    assert rows(read(session, place.uri, job_id=job)) == rows(frame)


@pytest.mark.usefixtures("copies")
def test_schema_and_options_are_for_sparks_reader(session: SparkSession, place: Place) -> None:
    place.put("part-0.csv", b"1,x\n")
    found = read(
        session, place.uri, format="csv", schema="id int, k string", options={"nullValue": "x"}
    )
    assert rows(found) == [(1, None)]


@pytest.mark.usefixtures("copies")
def test_a_job_some_or_all_of_whose_files_are_gone_is_not_read(
    session: SparkSession, place: Place
) -> None:
    frame = session.range(4).selectExpr("id", "id % 2 k")
    first = write(frame, place.uri, partition_by="k").job_id
    how: Any = {"mode": "overwrite", "partition_by": "k"}
    second = write(frame.where("k = 0"), place.uri, partition_overwrite_mode="dynamic", **how)
    place.settle()
    with pytest.raises(NotFoundError, match=f"not all files of job {first} are at") as caught:
        read(session, place.uri, job_id=first)
    assert "\n" not in caught.value.message
    s3commit.undo(place.uri, second.job_id, leave_removed=True)
    place.settle()
    with pytest.raises(NotFoundError, match=f"not all files of job {second.job_id} are at"):
        read(session, place.uri, job_id=second.job_id)


def test_what_is_not_there_or_no_path_is_refused(session: SparkSession, place: Place) -> None:
    with pytest.raises(NotFoundError, match="is not committed at"):
        read(session, place.uri, job_id="11111111-1111-4111-8111-111111111111")
    nothing = session.range(1).selectExpr("id", "id k").where("id < 0")
    job = write(nothing, place.uri, partition_by="k").job_id
    with pytest.raises(NotFoundError, match="has committed no file at"):
        read(session, place.uri, job_id=job)
    with pytest.raises(InvalidInputError, match="must look like"):
        read(session, "/tmp/table")


def test_i12_a_list_that_was_forged_makes_a_reader_load_nothing(
    spark: SparkSession, place: Place
) -> None:
    """A reader may have more rights than who has put it. tests/core/test_documents.py has more."""
    directory = JobDirectory(place.destination, JOB)
    header = replace(LIST, destination=place.destination.uri, files=1)
    file = CommittedFile(f"another/tenant/part-0-{JOB}.parquet", 3)
    place.tiny.store.put(BUCKET, directory.commits, b"".join(commit_lines(header, [file])))
    with pytest.raises(InvalidInputError) as caught:
        read(spark, place.uri, job_id=JOB)
    assert caught.value.code == "NOT_CONTAINED"


def test_a_spark_without_s3a_is_said_in_one_line(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Spark looks, which logs 90 lines of Java."""
    monkeypatch.setattr(type(spark.read), "load", None)
    line = r"no file system for s3a://: start .*=org.apache.hadoop:hadoop-aws:[0-9.]+, or"
    with pytest.raises(InvalidInputError, match=line) as caught:
        read(spark, place.uri)
    assert "\n" not in caught.value.message
