"""What a committed job leaves for readers: its manifest in ``_commits/`` and ``_SUCCESS``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from s3commit.core.formats.codec import Codec
from s3commit.core.formats.documents import MAX_JOB_BYTES, VERSION
from s3commit.core.formats.strict_json import dump
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.fields import SPARSE, Text
from s3commit.core.model.job import Columns, JobId
from s3commit.core.model.record import JobRecord, ReplacedFacts

SUCCESS_NAME = "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"
SUCCESS_FILES = 100  # Hadoop's SUCCESS_MARKER_FILE_LIMIT
MAX_LINE_BYTES = MAX_JOB_BYTES  # the first one repeats job.json's columns and key
MAX_SUCCESS_BYTES = 1024 * 1024
MAX_COMMITS_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CommitHeader:
    """The first line of a commit manifest: the job, and what its files add up to."""

    job_id: JobId
    destination: str
    decided_at: str
    files: int
    bytes: int
    rows: int | None
    partition_by: Columns = ()
    idempotency_key: str | None = None
    replaced: Annotated[ReplacedFacts | None, SPARSE] = None


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """A further line: one file. ``etag`` is the one expected of the object (empty: unknown)."""

    key: str
    length: int
    etag: str = ""
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class _Marker:
    """What is read of a ``_SUCCESS``: Hadoop's is of 0 bytes, or of a job of its own."""

    job_id: Annotated[str, Text(200)] = ""


_HEADER: Final = Codec(CommitHeader, "commit manifest", VERSION, max_bytes=MAX_LINE_BYTES)
_FILE: Final = Codec(CommittedFile, "commit manifest", max_bytes=MAX_LINE_BYTES)
_MARKER: Final = Codec(_Marker, "_SUCCESS", max_bytes=MAX_SUCCESS_BYTES)


def header_of(record: JobRecord) -> CommitHeader:
    """The header for a decided job."""
    if record.plan is None or record.decided_at is None:
        raise InvalidInputError(f"job {record.job_id} is not decided", code="NOT_DECIDED")
    return CommitHeader(
        job_id=record.job_id,
        destination=record.destination.uri,
        decided_at=record.decided_at,
        files=record.plan.files,
        bytes=record.plan.bytes,
        rows=record.plan.rows,
        partition_by=record.partition_by,
        idempotency_key=record.idempotency_key,
        replaced=record.replaced,
    )


def commit_lines(header: CommitHeader, files: Iterable[CommittedFile]) -> Iterator[bytes]:
    """The commit manifest, line by line, each with its newline; the same input, the same bytes."""
    yield dump(_HEADER.write(header)) + b"\n"
    for file in files:
        yield dump(_FILE.write(file)) + b"\n"


def decode_commit_header(start: bytes) -> CommitHeader:
    """Read the first line of the first `MAX_LINE_BYTES` or more. Raises `InvalidInputError`."""
    return _HEADER.decode(start.split(b"\n", 1)[0])


def decode_commit_manifest(body: bytes) -> tuple[CommitHeader, list[CommittedFile]]:
    """Read a whole commit manifest.

    Raises `InvalidInputError` with code ``TRUNCATED`` if it has fewer or more files than it says.
    """
    lines = body.splitlines()
    if not lines:
        raise InvalidInputError("commit manifest is empty", code="TRUNCATED")
    header = decode_commit_header(lines[0])
    files = [_FILE.decode(line) for line in lines[1:]]
    if len(files) != header.files:
        raise InvalidInputError(
            f"commit manifest has {len(files)} files and says {header.files}", code="TRUNCATED"
        )
    return header, files


def encode_success(record: JobRecord, keys: Iterable[str], now: str) -> bytes:
    """``_SUCCESS``: Hadoop's SuccessData, put at ``now`` (RFC 3339), with the first keys."""
    header = header_of(record)
    return dump(
        {
            "name": SUCCESS_NAME,
            "success": True,
            "timestamp": round(datetime.fromisoformat(now).timestamp() * 1000),
            "date": header.decided_at,
            "hostname": "s3commit",
            "committer": "s3commit",
            "description": f"{header.files} files, {header.bytes} bytes",
            "jobId": header.job_id,
            "jobIdSource": "s3commit",
            "metrics": {"files": header.files, "bytes": header.bytes},
            "diagnostics": {},
            "filenames": [f"/{key}" for key in keys],
            "iostatistics": {
                "counters": {
                    "committer_files_committed": header.files,
                    "committer_bytes_committed": header.bytes,
                },
                "gauges": {},
                "minimums": {},
                "maximums": {},
                "meanstatistics": {},
            },
            "state": None,
            "stage": None,
        }
    )


def success_job_id(body: bytes) -> str:
    """The job whose marker this is; empty for a marker of another kind (Hadoop's is 0 bytes)."""
    try:
        return _MARKER.decode(body).job_id
    except InvalidInputError:
        return ""
