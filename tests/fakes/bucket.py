"""One bucket in memory: versions of objects, and open uploads. Not locked: the store is."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from s3commit.core.model.errors import AccessError, InvalidInputError, JobRefusedError
from s3commit.core.ports.objects import ListedObject, ObjectFacts

# The rights that a test may take away, by the names that policies have for them:
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html
GET = "s3:GetObject"
DELETE = "s3:DeleteObject"


# Under whose key an object or an upload is, if not one that the pipeline may use.
CUSTOMER = "SSE-C"  # one that S3 does not keep: who does not send it gets 400
FOREIGN = "SSE-KMS"  # another account's: 403


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an object; ``body`` None is a delete marker."""

    version_id: str | None
    body: bytes | None
    etag: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    modified: str = field(default="", compare=False)
    opaque: bool = False
    archived: bool = False
    key_of: str = ""

    def facts(self, key: str) -> ObjectFacts:
        """What HEAD says of this version."""
        length = len(self.body or b"")
        return ObjectFacts(key, self.etag, length, dict(self.metadata), self.opaque, self.modified)


@dataclass(slots=True)
class Upload:
    """An open multipart upload; ``parts`` by number."""

    key: str
    initiated: str
    metadata: dict[str, str]
    parts: dict[int, bytes] = field(default_factory=dict)
    key_of: str = ""

    def chosen(self, etags: Sequence[str], length: int, *, least: int) -> tuple[bytes, ...]:
        """The parts that a completion names, all of them but the last of ``least`` bytes or more.

        Raises `JobRefusedError` (``PARTS_MISMATCH``) if they are not the ones that were sent.
        """

        def refuse(why: str) -> JobRefusedError:
            return JobRefusedError(f"upload of {self.key}: {why}", code="PARTS_MISMATCH")

        if not etags:
            raise refuse("no part is named")
        parts = []
        for number, etag in enumerate(etags, start=1):
            part = self.parts.get(number)
            if part is None or etag_of(part).strip('"') != etag.strip('"'):
                raise refuse(f"part {number} is not the one that was sent")
            parts.append(part)
        if any(len(part) < least for part in parts[:-1]):
            raise refuse(f"a part but the last has less than {least} bytes")
        found = sum(map(len, parts))
        if found != length:
            raise refuse(f"the parts have {found} bytes, not {length}")
        return tuple(parts)


@dataclass(slots=True)
class Bucket:
    """Objects by key, each with its versions (the last one is current), and uploads by id.

    ``completed`` remembers the facts of what each completed upload made. ``denied`` has pairs of a
    key prefix and an action (``s3:GetObject``) that nobody may do below it.
    """

    versioned: bool
    objects: dict[str, list[Version]] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    completed: dict[str, ObjectFacts] = field(default_factory=dict)
    denied: list[tuple[str, str]] = field(default_factory=list)

    def permit(self, key: str, action: str) -> None:
        """Raise `AccessError` if the action is denied for the key."""
        if any(denied == action and key.startswith(prefix) for prefix, denied in self.denied):
            raise AccessError(f"{key[:200]!r}: {action} is denied")

    def seen(self, key: str) -> Version | None:
        """The version that a caller may see, or None. Raises `AccessError`, `InvalidInputError`."""
        self.permit(key, GET)
        version = self.current(key)
        if version is not None:
            refuse_key(key, version.key_of)
        return version

    def is_open(self, key: str, upload_id: str) -> bool:
        """The upload is open, and is one of the key."""
        upload = self.uploads.get(upload_id)
        return upload is not None and upload.key == key

    def current(self, key: str) -> Version | None:
        """The version that readers see, or None."""
        versions = self.objects.get(key)
        return versions[-1] if versions and versions[-1].body is not None else None

    def add(self, key: str, version: Version) -> None:
        """Make ``version`` the current one; without versioning it replaces the one before."""
        if self.versioned:
            self.objects.setdefault(key, []).append(version)
        else:
            self.objects[key] = [version]

    def remove(self, key: str, marker_id: str) -> None:
        """Delete the object: cover it with a delete marker if the bucket is versioned."""
        if self.versioned:
            self.add(key, Version(marker_id, None))
        else:
            self.objects.pop(key, None)

    def listing(self, prefix: str) -> list[ListedObject]:
        """The visible objects below ``prefix``, in the order of their keys' UTF-8 bytes."""
        found = []
        keys = (key for key in self.objects if key.startswith(prefix))
        for key in sorted(keys, key=str.encode):
            version = self.current(key)
            if version is not None and version.body is not None:
                found.append(ListedObject(key, version.etag, len(version.body), version.modified))
        return found


def refuse_key(key: str, key_of: str) -> None:
    """What S3 answers to a GET or HEAD, and for an upload to ListParts and its completion.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html,
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuAndPermissions.html
    """
    if key_of == CUSTOMER:
        raise InvalidInputError(f"{key[:200]!r}: its key has to be sent (400)")
    if key_of == FOREIGN:
        raise AccessError(f"{key[:200]!r}: it is under a key of another account (403)")


def etag_of(body: bytes) -> str:
    """S3's etag of a part, or of an object put whole: the quoted MD5."""
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


def composite_etag(parts: Sequence[bytes]) -> str:
    """S3's etag of a multipart object: MD5 over the parts' MD5 digests, and their number."""
    digests = b"".join(hashlib.md5(part, usedforsecurity=False).digest() for part in parts)
    return f'"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"'
