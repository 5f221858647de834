"""Conflict policies, conditions and keys through the Python API on the deployed wiring."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

import s3commit
from s3commit.core.model.errors import JobFailedError
from s3commit.core.model.job import JobResult, Outcome
from tests.e2e.conftest import Deployed

WAIT_SECONDS = 120


def write(destination: str, files: Mapping[str, bytes], **policy: Any) -> JobResult:
    """One job of one task."""
    with s3commit.open_job(destination, **policy) as job:
        task = job.task("0")
        for name, body in files.items():
            with task.open(name, rows=len(body)) as file:
                file.write(body)
        return job.commit([task.finish()], timeout=WAIT_SECONDS)


def refused(destination: str, files: Mapping[str, bytes], **policy: Any) -> JobFailedError:
    with pytest.raises(JobFailedError) as caught:
        write(destination, files, **policy)
    return caught.value


class Table:
    """A destination of a test's own, and what a reader sees in it."""

    def __init__(self, deployed: Deployed, prefix: str) -> None:
        self.s3 = deployed.client("s3")
        self.bucket = deployed.bucket
        self.prefix = prefix
        self.uri = f"s3://{self.bucket}/{prefix}"

    def get(self, key: str) -> bytes:
        body: bytes = self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return body

    def put(self, name: str, body: bytes) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=self.prefix + name, Body=body)

    def data(self) -> dict[str, bytes]:
        """Directory → bodies of its visible files, put together in the order of their names."""
        found: dict[str, bytes] = {}
        listed = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=self.prefix)
        for key in sorted(one["Key"] for one in listed.get("Contents", [])):
            directory, name = key.removeprefix(self.prefix).rpartition("/")[::2]
            if not key.removeprefix(self.prefix).startswith(("_", ".")) and name[0] not in "_.":
                found[directory] = found.get(directory, b"") + self.get(key)
        return found

    @property
    def marker(self) -> str:
        return str(json.loads(self.get(f"{self.prefix}_SUCCESS"))["jobId"])


@pytest.fixture
def table(environment: Deployed, request: pytest.FixtureRequest) -> Table:
    return Table(environment, f"policies/{request.node.name}/")


def test_i5_i10_a_directory_is_replaced_and_nothing_beside_it(
    environment: Deployed, table: Table
) -> None:
    table.put("_hidden/notes.txt", b"kept")
    table.put("dt=1/.part.crc", b"kept")
    beside = Table(environment, table.prefix.removesuffix("/") + "10/")
    beside.put("dt=1/part.csv", b"kept")
    write(table.uri, {"dt=1/a.csv": b"1", "dt=2/a.csv": b"2"})
    result = write(table.uri, {"dt=3/b.csv": b"3"}, conflict="replace")
    assert (result.outcome, result.files, result.replaced) == (Outcome.COMMITTED, 1, 2)
    assert table.data() == {"dt=3": b"3"}
    assert table.marker == result.job_id
    assert beside.data() == {"dt=1": b"kept"}
    for name in ("_hidden/notes.txt", "dt=1/.part.crc"):
        assert table.get(table.prefix + name) == b"kept"


def test_i10_the_partitions_that_a_job_writes_are_replaced(table: Table) -> None:
    write(table.uri, {"a.csv": b"root", "dt=1/h=1/a.csv": b"1", "dt=2/a.csv": b"2"})
    result = write(table.uri, {"dt=1/b.csv": b"new"}, conflict="replace", scope="partition")
    assert (result.files, result.replaced) == (1, 1)
    assert table.data() == {"": b"root", "dt=1": b"new", "dt=2": b"2"}
    assert table.marker == result.job_id


def test_fail_refuses_where_there_is_data_and_changes_nothing(table: Table) -> None:
    first = write(table.uri, {"dt=1/a.csv": b"1"}, conflict="fail")
    error = refused(table.uri, {"dt=2/a.csv": b"2"}, conflict="fail")
    assert error.code == "DESTINATION_NOT_EMPTY"
    assert "dt=1/a" in error.message
    error = refused(table.uri, {"dt=1/b.csv": b"2"}, conflict="fail", scope="partition")
    assert error.code == "DESTINATION_NOT_EMPTY"
    assert (table.data(), table.marker) == ({"dt=1": b"1"}, first.job_id)
    write(table.uri, {"dt=2/b.csv": b"2"}, conflict="fail", scope="partition")
    assert table.data() == {"dt=1": b"1", "dt=2": b"2"}


def test_a_condition_that_is_not_met_is_named_with_its_figure(table: Table) -> None:
    error = refused(table.uri, {"a.csv": b"123"}, conditions={"minRows": 4})
    assert (error.code, "minRows is 4, the job has 3" in error.message) == (
        "CONDITION_FAILED",
        True,
    )
    assert table.data() == {}
    write(table.uri, {"a.csv": b"123"}, conditions={"minRows": 3, "maxRows": 3, "minFiles": 1})
    assert table.data() == {"": b"123"}


def test_i11_what_is_run_again_with_its_key_adds_nothing(table: Table) -> None:
    first = write(table.uri, {"a.csv": b"1"}, idempotency_key="2026-11-21")
    again = write(table.uri, {"a.csv": b"1"}, idempotency_key="2026-11-21", conflict="fail")
    assert (first.already_committed, again.already_committed) == (False, True)
    assert again.error is not None
    assert first.job_id in again.error.message
    assert table.data() == {"": b"1"}
    write(table.uri, {"a.csv": b"2"}, idempotency_key="2026-11-22")
    assert sorted(table.data()[""]) == [ord("1"), ord("2")]
