"""What S3 and the ledger have of one job: each document read once, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from s3commit.core.formats.documents import MAX_JOB_BYTES, decode_job
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.published import CommitHeader
from s3commit.core.job.contents import Contents
from s3commit.core.job.documents import read_commit_header, read_result
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import JobResult, JobSpec
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED
from s3commit.core.ports.bundle import Ports

T = TypeVar("T")


class Presence(StrEnum):
    """Whether a document is there, and acceptable where it lies."""

    ABSENT = "absent"
    THERE = "there"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Document(Generic[T]):
    """One document; ``value`` is set if it is there, ``error`` if it can't be read."""

    presence: Presence = Presence.ABSENT
    value: T | None = None
    error: InvalidInputError | None = None


@dataclass(frozen=True, slots=True)
class StoredJob:
    """One job."""

    record: JobRecord | None
    spec: Document[JobSpec]
    result: Document[JobResult]
    commits: Document[CommitHeader]


def read_stored_job(
    ports: Ports, directory: JobDirectory, contents: Contents, *, is_listed: bool
) -> StoredJob:
    """Read the job's record, and each document that a listing has shown.

    ``is_listed``: a listing has shown the job's commit manifest. The listings are older than the
    record: what a job that has ended since then has left is looked for anew.
    """
    record = ports.ledger.job(directory.ref)
    ended = record is not None and record.state in ENDED
    return StoredJob(
        record,
        spec_document(ports, directory) if contents.job else Document(),
        result_document(ports, directory) if contents.result or ended else Document(),
        commit_document(ports, directory) if is_listed or ended else Document(),
    )


def spec_document(ports: Ports, directory: JobDirectory) -> Document[JobSpec]:
    """``job.json``."""

    def read() -> JobSpec:
        body = ports.store.get(directory.bucket, directory.job, max_bytes=MAX_JOB_BYTES).body
        return decode_job(body, directory)

    return read_document(read)


def result_document(ports: Ports, directory: JobDirectory) -> Document[JobResult]:
    """``result.json``."""
    return read_document(lambda: read_result(ports.store, directory))


def commit_document(ports: Ports, directory: JobDirectory) -> Document[CommitHeader]:
    """How the job's commit manifest begins; another job's can't be read as this one's."""

    def read() -> CommitHeader:
        header = read_commit_header(ports.store, directory)
        if header.job_id != directory.job_id:
            raise InvalidInputError(f"{directory.commits} is another job's", code="WRONG_JOB")
        return header

    return read_document(read)


def read_document(read: Callable[[], T]) -> Document[T]:
    """What ``read`` returns, or why it does not."""
    try:
        return Document(Presence.THERE, read())
    except NotFoundError:
        return Document()
    except InvalidInputError as error:
        return Document(Presence.UNREADABLE, error=error)
