"""The pendingset: Hadoop's `PendingSet` 3 of `SinglePendingCommit` 2, read and written.

The formats are those of Hadoop's `org.apache.hadoop.fs.s3a.commit.files`; our own fields
(``attemptId``, ``rows``) stand beside them, and Hadoop ignores what it does not know. Etags are
written as Hadoop 3.5 has them, objects, and read as texts too, as it had them before.

A manifest is untrusted input to a process with wide rights. This module is the one place where it
is judged (I7), whole and on first sight: what `decode_pendingset` returns acts inside the
destination of the job directory in which the manifest lies, and nowhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final, NoReturn

from s3commit.core.formats import hadoop
from s3commit.core.formats.file_names import belongs_to_job
from s3commit.core.formats.layout import (
    MAX_KEY_BYTES,
    JobDirectory,
    bad_element,
    has_unspeakable,
    is_hidden,
)
from s3commit.core.formats.strict_json import Fields, bounded, check_text, dump, parse
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.pending import PendingFile, PendingSet

FILE_VERSION = 2
SET_VERSION = 3
MAX_PARTS = 10_000  # https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
MAX_ETAG = 256  # characters; S3's have 34, and a file of 10,000 parts is held while it is completed

# What one task attempt may have. A worker reads the manifest whole for each of its units, so more
# files would take longer to read than to complete. Of one part each they are 720,000 values and,
# with keys of 250 characters, 22 MiB. The worst of this size takes 600 MB to read.
MAX_FILES = 20_000
MAX_MANIFEST_BYTES = 32 * 1024 * 1024
MAX_MANIFEST_VALUES = 1_000_000

_BOUNDS: Final[Any] = {
    "what": "pendingset",
    "max_bytes": MAX_MANIFEST_BYTES,
    "most": MAX_MANIFEST_VALUES,
}

# Manifests up to here, of some 700 files, are read side by side, 32 of them: 24 MB each at worst.
# Larger ones are read one at a time.
SMALL_MANIFEST_BYTES = 512 * 1024
MAX_EXTRA = 4096  # characters of a key or value of extraData
MAX_EXTRAS = 100
MAX_OBJECT_BYTES = 50 * 1024**4  # S3's own limit of an object, same page

_NO_STATISTICS: dict[str, Any] = {
    "counters": {},
    "gauges": {},
    "minimums": {},
    "maximums": {},
    "meanstatistics": {},
}


def digest(body: bytes) -> str:
    """The hex SHA-256 by which a request names a manifest."""
    return hashlib.sha256(body).hexdigest()


def expected_etag(file: PendingFile) -> str:
    """The etag that S3 gives the completed object, unless it is encrypted with KMS or SSE-C.

    ``md5(md5(part 1) + md5(part 2) + …)-N``, in quotes. Empty if the parts' etags are no MD5s.
    """
    try:
        parts = b"".join(bytes.fromhex(etag.strip('"')) for etag in file.etags)
    except ValueError:
        return ""
    return f'"{hashlib.md5(parts, usedforsecurity=False).hexdigest()}-{len(file.etags)}"'


def encode_pendingset(pending: PendingSet) -> bytes:
    """The manifest's bytes. Raises `InvalidInputError` for what a reader would refuse."""
    _check_set(pending)
    document: dict[str, Any] = {
        "version": SET_VERSION,
        "jobId": pending.job_id,
        "taskId": pending.task_id,
        "attemptId": pending.attempt_id,
        "commits": [_file_json(file) for file in pending.files],
        "iostatistics": _NO_STATISTICS,
    }
    if pending.task_count is not None:
        document["taskCount"] = pending.task_count
    return bounded(dump(document), **_BOUNDS)


def _file_json(file: PendingFile) -> dict[str, Any]:
    return {
        "version": FILE_VERSION,
        "filename": None,
        "uri": file.uri or f"s3a://{file.bucket}/{file.key}",
        "uploadId": file.upload_id,
        "bucket": file.bucket,
        "destinationKey": file.key,
        "created": file.created,
        "saved": file.saved,
        "date": None,
        "jobId": file.job_id,
        "taskId": file.task_id,
        "attemptId": file.attempt_id,
        "text": file.text,
        "etags": [{"etag": etag} for etag in file.etags],
        "extraData": file.extra,
        "length": file.length,
        "rows": file.rows,
        "partCount": len(file.etags),
        "iostatistics": _NO_STATISTICS,
    }


def decode_pendingset(body: bytes, directory: JobDirectory) -> PendingSet:
    """Read the manifest that lies in ``directory`` and refuse it whole if anything is amiss.

    Raises `InvalidInputError`; its code is ``BAD_JSON``, ``TOO_LARGE``, ``BAD_VERSION``,
    ``BAD_FIELD``, ``DUPLICATE_KEY``, ``WRONG_JOB``, ``NOT_CONTAINED``, ``NAME_NOT_UNIQUE`` or
    ``UNSUPPORTED_CHECKSUM``.
    """
    fields = Fields(parse(body, **_BOUNDS), "$")
    fields.version(SET_VERSION)
    pending = PendingSet(
        job_id=fields.text("jobId", ""),
        task_id=fields.text("taskId", ""),
        attempt_id=fields.text("attemptId", ""),
        files=tuple(_file(commit) for commit in fields.objects("commits", most=MAX_FILES)),
        task_count=fields.optional_integer("taskCount"),
    )
    _check_set(pending)
    _check_job(pending, directory)
    for file in pending.files:
        _check_contained(file, directory)
    return pending


def _file(fields: Fields) -> PendingFile:
    fields.version(FILE_VERSION)
    extra = fields.mapping("extraData")
    if len(extra) > MAX_EXTRAS or not all(isinstance(value, str) for value in extra.values()):
        most = f"at most {MAX_EXTRAS} strings"
        _refuse("BAD_FIELD", f"{fields.path}.extraData must map {most} to strings")
    for text in (*extra, *extra.values()):
        check_text(text, f"{fields.path}.extraData", longest=MAX_EXTRA)
    return PendingFile(
        bucket=fields.text("bucket"),
        key=fields.text("destinationKey"),
        upload_id=fields.text("uploadId"),
        etags=hadoop.etags(fields, most=MAX_PARTS, longest=MAX_ETAG),
        length=fields.integer("length"),
        job_id=fields.text("jobId", ""),
        task_id=fields.text("taskId", ""),
        attempt_id=fields.text("attemptId", ""),
        rows=fields.optional_integer("rows"),
        uri=fields.text("uri", "", longest=8192),
        created=fields.integer("created", 0),
        saved=fields.integer("saved", 0),
        text=fields.text("text", ""),
        extra=extra,
    )


def _check_set(pending: PendingSet) -> None:
    if len(pending.files) > MAX_FILES:
        _refuse("BAD_FIELD", f"a pendingset has at most {MAX_FILES} files")
    seen: set[str] = set()
    for file in pending.files:
        _check_file(file)
        if file.key in seen:
            _refuse("DUPLICATE_KEY", f"key {file.key[:200]!r} is written twice by one task")
        seen.add(file.key)


def _check_file(file: PendingFile) -> None:
    where = f"file {file.key[:200]!r}"
    if not (file.bucket and file.key and file.upload_id):
        _refuse("BAD_FIELD", f"{where}: bucket, destinationKey and uploadId must not be empty")
    if not 1 <= len(file.etags) <= MAX_PARTS or not all(file.etags):
        _refuse("BAD_FIELD", f"{where}: 1 to {MAX_PARTS} etags are needed, none of them empty")
    if not 0 <= file.length <= MAX_OBJECT_BYTES:
        _refuse("BAD_FIELD", f"{where}: length {file.length} is out of bounds")


def _check_job(pending: PendingSet, directory: JobDirectory) -> None:
    for job_id in {pending.job_id, *(file.job_id for file in pending.files)} - {""}:
        if job_id != directory.job_id:
            _refuse("WRONG_JOB", f"manifest of job {job_id[:80]!r} in that of {directory.job_id}")
    if len(_named(file.task_id for file in pending.files) | _named([pending.task_id])) > 1:
        _refuse("WRONG_JOB", "manifest names more than one task")


def _named(values: Iterable[str]) -> set[str]:
    return {value for value in values if value}


def _check_contained(file: PendingFile, directory: JobDirectory) -> None:
    """I7: the file lies in the destination, as data, under a name that only this job uses."""
    where = f"file {file.key[:200]!r}"
    if file.bucket != directory.bucket:
        _refuse("NOT_CONTAINED", f"{where} is in bucket {file.bucket[:80]!r}")
    if not file.key.startswith(directory.destination.prefix):
        _refuse("NOT_CONTAINED", f"{where} lies outside {directory.destination.uri}")
    if len(file.key.encode("utf-8")) > MAX_KEY_BYTES:
        _refuse("NOT_CONTAINED", f"{where} is longer than S3's {MAX_KEY_BYTES} bytes")
    relative = file.key[len(directory.destination.prefix) :]
    bad = bad_element(relative)
    if bad is not None:
        _refuse("NOT_CONTAINED", f"{where} has the element {bad[:200]!r}, which no file may have")
    if has_unspeakable(relative):
        _refuse("NOT_CONTAINED", f"{where} has a control character, which S3's answers can't carry")
    if is_hidden(relative):
        _refuse("NOT_CONTAINED", f"{where} has a hidden name, which is no data")
    if not belongs_to_job(file.key, directory.job_id):
        _refuse("NAME_NOT_UNIQUE", f"{where} does not end with the job id before the first dot")


def _refuse(code: str, message: str) -> NoReturn:
    raise InvalidInputError(message, code=code)
