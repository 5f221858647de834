"""What earlier runs have left under a key: their outcome is asked for, never guessed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import OutcomeUnknownError
from s3commit.core.model.locks import key_digest
from s3commit.spark import CommitResult, earlier, write
from s3commit.spark.earlier import committed_before, earlier_job, unanswered
from s3commit.spark.options import parse_options
from s3commit.writer.environment import SystemEnvironment
from s3commit.writer.job import new_job_id
from tests.spark.tiny import BUCKET, Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY = "2026-11-23"
JOB = "11111111-1111-4111-8111-111111111111"


def result(outcome: str, job: str = JOB) -> bytes:
    document = {
        "version": 1,
        "jobId": job,
        "outcome": outcome,
        "error": None if outcome == "COMMITTED" else {"code": "X", "message": "x"},
        "files": 1,
        "bytes": 1,
        "rows": 1,
        "replaced": 0,
        "decidedAt": "2026-11-23T00:00:00Z",
        "finishedAt": "2026-11-23T00:00:00Z",
        "execution": "",
    }
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("there", "surely"),
    [
        ({}, False),
        ({"commits": b"x"}, True),  # the job's own objects are gone
        ({"commits": b"x", "job": b"x"}, False),  # it may still remove what it replaces
        ({"commits": b"x", "job": b"x", "result": result("COMMITTED")}, True),
        ({"commits": b"x", "result": result("ABORTED")}, False),
        ({"job": b"x", "result": result("COMMITTED")}, False),  # not listed
    ],
)
def test_i11_a_key_is_spent_only_if_its_job_is_committed_for_sure(
    place: Place, there: dict[str, bytes], surely: bool
) -> None:
    directory = JobDirectory(place.destination, JOB)
    put = place.tiny.store.put
    record = {"version": 1, "key": KEY, "jobId": JOB}
    put(BUCKET, directory.once(key_digest(KEY)), json.dumps(record).encode())
    for name, body in there.items():
        put(BUCKET, getattr(directory, name), body)
    options = parse_options(place.uri, {"idempotencyKey": KEY})
    assert committed_before(options) == (directory if surely else None)


def test_a_key_that_nobody_has_or_that_is_not_readable_is_the_pipelines_to_judge(
    place: Place,
) -> None:
    options = parse_options(place.uri, {"idempotencyKey": KEY})
    assert committed_before(options) is None
    name = JobDirectory(place.destination, JOB).once(key_digest(KEY))
    for body in (b"no json", json.dumps({"version": 1, "key": "other", "jobId": JOB}).encode()):
        place.tiny.store.put(BUCKET, name, body)
        assert committed_before(options) is None
    assert committed_before(parse_options(place.uri, {})) is None


def test_i11_a_job_that_ends_while_it_is_looked_for_is_found(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = JobDirectory(place.destination, JOB)
    record = {"version": 1, "key": KEY, "jobId": JOB}

    def ends(*_: object) -> Iterator[JobDirectory]:
        put = place.tiny.store.put
        put(BUCKET, directory.once(key_digest(KEY)), json.dumps(record).encode())
        put(BUCKET, directory.commits, b"x")
        return iter(())

    monkeypatch.setattr(earlier, "unanswered", ends)
    found = earlier_job(parse_options(place.uri, {"idempotencyKey": KEY}))
    assert found == earlier.Earlier(directory)  # its list can't be read, which fsck says


# A program that died after its request, and is run again.


class DiedError(BaseException):
    """Stands for the death of a driver."""


@pytest.fixture
def gate(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """The pipeline does nothing until the event is set."""
    opened, handle = threading.Event(), place.tiny.handle

    def held(*args: Any) -> None:
        opened.wait(60)
        handle(*args)

    monkeypatch.setattr(place.tiny, "handle", held)
    yield opened
    opened.set()
    place.settle()


def die_after_the_request(session: SparkSession, place: Place, **said: Any) -> str:
    """The id of the job of which nobody knows the outcome."""

    def die(*_: Any) -> None:
        raise DiedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("s3commit.writer.job.wait_for_result", die)
        with pytest.raises(DiedError):
            write(session.range(3), place.uri, mode="append", idempotencyKey=KEY, **said)
    (job,) = place.jobs
    return job


class Later(threading.Thread):
    """A write in a thread of its own."""

    def __init__(self, session: SparkSession, place: Place, **said: Any) -> None:
        super().__init__()
        self.result: CommitResult | BaseException | None = None
        self._session, self._uri = session, place.uri
        self._said: dict[str, Any] = {"mode": "append", "idempotencyKey": KEY, **said}
        self.start()

    def run(self) -> None:
        try:
            self.result = write(self._session.range(3), self._uri, **self._said)
        except BaseException as error:
            self.result = error


def until_said(capsys: pytest.CaptureFixture[str], line: str) -> str:
    said = ""
    for _ in range(600):
        said += capsys.readouterr().err
        if line in said:
            return said
        threading.Event().wait(0.1)
    raise AssertionError(said)


def test_i11_the_outcome_of_a_job_that_has_not_ended_is_waited_for_instead_of_written_again(
    session: SparkSession,
    place: Place,
    gate: threading.Event,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = die_after_the_request(session, place)
    again = Later(session, place)
    assert f"job {job} of the same idempotencyKey was asked to commit" in until_said(
        capsys, "waiting for its outcome"
    )
    assert place.jobs == [job]
    gate.set()
    again.join(60)
    assert isinstance(again.result, CommitResult)
    assert (again.result.job_id, again.result.already_committed) == (job, True)
    assert again.result.gone == 0
    assert place.jobs in ([], [job])


def test_i11_a_job_that_ends_without_a_commit_lets_its_data_be_written_again(
    session: SparkSession,
    place: Place,
    gate: threading.Event,
    capsys: pytest.CaptureFixture[str],
) -> None:
    condition: dict[str, Any] = {"conditions.minRows": 9}
    job = die_after_the_request(session, place, **condition)
    again = Later(session, place)
    until_said(capsys, "waiting for its outcome")
    gate.set()
    again.join(60)
    assert isinstance(again.result, CommitResult)
    assert (again.result.already_committed, again.result.rows) == (False, 3)
    assert again.result.job_id != job
    assert "minRows is 9" in (said := capsys.readouterr().err)
    assert "the data is written again" in said


def test_an_outcome_that_stays_unknown_is_raised_and_nothing_is_written(
    session: SparkSession, place: Place, gate: threading.Event
) -> None:
    job = die_after_the_request(session, place)
    again = Later(session, place, commitTimeout="1s")
    again.join(60)
    assert isinstance(again.result, OutcomeUnknownError)
    assert f"outcome of job {job} unknown" in str(again.result)
    assert place.jobs == [job]
    other = Later(session, place, idempotencyKey="another")  # waits for no one
    gate.set()
    other.join(60)
    assert isinstance(other.result, CommitResult)
    assert not other.result.already_committed


def test_only_jobs_of_the_key_that_were_asked_and_not_answered_are_waited_for(
    place: Place,
) -> None:
    store, environment = place.tiny.store, SystemEnvironment()
    jobs = [new_job_id(environment, KEY) for _ in range(4)]
    assert len({job[:8] for job in jobs}) == 1
    assert len(set(jobs)) == 4
    assert new_job_id(environment, None)[:8] != jobs[0][:8]

    def put(job: str, key: str, *names: str) -> str:
        directory = JobDirectory(place.destination, job)
        spec = {"version": 1, "jobId": job, "destination": place.destination.uri}
        more = {"conflict": "append", "scope": "directory", "createdAt": "", "client": ""}
        document = json.dumps({**spec, **more, "idempotencyKey": key}).encode()
        for name in ("job", *names):
            body = document if name == "job" else b"x"
            store.put(BUCKET, getattr(directory, name), body)
        store.put(BUCKET, directory.manifest("0", "a").replace("pendingset", "x"), b"x")
        return job

    put(jobs[0], KEY)
    put(jobs[1], KEY, "request", "result")
    put(jobs[2], "of another key with the same digits", "request")
    waiting = put(jobs[3], KEY, "request")
    store.put(BUCKET, f"{place.destination.prefix}__magic_job-{jobs[0][:8]}/x", b"x")
    found = list(unanswered(store, place.destination, KEY))
    assert [one.job_id for one in found] == [waiting]


def test_i11_a_key_whose_files_were_overwritten_stays_spent_and_says_so(
    session: SparkSession,
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = session.range(0, 4, 1, 1).selectExpr("id", "id % 4 k")
    said: dict[str, Any] = {"mode": "append", "partition_by": "k", "idempotencyKey": KEY}
    first = write(frame, place.uri, **said)
    assert write(frame, place.uri, **said).gone == 0
    dynamic: dict[str, Any] = {"partitionOverwriteMode": "dynamic", "partition_by": "k"}
    write(frame.where("k = 1"), place.uri, mode="overwrite", **dynamic)
    again = write(frame, place.uri, **said)
    assert (again.job_id, again.already_committed, again.gone) == (first.job_id, True, 1)
    assert "but 1 of its 4 files are no longer there" in (line := capsys.readouterr().err)
    assert "give another idempotencyKey" in line
    monkeypatch.setattr(earlier, "LOOKED_AT", 2)
    found = earlier_job(parse_options(place.uri, {"idempotencyKey": KEY}))
    assert found is not None
    assert (found.files, found.looked) == (4, 2)
