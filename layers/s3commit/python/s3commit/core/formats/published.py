"""What a committed job leaves for readers: its manifest in ``_commits/`` and ``_SUCCESS``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from s3commit.core.formats.documents import VERSION
from s3commit.core.formats.strict_json import Fields, dump, members, parse
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.record import JobRecord, ReplacedFacts

SUCCESS_NAME = "org.apache.hadoop.fs.s3a.commit.files.SuccessData/1"
SUCCESS_FILES = 100  # Hadoop's SUCCESS_MARKER_FILE_LIMIT
MAX_LINE_BYTES = 64 * 1024
MAX_SUCCESS_BYTES = 1024 * 1024
MAX_COMMITS_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CommitHeader:
    """The first line of a commit manifest: the job, and what its files add up to."""

    job_id: str
    destination: str
    decided_at: str
    files: int
    bytes: int
    rows: int | None
    partition_by: tuple[str, ...] = ()
    idempotency_key: str | None = None
    replaced: ReplacedFacts | None = None


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """A further line: one file. ``etag`` is the one expected of the object (empty: unknown)."""

    key: str
    length: int
    etag: str
    rows: int | None


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
    first = {"version": VERSION, **members(header, "replaced")}
    if header.replaced is not None:
        first["replaced"] = members(header.replaced)
    yield dump(first) + b"\n"
    for file in files:
        yield dump(members(file)) + b"\n"


def decode_commit_header(start: bytes) -> CommitHeader:
    """Read the first line of the first `MAX_LINE_BYTES` or more. Raises `InvalidInputError`."""
    line = start.split(b"\n", 1)[0]
    fields = Fields(parse(line, what="commit manifest", max_bytes=MAX_LINE_BYTES), "$")
    fields.version(VERSION)
    return CommitHeader(
        job_id=fields.text("jobId", longest=80),
        destination=fields.text("destination"),
        decided_at=fields.text("decidedAt"),
        files=fields.integer("files"),
        bytes=fields.integer("bytes"),
        rows=fields.optional_integer("rows"),
        partition_by=fields.texts("partitionBy", most=100, default=[]),
        idempotency_key=fields.optional_text("idempotencyKey"),
        replaced=read_replaced(fields),
    )


def read_replaced(document: Fields) -> ReplacedFacts | None:
    """What a document says of the job's replace list, if it had one."""
    if not document.has("replaced"):
        return None
    fields = Fields(document.mapping("replaced"), f"{document.path}.replaced")
    return ReplacedFacts(
        sha256=fields.text("sha256", longest=64),
        files=fields.integer("files"),
        bytes=fields.integer("bytes"),
    )


def decode_commit_manifest(body: bytes) -> tuple[CommitHeader, list[CommittedFile]]:
    """Read a whole commit manifest.

    Raises `InvalidInputError` with code ``TRUNCATED`` if it has fewer or more files than it says.
    """
    lines = body.splitlines()
    if not lines:
        raise InvalidInputError("commit manifest is empty", code="TRUNCATED")
    header = decode_commit_header(lines[0])
    files = [_committed_file(line) for line in lines[1:]]
    if len(files) != header.files:
        raise InvalidInputError(
            f"commit manifest has {len(files)} files and says {header.files}", code="TRUNCATED"
        )
    return header, files


def _committed_file(line: bytes) -> CommittedFile:
    fields = Fields(parse(line, what="commit manifest", max_bytes=MAX_LINE_BYTES), "$")
    return CommittedFile(
        key=fields.text("key"),
        length=fields.integer("length"),
        etag=fields.text("etag", ""),
        rows=fields.optional_integer("rows"),
    )


def encode_success(record: JobRecord, keys: Iterable[str], *, timestamp: int) -> bytes:
    """``_SUCCESS``: Hadoop's SuccessData; ``timestamp`` in milliseconds since 1970."""
    header = header_of(record)
    names = [f"/{key}" for _, key in zip(range(SUCCESS_FILES), keys, strict=False)]
    return dump(
        {
            "name": SUCCESS_NAME,
            "success": True,
            "timestamp": timestamp,
            "date": header.decided_at,
            "hostname": "s3commit",
            "committer": "s3commit",
            "description": f"{header.files} files, {header.bytes} bytes",
            "jobId": header.job_id,
            "jobIdSource": "s3commit",
            "metrics": {"files": header.files, "bytes": header.bytes},
            "diagnostics": {},
            "filenames": names,
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


def millis_of(moment: str) -> int:
    """An RFC 3339 moment as milliseconds since 1970, as Hadoop's formats have it."""
    return round(datetime.fromisoformat(moment).timestamp() * 1000)


def success_job_id(body: bytes) -> str:
    """The job whose marker this is; empty for a marker of another kind (Hadoop's is 0 bytes)."""
    try:
        fields = Fields(parse(body, what="_SUCCESS", max_bytes=MAX_SUCCESS_BYTES), "$")
        return fields.text("jobId", "", longest=200)
    except InvalidInputError:
        return ""


def success_files(body: bytes) -> tuple[str, ...]:
    """The keys that a marker lists, up to `SUCCESS_FILES`; none for a marker of another kind."""
    try:
        fields = Fields(parse(body, what="_SUCCESS", max_bytes=MAX_SUCCESS_BYTES), "$")
        names = fields.texts("filenames", most=SUCCESS_FILES, default=[])
    except InvalidInputError:
        return ()
    return tuple(name.removeprefix("/") for name in names)
