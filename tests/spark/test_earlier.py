"""What an earlier run has committed under a key is found before a task runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.locks import key_digest
from s3commit.spark import write
from s3commit.spark.frames import earlier_job
from tests.spark.tiny import BUCKET, Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = "2026-11-23"
JOB = "11111111-1111-4111-8111-111111111111"
HINT = {"version": 1, "jobId": JOB, "files": 1, "rows": 3}


@pytest.mark.parametrize(
    ("hint", "listed", "found"),
    [
        (None, True, False),
        (HINT, True, True),
        (HINT, False, False),  # forged, or left behind by who has deleted the list
        ({**HINT, "jobId": "../x"}, True, False),
        ("no json", True, False),
    ],
)
def test_i11_a_hint_counts_if_the_job_is_listed_as_committed(
    place: Place, hint: object, listed: bool, found: bool
) -> None:
    directory, put = JobDirectory(place.destination, JOB), place.tiny.store.put
    if hint is not None:
        # The key of the hint is the digest of what _job.json has, which is the key's digest.
        body = hint.encode() if isinstance(hint, str) else json.dumps(hint).encode()
        put(BUCKET, directory.once(key_digest(key_digest(KEY))), body)
    if listed:
        put(BUCKET, directory.commits, b"x")
    assert earlier_job(place.destination, KEY) == (directory if found else None)
    assert earlier_job(place.destination, None) is None


class DiedError(BaseException):
    """Stands for the death of a driver."""


def test_i11_a_driver_that_died_after_its_request_and_is_run_again_adds_its_rows_once(
    session: SparkSession, place: Place
) -> None:
    def die(*_: Any) -> None:
        raise DiedError

    frame, said = session.range(3), {"mode": "append", "idempotencyKey": KEY}
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
    said: dict[str, Any] = {"mode": "append", "idempotencyKey": KEY}
    first = write(frame, place.uri, **said)
    other = write(frame, place.uri, mode="overwrite")
    capsys.readouterr()
    again = write(frame, place.uri, **said)
    assert (again.job_id, again.already_committed) == (first.job_id, True)
    assert f"was committed by job {first.job_id}; nothing was run" in capsys.readouterr().err
    assert all(other.job_id in name for name in place.data)
