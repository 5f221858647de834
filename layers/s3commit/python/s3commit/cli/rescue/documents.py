"""Hadoop's documents of pending uploads, as strangers may have written them.

A ``.pendingset`` has the files of a task that is done, a ``.pending`` file has one file of a task
that is not. Source: ``org.apache.hadoop.fs.s3a.commit.files`` of Hadoop 3.3.4 and 3.5.0.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from s3commit.core.formats.layout import bad_element, has_unspeakable, is_hidden
from s3commit.core.formats.strict_json import Fields, parse
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Destination

MAX_BYTES = 32 * 1024 * 1024
MAX_VALUES = 1_000_000
MAX_FILES = 20_000
MAX_PARTS = 10_000


@dataclass(frozen=True, slots=True)
class PendingUpload:
    """An upload as a document names it."""

    key: str
    upload_id: str
    etags: tuple[str, ...]
    length: int

    @property
    def completed_etag(self) -> str:
        """The etag that S3 gives the completed object, unless it is encrypted with SSE-KMS."""
        try:
            parts = b"".join(bytes.fromhex(etag.strip('"')) for etag in self.etags)
        except ValueError:
            return ""
        return f'"{hashlib.md5(parts, usedforsecurity=False).hexdigest()}-{len(self.etags)}"'


def read_uploads(body: bytes, destination: Destination, job_id: str) -> list[PendingUpload]:
    """The uploads of either document. Raises `InvalidInputError` if one is not acceptable."""
    fields = Fields(parse(body, what="manifest", max_bytes=MAX_BYTES, most=MAX_VALUES), "$")
    _check_job(fields, job_id)
    commits = fields.objects("commits", most=MAX_FILES) if fields.has("commits") else [fields]
    return [_upload(one, destination, job_id) for one in commits]


def _check_job(fields: Fields, job_id: str) -> None:
    named = fields.text("jobId", "")
    if named not in {"", job_id}:
        raise InvalidInputError(f"it is of job {named[:80]!r}", code="WRONG_JOB")


def _upload(fields: Fields, destination: Destination, job_id: str) -> PendingUpload:
    _check_job(fields, job_id)
    key = fields.text("destinationKey")
    relative = key.removeprefix(destination.prefix)
    inside = fields.text("bucket") == destination.bucket and key != relative
    if not inside or bad_element(relative) or has_unspeakable(relative) or is_hidden(relative):
        raise InvalidInputError(f"{key[:200]!r} is no data file there", code="NOT_CONTAINED")
    etags = fields.value.get("etags")
    if isinstance(etags, list) and any(isinstance(part, dict) for part in etags):  # Hadoop 3.5
        parts = tuple(part.text("etag") for part in fields.objects("etags", most=MAX_PARTS))
    else:
        parts = fields.texts("etags", most=MAX_PARTS)
    return PendingUpload(key, fields.text("uploadId"), parts, fields.integer("length"))
