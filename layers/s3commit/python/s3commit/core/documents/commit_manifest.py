"""``_commits/_<job_id>.jsonl``: the files that a job has made visible, listed for readers."""

import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import chain
from typing import Annotated, Final

from s3commit.core.documents.job_json import MAX_JOB_BYTES, Columns, Labels, Note
from s3commit.core.documents.pages import NDJSON
from s3commit.core.documents.pendingset import (
    MAX_OBJECT_BYTES,
    MAX_PARTS,
    MAX_ROWS,
    PendingFile,
    check_contained,
    expected_etag,
)
from s3commit.core.formats.codec import VERSION, Codec
from s3commit.core.formats.layout import META_JOB, JobDirectory
from s3commit.core.formats.strict_json import TOO_LARGE, dump
from s3commit.core.model.destination import JobId, Scope
from s3commit.core.model.errors import (
    NOT_READABLE,
    InvalidInputError,
    PreconditionError,
    TransientError,
    UploadGoneError,
)
from s3commit.core.model.fields import SPARSE
from s3commit.core.model.limits import MAX_JOB_FILES, PUT_BYTES
from s3commit.core.model.record import JobRecord, ReplacedFacts
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import ObjectReader

SUCCESS_FILES = 100  # Hadoop's SUCCESS_MARKER_FILE_LIMIT
MAX_LINE_BYTES = MAX_JOB_BYTES  # the first one repeats _job.json's columns and key
MAX_COMMITS_BYTES = 1024 * 1024 * 1024
MAX_WHOLE_BYTES = 256 * 1024 * 1024  # that a function reads of it: half a million files or more
PIECE_BYTES = PUT_BYTES


@dataclass(frozen=True, slots=True)
class CommitHeader:
    """The first line of a commit manifest: the job, and what its files add up to.

    ``replaced`` are the files that it has removed: of the whole destination or, by ``scope``, of
    the partitions that its own files are in; of a job that ``undoes`` another, that one's alone.
    """

    job_id: JobId
    destination: str
    decided_at: str
    files: int
    bytes: int
    rows: int | None
    partition_by: Columns = ()
    idempotency_key: str | None = None
    replaced: Annotated[ReplacedFacts | None, SPARSE] = None
    scope: Annotated[Scope, SPARSE] = Scope.DIRECTORY
    undoes: Annotated[JobId, SPARSE] = ""
    note: Note = ""
    labels: Labels = ()

    @property
    def replaced_files(self) -> int:
        """How many files it has removed."""
        return self.replaced.files if self.replaced else 0

    @property
    def leaves_removed(self) -> bool:
        """True of an undo, if it does not say that it restores all that its job had replaced."""
        return self.replaced is None or not self.replaced.restores_all


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """A further line: one file. ``etag`` is the one expected of the object (empty: unknown).

    ``origin`` is the key of the file of which an undo has brought back this copy: the first one, if
    it was brought back more than once.
    """

    key: str
    length: int
    etag: str = ""
    rows: int | None = None
    origin: Annotated[str, SPARSE] = ""

    @property
    def first_key(self) -> str:
        """The key that the data had first."""
        return self.origin or self.key


_HEADER: Final = Codec(CommitHeader, "commit manifest", VERSION, max_bytes=MAX_LINE_BYTES)
_FILE: Final = Codec(CommittedFile, "commit manifest", max_bytes=MAX_LINE_BYTES)

# The bytes of a line beside its key, at most.
_BESIDE_KEY: Final = 1 + len(
    dump(_FILE.write(CommittedFile("", MAX_OBJECT_BYTES, f'"{"f" * 32}-{MAX_PARTS}"', MAX_ROWS)))
)
_BESIDE_ORIGIN: Final = len('"origin":"",')


def listed_bytes(key: str, origin: str = "") -> int:
    """The bytes that a file takes in a commit manifest, at most; no key has a control character."""
    if origin:
        return listed_bytes(key) + listed_bytes(origin) - _BESIDE_KEY + _BESIDE_ORIGIN
    return len(key.encode()) + key.count('"') + key.count("\\") + _BESIDE_KEY


def header_of(record: JobRecord) -> CommitHeader:
    """The header for a decided job."""
    plan = record.planned
    return CommitHeader(
        job_id=record.job_id,
        destination=record.destination.uri,
        decided_at=record.decided_at or "",
        files=plan.files,
        bytes=plan.bytes,
        rows=plan.rows,
        partition_by=record.partition_by,
        idempotency_key=record.idempotency_key,
        replaced=record.replaced,
        scope=record.scope,
        undoes=record.undoes,
        note=record.note,
        labels=record.labels,
    )


def commit_lines(header: CommitHeader, files: Iterable[CommittedFile]) -> Iterator[bytes]:
    """The commit manifest, line by line, each with its newline; the same input, the same bytes.

    Raises `InvalidInputError` (``TOO_LARGE``) for a header that no reader would take.
    """
    yield _HEADER.encode(header) + b"\n"
    for file in files:
        yield dump(_FILE.write(file)) + b"\n"


def decode_commit_header(start: bytes, directory: JobDirectory) -> CommitHeader:
    """Read the first line of the first `MAX_LINE_BYTES` or more. Raises `InvalidInputError`.

    The one place where a list is believed: one of another job or destination than those of its
    place is refused (``WRONG_JOB``). A copy of a table brings such lists along.
    """
    header = _HEADER.decode(start.split(b"\n", 1)[0])
    if (header.job_id, header.destination) != (directory.job_id, directory.destination.uri):
        raise InvalidInputError(
            f"commit manifest of {header.job_id!r} at {header.destination[:200]!r} is at"
            f" {directory.commits}",
            code="WRONG_JOB",
        )
    return header


def decode_commit_manifest(
    lines: Iterable[bytes], directory: JobDirectory
) -> tuple[CommitHeader, Iterator[CommittedFile]]:
    """Read a commit manifest, of which the files are read as they are needed.

    Raises `InvalidInputError` as `decode_commit_header`; ``TOO_LARGE`` if it says that it has more
    than a job may have. The files raise it at the first that is wrong: ``TRUNCATED`` if there are
    fewer or more than it says, ``NOT_CONTAINED`` or ``NAME_NOT_UNIQUE`` if one is not the job's.
    """
    lines = iter(lines)
    header = decode_commit_header(next(lines, b""), directory)
    if header.files > MAX_JOB_FILES:
        raise InvalidInputError(
            f"commit manifest says {header.files} files; a job has {MAX_JOB_FILES} at most",
            code=TOO_LARGE,
        )
    return header, _files(lines, header, directory)


def _files(
    lines: Iterator[bytes], header: CommitHeader, directory: JobDirectory
) -> Iterator[CommittedFile]:
    count = 0
    for count, line in enumerate(lines, start=1):
        if count > header.files:
            break
        file = _FILE.decode(line.removesuffix(b"\n"))
        check_contained(file.key, directory)
        yield file
    if count != header.files:
        raise InvalidInputError(
            f"commit manifest has {count} files or more and says {header.files}", code="TRUNCATED"
        )


def stream_commit_manifest(
    store: ObjectReader, directory: JobDirectory, *, max_bytes: int = MAX_COMMITS_BYTES
) -> tuple[CommitHeader, Iterator[CommittedFile]]:
    """The job's manifest in ``_commits/``, of which the files are read as they are needed.

    `PIECE_BYTES` are held. Until the last file has come it may raise `InvalidInputError`: then the
    list is not the job's, and none of its files is to be believed. Raises as
    `read_commit_manifest`. Requests: a GET for each piece.
    """
    return decode_commit_manifest(_lines(store, directory, max_bytes), directory)


def _lines(store: ObjectReader, directory: JobDirectory, max_bytes: int) -> Iterator[bytes]:
    """The list's lines; of one that is too long, so much that its decoder refuses it."""
    rest, where = b"", (directory.bucket, directory.commits)
    for start in range(0, max_bytes + 1, PIECE_BYTES):
        try:
            piece = store.first_bytes(*where, PIECE_BYTES, start=start)
        except InvalidInputError:
            if not start:
                raise
            piece = b""  # the one before was the last
        lines, rest = BytesIO(rest + piece), b""
        for line in lines:
            if line.endswith(b"\n") or len(line) > MAX_LINE_BYTES:
                yield line
            else:
                rest = line
        if len(piece) < PIECE_BYTES:
            if rest:
                yield rest
            return
    raise InvalidInputError(
        f"s3://{'/'.join(where)} has more than the {max_bytes} bytes that are read", code=TOO_LARGE
    )


def read_commit_manifest(
    store: ObjectReader, directory: JobDirectory, *, max_bytes: int = MAX_COMMITS_BYTES
) -> tuple[CommitHeader, list[CommittedFile]]:
    """The job's manifest in ``_commits/``, whole: a gigabyte has no room in a function.

    Raises `NotFoundError`, and `InvalidInputError` for one that is not the job's own.
    """
    header, files = stream_commit_manifest(store, directory, max_bytes=max_bytes)
    return header, list(files)


def not_committed(directory: JobDirectory) -> str:
    """The message where a job has no manifest in ``_commits/``."""
    place = directory.destination.uri
    return (
        f"job {directory.job_id} is not committed at {place}: there is no"
        f" s3://{directory.bucket}/{directory.commits}. If that list may have been deleted, see:"
        f" s3commit fsck {shlex.quote(place)}"
    )


def read_commit_header(store: ObjectReader, directory: JobDirectory) -> CommitHeader:
    """How the job's manifest in ``_commits/`` begins. Raises as `read_commit_manifest`."""
    start = store.first_bytes(directory.bucket, directory.commits, MAX_LINE_BYTES)
    return decode_commit_header(start, directory)


def publish_manifest(
    ports: S3Ports, directory: JobDirectory, record: JobRecord, files: Iterable[PendingFile]
) -> list[str]:
    """Write ``_commits/_<job_id>.jsonl`` of the plan's ``files``, and return the first keys.

    An object there stays if it is the same, by an earlier try: its time says in what order jobs
    were published. Anything else, a stranger's, is written over (I12). A short one goes up with one
    PUT, a long one in parts. Its name carries the job's id, so that `TidyUp` finds the upload of a
    worker that died on the way. Raises `TransientError` if the upload was aborted.
    """
    names: list[str] = []

    def committed() -> Iterator[CommittedFile]:
        for file in files:
            if len(names) < SUCCESS_FILES:
                names.append(file.key)
            etag = expected_etag(file)
            yield CommittedFile(file.key, file.length, etag, file.rows, file.origin)

    key = directory.commits
    parts = _parts(commit_lines(header_of(record), committed()))
    first = next(parts, b"")
    if len(first) < PUT_BYTES:
        _put_once(ports, directory.bucket, key, first)
        return names
    try:
        upload_id = ports.store.create_upload(
            directory.bucket, key, metadata={META_JOB: directory.job_id}, content_type=NDJSON
        )
        etags, length = [], 0
        for number, part in enumerate(chain([first], parts), start=1):
            etags.append(ports.store.upload_part(directory.bucket, key, upload_id, number, part))
            length += len(part)
        complete = partial(
            ports.store.complete_upload, directory.bucket, key, upload_id, etags, length=length
        )
        try:
            complete(if_absent=True)
        except PreconditionError:
            facts = None
            with suppress(*NOT_READABLE):  # a stranger's, encrypted with a key of its own
                facts = ports.store.head(directory.bucket, key)
            own = facts is not None and facts.metadata.get(META_JOB) == directory.job_id
            if own and facts is not None and facts.length == length:
                ports.store.abort_upload(directory.bucket, key, upload_id)
            else:
                complete()
    except UploadGoneError as error:
        raise TransientError(error.message) from error
    return names


def _put_once(ports: S3Ports, bucket: str, key: str, body: bytes) -> None:
    with suppress(PreconditionError):
        ports.store.put(bucket, key, body, if_absent=True, content_type=NDJSON)
        return
    with suppress(*NOT_READABLE):
        if ports.store.get(bucket, key, max_bytes=len(body)).body == body:
            return
    ports.store.put(bucket, key, body, content_type=NDJSON)


def _parts(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines in parts, of which only the last has less than `PUT_BYTES`."""
    buffer = bytearray()
    for line in lines:
        buffer += line
        if len(buffer) >= PUT_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)
