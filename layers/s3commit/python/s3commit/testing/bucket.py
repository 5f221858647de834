"""One bucket in memory: versions of objects, and open uploads. Not locked: the store is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from s3commit.core.ports import NULL_VERSION, ListedObject, ObjectFacts


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an object; ``body`` None is a delete marker."""

    version_id: str | None
    body: bytes | None
    etag: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    content_type: str = ""
    modified: str = field(default="", compare=False)
    opaque: bool = False

    def facts(self, key: str) -> ObjectFacts:
        """What HEAD says of this version."""
        length = len(self.body or b"")
        return ObjectFacts(
            key, self.etag, length, dict(self.metadata), self.version_id, self.opaque
        )


@dataclass(slots=True)
class Upload:
    """An open multipart upload; ``parts`` by number."""

    key: str
    initiated: str
    metadata: dict[str, str]
    content_type: str
    parts: dict[int, bytes] = field(default_factory=dict)
    modified: str = field(default="", compare=False)  # when the last part came


@dataclass(slots=True)
class Bucket:
    """Objects by key, each with its versions (the last one is current), and uploads by id.

    ``completed`` remembers the facts of what each completed upload made. With ``suspended`` what
    is put is the version ``null``, and replaces the one before of that name.
    """

    versioned: bool
    objects: dict[str, list[Version]] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    completed: dict[str, ObjectFacts] = field(default_factory=dict)
    suspended: bool = False

    def current(self, key: str) -> Version | None:
        """The version that readers see, or None."""
        versions = self.objects.get(key)
        return versions[-1] if versions and versions[-1].body is not None else None

    def add(self, key: str, version: Version) -> None:
        """Make ``version`` the current one; without versioning it replaces the one before."""
        if self.suspended:
            self.remove_version(key, NULL_VERSION)
        if self.versioned:
            self.objects.setdefault(key, []).append(version)
        else:
            self.objects[key] = [version]

    def remove_version(self, key: str, version_id: str) -> None:
        """Remove one version for good; what it covered is current again."""
        kept = [
            version
            for version in self.objects.get(key, [])
            if (version.version_id or NULL_VERSION) != version_id
        ]
        if kept:
            self.objects[key] = kept
        else:
            self.objects.pop(key, None)

    def remove(self, key: str, marker_id: str) -> None:
        """Delete the object: cover it with a delete marker if the bucket is versioned."""
        if self.versioned:
            self.add(key, Version(marker_id, None))
        else:
            self.objects.pop(key, None)

    def listing(self, prefix: str) -> list[ListedObject]:
        """The visible objects below ``prefix``, in the order of their keys' UTF-8 bytes."""
        found = []
        for key in sorted(self.objects, key=str.encode):
            version = self.current(key) if key.startswith(prefix) else None
            if version is not None and version.body is not None:
                found.append(ListedObject(key, version.etag, len(version.body)))
        return found


def etag_of(body: bytes) -> str:
    """S3's etag of a part, or of an object put whole: the quoted MD5."""
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def composite_etag(parts: Sequence[bytes]) -> str:
    """S3's etag of a multipart object: MD5 over the parts' MD5 digests, and their number."""
    digests = b"".join(hashlib.md5(part, usedforsecurity=False).digest() for part in parts)
    return f'"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"'
