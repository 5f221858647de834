"""Looking at much of S3, with times, in listings that can be resumed from a key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from s3commit.core.ports.objects import OpenUpload


@dataclass(frozen=True, slots=True)
class SeenObject:
    """One line of a listing, with when the object was put: RFC 3339, UTC."""

    key: str
    etag: str
    length: int
    modified: str


@dataclass(frozen=True, slots=True)
class UploadParts:
    """What an open upload holds: bytes, and when the last part came (empty if none has)."""

    bytes: int
    modified: str


@dataclass(frozen=True, slots=True)
class SeenVersion:
    """One version of an object that has bytes (no delete marker)."""

    version_id: str
    etag: str
    length: int


class Survey(Protocol):
    """Looking at much of S3, with times; strongly consistent, as S3 is."""

    def objects(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[SeenObject]:
        """The objects whose keys start with ``prefix`` and come after ``after``, in key order."""
        ...

    def uploads(
        self, bucket: str, prefix: str = "", *, after: str = "", after_upload: str = ""
    ) -> Iterator[OpenUpload]:
        """The open uploads below ``prefix`` with keys after ``after``, in key order.

        With ``after_upload`` also those of the key ``after`` that come after this one of it, as far
        as S3 promises to list them: those with greater ids.
        """
        ...

    def parts(self, bucket: str, key: str, upload_id: str) -> UploadParts:
        """The parts of an upload, however many pages. Raises `UploadGoneError`."""
        ...

    def versions(self, bucket: str, key: str) -> Iterator[SeenVersion]:
        """The versions of the object, the newest first."""
        ...
