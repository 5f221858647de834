"""An object store in memory that keeps S3's promises, and none that S3 does not make."""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Self

from s3commit.core.model.errors import (
    ARCHIVED,
    AccessError,
    InvalidInputError,
    NotFoundError,
    PreconditionError,
    UploadGoneError,
)
from s3commit.core.ports.clock import Clock
from s3commit.core.ports.objects import (
    ListedObject,
    ListedVersion,
    ObjectFacts,
    OpenUpload,
    PartSource,
    StoredObject,
)
from tests.fakes.bucket import (
    DELETE,
    FOREIGN,
    Bucket,
    Upload,
    Version,
    composite_etag,
    etag_of,
    refuse_key,
)
from tests.fakes.clock import ManualClock
from tests.fakes.s3_limits import LEAST_PART, check_deletes, check_key, check_part


class MemoryObjectStore:
    """Implements `s3commit.core.ports.objects.ObjectStore`; strongly consistent and thread-safe.

    Ids of uploads and versions count from 1, so that a run can be repeated exactly.
    ``versioned`` holds for all buckets. With ``repeats_complete`` a repeated completion is
    answered with success and what the first one made, whatever became of the object since: S3
    does so at times, at others it says that there is no such upload. A caller must bear both.
    With ``opaque`` etags tell nothing of the bytes, as behind SSE-KMS. `archive`, `encrypt` and
    `deny` lay what the pipeline can't read.
    """

    def __init__(
        self,
        *buckets: str,
        clock: Clock | None = None,
        min_part_bytes: int = LEAST_PART,
        versioned: bool = False,
        repeats_complete: bool = False,
        opaque: bool = False,
    ) -> None:
        self._buckets = {name: Bucket(versioned) for name in buckets}
        self.clock = clock or ManualClock()
        self.least_part = min_part_bytes
        self._repeats_complete = repeats_complete
        self._opaque = opaque
        self._serial = 0
        self._lock = threading.RLock()

    def get(self, bucket: str, key: str, *, max_bytes: int) -> StoredObject:
        check_key(key)
        with self._lock:
            version = self.bucket(bucket).seen(key)
            if version is None or version.body is None:
                raise NotFoundError(f"there is no object s3://{bucket}/{key}")
            if version.archived:
                raise InvalidInputError(
                    f"s3://{bucket}/{key} is archived: restore it first", code=ARCHIVED
                )
            if len(version.body) > max_bytes:
                raise InvalidInputError(
                    f"s3://{bucket}/{key} has {len(version.body)} bytes, more than the"
                    f" {max_bytes} that are read",
                    code="TOO_LARGE",
                )
            return StoredObject(version.facts(key), version.body)

    def first_bytes(self, bucket: str, key: str, count: int, *, start: int = 0) -> bytes:
        body = self.get(bucket, key, max_bytes=sys.maxsize).body
        if not body[start:]:
            raise InvalidInputError(f"s3://{bucket}/{key} has no byte {start}")
        return body[start : start + count]

    def last_bytes(self, bucket: str, key: str, count: int) -> bytes:
        return self.first_bytes(bucket, key, sys.maxsize)[-count:]

    def head(self, bucket: str, key: str) -> ObjectFacts | None:
        check_key(key)
        with self._lock:
            holder = self._buckets.get(bucket)
            version = holder.seen(key) if holder else None
            return version.facts(key) if version else None

    def list(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[ListedObject]:
        with self._lock:
            found = self.bucket(bucket).listing(prefix)
        return (one for one in found if one.key > after)

    def below(self, bucket: str, prefix: str) -> Iterator[ListedObject]:
        found = {}
        for one in self.list(bucket, prefix):
            name, slash, _ = one.key[len(prefix) :].partition("/")
            if name:
                found[name + slash] = ListedObject(prefix + name + slash, "", 0) if slash else one
        return iter(found.values())

    def list_versions(self, bucket: str, key: str) -> Iterator[ListedVersion]:
        with self._lock:
            versions = self.bucket(bucket).objects.get(key, [])[::-1]
        for one in versions:
            if one.body is not None:
                yield ListedVersion(one.version_id or "null", one.etag, len(one.body))

    def list_uploads(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[OpenUpload]:
        """See `ObjectReader.list_uploads`; those of one key in the order of time, and of ids."""
        with self._lock:
            found = [
                OpenUpload(upload.key, upload_id, upload.initiated, storage_class="STANDARD")
                for upload_id, upload in self.bucket(bucket).uploads.items()
                if upload.key.startswith(prefix) and upload.key > after
            ]
        return iter(sorted(found, key=lambda upload: (upload.key.encode(), upload.initiated)))

    def upload_is_open(self, bucket: str, key: str, upload_id: str) -> bool:
        with self._lock:
            upload = self.bucket(bucket).uploads.get(upload_id)
            if upload is not None and upload.key_of == FOREIGN:
                refuse_key(key, FOREIGN)
            return self.bucket(bucket).is_open(key, upload_id)

    def upload_bytes(self, bucket: str, key: str, upload_id: str) -> int:
        with self._lock:
            if not self.upload_is_open(bucket, key, upload_id):
                raise UploadGoneError(f"there is no upload {upload_id} of s3://{bucket}/{key}")
            return sum(map(len, self._upload(bucket, key, upload_id).parts.values()))

    def put(
        self,
        bucket: str,
        key: str,
        body: bytes,
        *,
        if_absent: bool = False,
        if_match: str | None = None,
        content_type: str = "application/json",
        metadata: dict[str, str] | None = None,
    ) -> str:
        with self._lock:
            holder = self.bucket(bucket)
            check_key(key)
            self._check_condition(holder, bucket, key, if_absent, if_match)
            version = Version(
                self._new_version_id(holder),
                bytes(body),
                self._etag(etag_of(body)),
                dict(metadata or {}),
                self.clock.now(),
                self._opaque,
            )
            holder.add(key, version)
            return version.etag

    def delete(self, bucket: str, key: str, *, if_match: str | None = None) -> None:
        with self._lock:
            holder = self.bucket(bucket)
            check_key(key)
            holder.permit(key, DELETE)
            if if_match is not None:
                if holder.current(key) is None:
                    return
                self._check_condition(holder, bucket, key, False, if_match)
            holder.remove(key, self._new_version_id(holder) or "")

    def delete_seen(self, bucket: str, objects: Sequence[ListedObject]) -> None:
        denied: list[AccessError] = []
        with self._lock:
            check_deletes(len(objects))
            for seen in objects:
                try:
                    with suppress(PreconditionError):
                        self.delete(bucket, seen.key, if_match=seen.etag)
                except AccessError as error:
                    denied.append(error)
        for first in denied:
            raise first

    def create_upload(
        self, bucket: str, key: str, *, metadata: dict[str, str], content_type: str
    ) -> str:
        with self._lock:
            holder = self.bucket(bucket)
            check_key(key)
            upload_id = f"upload-{self._next():06d}"
            lowered = {name.lower(): value for name, value in metadata.items()}
            holder.uploads[upload_id] = Upload(key, self.clock.now(), lowered)
            return upload_id

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: bytes | memoryview
    ) -> str:
        check_part(number)
        copy = bytes(body)
        with self._lock:
            upload = self._upload(bucket, key, upload_id)
            upload.parts[number] = copy
        return etag_of(copy)

    def copy_part(
        self, bucket: str, key: str, upload_id: str, number: int, source: PartSource
    ) -> str:
        check_part(number)
        with self._lock:
            for one in self.bucket(bucket).objects.get(source.key, []):
                if (one.version_id or "null") == source.version_id and one.body is not None:
                    if source.stop is not None and len(one.body) <= self.least_part:
                        raise InvalidInputError("a range of what is no larger than a part")
                    body = one.body[source.start : source.stop]
                    return self.upload_part(bucket, key, upload_id, number, body)
        raise NotFoundError(f"there is no version {source.version_id} of {source.key}")

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        with self._lock:
            if self.bucket(bucket).is_open(key, upload_id):
                del self.bucket(bucket).uploads[upload_id]

    def complete_upload(
        self,
        bucket: str,
        key: str,
        upload_id: str,
        etags: Sequence[str],
        *,
        length: int,
        if_absent: bool = False,
    ) -> ObjectFacts:
        with self._lock:
            holder = self.bucket(bucket)
            before = holder.completed.get(upload_id)
            if self._repeats_complete and before is not None and before.key == key:
                return before
            upload = self._upload(bucket, key, upload_id)
            if upload.key_of == FOREIGN:
                refuse_key(key, FOREIGN)
            parts = upload.chosen(etags, length, least=self.least_part)
            self._check_condition(holder, bucket, key, if_absent, None)
            version = Version(
                self._new_version_id(holder),
                b"".join(parts),
                self._etag(composite_etag(parts)),
                upload.metadata,
                upload.initiated,
                self._opaque,
                key_of=upload.key_of,
            )
            holder.add(key, version)
            del holder.uploads[upload_id]
            facts = ObjectFacts(key, version.etag, length, opaque=self._opaque)
            holder.completed[upload_id] = facts
            return facts

    def bucket(self, bucket: str) -> Bucket:
        """What is in a bucket. Raises `NotFoundError`."""
        if bucket not in self._buckets:
            raise NotFoundError(f"there is no bucket {bucket}", code="NO_BUCKET")
        return self._buckets[bucket]

    def _upload(self, bucket: str, key: str, upload_id: str) -> Upload:
        holder = self.bucket(bucket)
        if not holder.is_open(key, upload_id):
            raise UploadGoneError(f"there is no open upload {upload_id} of s3://{bucket}/{key}")
        return holder.uploads[upload_id]

    def resume(self, other: Self) -> None:
        """Have what is in the other store's buckets."""
        self._serial = other._serial
        for name, holder in other._buckets.items():
            self._buckets[name] = deepcopy(holder)

    def archive(self, bucket: str, key: str) -> None:
        """Put the object into the archive: it is seen, and not read (GLACIER, DEEP_ARCHIVE)."""
        with self._lock:
            versions = self.bucket(bucket).objects[key]
            versions[-1] = replace(versions[-1], archived=True)

    def encrypt(self, bucket: str, key: str, key_of: str) -> None:
        """Have the object, and each open upload of it, be under such a key (`CUSTOMER`)."""
        with self._lock:
            holder = self.bucket(bucket)
            if version := holder.current(key):
                holder.objects[key][-1] = replace(version, key_of=key_of)
            for upload in holder.uploads.values():
                if upload.key == key:
                    upload.key_of = key_of

    def deny(self, bucket: str, prefix: str, *actions: str) -> None:
        """Deny the actions (``s3:GetObject``) below the prefix, as a bucket's policy does."""
        self.bucket(bucket).denied.extend((prefix, action) for action in actions)

    def allow(self, bucket: str) -> None:
        """Take back all that was denied."""
        self.bucket(bucket).denied.clear()

    def _next(self) -> int:
        self._serial += 1
        return self._serial

    def _etag(self, of_bytes: str) -> str:
        """The etag that S3 gives, by that of the plain bytes."""
        return f'"{self._next():032x}-1"' if self._opaque else of_bytes

    def _new_version_id(self, holder: Bucket) -> str | None:
        return f"version-{self._next():06d}" if holder.versioned else None

    @staticmethod
    def _check_condition(
        holder: Bucket, bucket: str, key: str, if_absent: bool, if_match: str | None
    ) -> None:
        present = holder.current(key)
        if if_absent and present is not None:
            raise PreconditionError(f"s3://{bucket}/{key} exists already")
        if if_match is not None and (present is None or present.etag != if_match):
            found = present.etag if present else "nothing"
            raise PreconditionError(f"s3://{bucket}/{key}: expected {if_match}, found {found}")
