"""Many jobs at once on the deployed wiring: what each was told is what is there at the end (I6)."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest

import s3commit
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.formats.documents import decode_result
from s3commit.core.formats.layout import JobDirectory, partition_of
from s3commit.core.model.errors import JobFailedError
from s3commit.core.model.job import Conflict, JobResult, Scope
from tests.contract.locking import claims_left
from tests.e2e.conftest import Deployed

WAIT_SECONDS = 300
ROOT = "many-jobs/"
TABLE, KEYED_TABLE = f"{ROOT}table/", f"{ROOT}keyed/"
KEYED = 4

A, R, F = Conflict.APPEND, Conflict.REPLACE, Conflict.FAIL
D, P = Scope.DIRECTORY, Scope.PARTITION

# Where below the table, policy, scope, the partitions written.
MIXED: tuple[tuple[str, Conflict, Scope, tuple[str, ...]], ...] = (
    ("", A, D, ("dt=1", "dt=2")),
    ("", A, D, ("dt=2", "dt=3")),
    ("dt=3/", A, D, ("h=1", "h=2")),
    ("", R, P, ("dt=1",)),
    ("", R, P, ("dt=2", "dt=4")),
    ("", F, P, ("dt=1", "dt=5")),
    ("dt=3/", R, D, ("h=1",)),
    ("", R, D, ("dt=1", "dt=3")),
)


@dataclass(frozen=True)
class Told:
    """A job, and what its program was told of it."""

    directory: JobDirectory
    conflict: Conflict
    scope: Scope
    files: dict[str, bytes]
    result: JobResult
    already: bool = False

    @property
    def moment(self) -> str:
        """When it did what it did to the table: under its locks, before and after all others'."""
        return self.result.decided_at or self.result.finished_at

    def before(self, table: dict[str, bytes]) -> set[str]:
        """The files that its policy is about."""
        root = self.directory.destination.prefix
        if self.scope is D:
            return {key for key in table if key.startswith(root)}
        written = {root + partition_of(key.removeprefix(root)) for key in self.files}
        return {key for key in table if any(key.startswith(one) for one in written)}


def run(
    destination: str, conflict: Conflict, scope: Scope, partitions: tuple[str, ...], **more: Any
) -> Told:
    """One job with a task a partition."""
    files: dict[str, bytes] = {}
    with s3commit.open_job(destination, conflict=conflict, scope=scope, **more) as job:
        counted = []
        for number, partition in enumerate(partitions):
            task = job.task(str(number))
            body = f"{job.job_id} {partition}".encode()
            with task.open(f"{partition}/part-{number}.csv") as file:
                file.write(body)
            files[f"{job.spec.destination.prefix}{partition}/part-{number}-{job.job_id}.csv"] = body
            counted.append(task.finish())
        try:
            told = job.commit(counted, timeout=WAIT_SECONDS)
        except JobFailedError:
            # The error says less than its document.
            return Told(job.directory, conflict, scope, files, result_of(job.directory))
    return Told(job.directory, conflict, scope, files, told, told.already_committed)


def result_of(directory: JobDirectory) -> JobResult:
    return decode_result(
        S3ObjectStore().get(directory.bucket, directory.result, max_bytes=10**6).body
    )


@pytest.fixture(scope="module")
def told(deployed: Deployed) -> Iterator[list[Told]]:
    """Everything at once: mixed jobs on one table, and jobs with one key on another."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in deployed.environment.items():
            patch.setenv(name, value)
        bucket = f"s3://{deployed.bucket}/"
        with ThreadPoolExecutor(len(MIXED) + KEYED) as pool:
            keyed = [
                pool.submit(run, f"{bucket}{KEYED_TABLE}", A, D, ("dt=1",), idempotency_key="dt=1")
                for _ in range(KEYED)
            ]
            mixed = [
                pool.submit(run, f"{bucket}{TABLE}{below}", conflict, scope, partitions)
                for below, conflict, scope, partitions in MIXED
            ]
            yield [future.result() for future in (*mixed, *keyed)]


def there(deployed: Deployed, prefix: str) -> dict[str, bytes]:
    """Every visible file below a prefix."""
    s3 = deployed.client("s3")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=deployed.bucket, Prefix=prefix)
    keys = [one["Key"] for page in pages for one in page.get("Contents", [])]
    return {
        key: s3.get_object(Bucket=deployed.bucket, Key=key)["Body"].read()
        for key in keys
        if "/_" not in key
    }


def test_i2_i6_i10_a_table_is_what_its_jobs_were_told_one_after_the_other(
    deployed: Deployed, told: list[Told]
) -> None:
    jobs = [one for one in told if one.directory.destination.prefix.startswith(TABLE)]
    assert len(jobs) == len(MIXED)
    expected: dict[str, bytes] = {}
    for one in sorted(jobs, key=lambda one: one.moment):
        before = one.before(expected)
        if one.conflict is F and before:
            assert one.result.error is not None
            assert one.result.error.code == "DESTINATION_NOT_EMPTY"
            continue
        assert one.result.error is None, one
        if one.conflict is R:
            assert one.result.replaced == len(before), one
            expected = {key: body for key, body in expected.items() if key not in before}
        expected |= one.files
    assert there(deployed, TABLE) == expected


def test_i11_of_many_jobs_with_one_key_exactly_one_adds(
    deployed: Deployed, told: list[Told]
) -> None:
    jobs = [one for one in told if one.directory.destination.prefix == KEYED_TABLE]
    assert len(jobs) == KEYED
    (winner,) = [one for one in jobs if not one.already]
    assert winner.result.error is None
    assert there(deployed, KEYED_TABLE) == winner.files
    for one in jobs:
        if one.already:
            assert one.result.error is not None
            assert winner.directory.job_id in one.result.error.message


def test_i4_nothing_stays_open_and_every_lock_is_given_back(
    deployed: Deployed, told: list[Told]
) -> None:
    ledger = DynamoLedger(deployed.table, region=deployed.region, host=deployed.endpoint)
    records = [record for record in map(ledger.job, (one.directory.ref for one in told)) if record]
    nodes = {node for record in records for node in record.locks}
    assert f"{deployed.bucket}/{TABLE}" in nodes
    assert [claim for record in records for claim in claims_left(ledger, record)] == []
    listed = deployed.client("s3").list_multipart_uploads(Bucket=deployed.bucket, Prefix=ROOT)
    assert listed.get("Uploads", []) == []
