"""`boto3_session` on Spark: the driver's requests have it, the tasks' have the executors' keys."""

import re
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from pyspark.sql import SparkSession

from s3commit import AccessError
from s3commit.spark import batch_writer, read, tasks, write
from s3commit.writer.access import shared_client
from tests.spark.tiny import Place

REGION = "eu-west-3"
SIGNED = re.compile(r"Credential=([^/]+)/\d+/([^/]+)/s3/")
DRIVER, TASKS = ("KEY-A", REGION), ("testing", REGION)  # the job's region, by their own keys
PIPELINE = ("testing", "us-east-1")
Asked = list[tuple[tuple[str, str], str]]  # who, and for what


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What the server is asked; this process, the driver, has no keys of its own."""
    found: Asked = []
    real = DomainDispatcherApplication.__call__

    def noted(app: Any, environ: Any, start: Any) -> Any:
        if signed := SIGNED.search(environ.get("HTTP_AUTHORIZATION", "")):
            key, region = signed.groups()
            found.append(((key, region), environ["PATH_INFO"]))
        return real(app, environ, start)

    monkeypatch.setattr(DomainDispatcherApplication, "__call__", noted)
    return found


@pytest.fixture
def user(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    shared_client.cache_clear()
    yield boto3.Session("KEY-A", "SECRET-OF-A", region_name=REGION)
    shared_client.cache_clear()


@pytest.mark.usefixtures("copies")
def test_each_side_has_its_own_keys_and_one_region(
    session: SparkSession, place: Place, user: boto3.Session, asked: Asked
) -> None:
    frame = session.createDataFrame([(1,), (2,)], "n int")
    how: Any = {"mode": "append", "boto3_session": user}
    write(frame, place.uri, dry_run=True, **how)
    job_id = write(frame, place.uri, **how).job_id
    batch_writer(place.uri, query="q", boto3_session=user)(frame, 0)
    assert read(session, place.uri, job_id=job_id, boto3_session=user).count() == 2
    asked = [(who, what) for who, what in asked if place.destination.prefix in what]
    assert {who for who, _ in asked} == {DRIVER, TASKS, PIPELINE}
    assert {what.endswith((".parquet", ".pendingset")) for who, what in asked if who == TASKS} == {
        True
    }
    ends = ("_job.json", "_request.json", "_result.json")
    assert {who for who, what in asked if what.endswith(ends)} - {PIPELINE} == {DRIVER}


def test_a_task_without_access_says_whose_keys_it_had(
    spark: SparkSession, place: Place, user: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> None:
        raise AccessError("no access")

    monkeypatch.setattr(tasks, "run", run)
    with pytest.raises(AccessError) as caught:
        write(spark.range(1), place.uri, boto3_session=user)
    assert "boto3_session is the driver's: a task has the executor's" in caught.value.__notes__
