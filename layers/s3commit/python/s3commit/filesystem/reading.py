"""What a reader sees of S3: visible objects, in directories, without hidden names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from s3commit.aws.failures import translated
from s3commit.core.formats.layout import is_hidden
from s3commit.core.model.errors import NotFoundError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, or a directory: then ``key`` ends with ``/`` and the rest is empty."""

    bucket: str
    key: str
    size: int = 0
    etag: str = ""
    modified: datetime | None = None

    @property
    def info(self) -> dict[str, Any]:
        """The entry as fsspec has it."""
        name = f"{self.bucket}/{self.key}".rstrip("/")
        if not self.key or self.key.endswith("/"):
            return {"name": name, "size": 0, "type": "directory"}
        return {
            "name": name,
            "size": self.size,
            "type": "file",
            "ETag": self.etag,
            "LastModified": self.modified,
        }


class Reader:
    """Looks at S3, never writes; no cache, so that what is committed is seen at once."""

    def __init__(self, client: S3Client) -> None:
        self._client = client

    def head(self, bucket: str, key: str) -> Entry | None:
        """The object, or None: one request."""
        try:
            with translated(f"looking at s3://{bucket}/{key}"):
                answer = self._client.head_object(Bucket=bucket, Key=key)
        except NotFoundError:
            return None
        return Entry(bucket, key, answer["ContentLength"], answer["ETag"], answer["LastModified"])

    def is_directory(self, bucket: str, prefix: str) -> bool:
        """Whether any object, hidden or not, lies below: one request."""
        with translated(f"listing s3://{bucket}/{prefix}"):
            answer = self._client.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
        return bool(answer.get("KeyCount"))

    def children(self, bucket: str, prefix: str) -> list[Entry]:
        """What lies directly below ``prefix`` (empty, or with its ``/``), but no hidden names."""
        found = []
        for page in self._pages(bucket, prefix, Delimiter="/"):
            keys = [directory["Prefix"] for directory in page.get("CommonPrefixes", [])]
            found += [Entry(bucket, key) for key in keys]
            found += _files(bucket, page)
        return sorted(_shown(found, prefix), key=lambda entry: entry.key)

    def below(self, bucket: str, prefix: str) -> list[Entry]:
        """Every file at any depth below ``prefix``, but none with a hidden name."""
        pages = self._pages(bucket, prefix)
        return [entry for page in pages for entry in _shown(_files(bucket, page), prefix)]

    def read(self, bucket: str, key: str, start: int, end: int, *, etag: str) -> bytes:
        """Bytes ``start`` to ``end`` (excluded) of the very object that has the etag.

        Raises `PreconditionError` if another one took its place, `NotFoundError` if none did.
        """
        if start >= end:
            return b""
        with translated(f"reading s3://{bucket}/{key}"):
            answer = self._client.get_object(
                Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}", IfMatch=etag
            )
            return answer["Body"].read()

    def _pages(self, bucket: str, prefix: str, **options: Any) -> Iterator[dict[str, Any]]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=prefix, **options
        )
        with translated(f"listing s3://{bucket}/{prefix}"):
            for page in pages:
                yield dict(page)


def _files(bucket: str, page: dict[str, Any]) -> list[Entry]:
    return [
        Entry(bucket, line["Key"], line["Size"], line["ETag"], line["LastModified"])
        for line in page.get("Contents", [])
        if not line["Key"].endswith("/")  # some tools put an empty object for a directory
    ]


def _shown(entries: list[Entry], prefix: str) -> list[Entry]:
    return [entry for entry in entries if not is_hidden(entry.key[len(prefix) :].rstrip("/"))]
