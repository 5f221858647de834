"""An object store in memory that keeps S3's promises, and none that S3 does not make."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress

from s3commit.core.errors import (
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
    PreconditionError,
    UploadGoneError,
)
from s3commit.core.layout import MAX_KEY_BYTES
from s3commit.core.ports import (
    NULL_VERSION,
    Clock,
    ListedObject,
    ObjectFacts,
    OpenUpload,
    StoredObject,
)
from s3commit.testing.bucket import Bucket, Upload, Version, composite_etag, etag_of
from s3commit.testing.clock import ManualClock

MIN_PART_BYTES = 5 * 1024 * 1024  # S3's; of every part but the last
MAX_PARTS = 10_000


class MemoryObjectStore:
    """Implements `s3commit.core.ports.ObjectStore`; strongly consistent and thread-safe.

    Ids of uploads and versions count from 1, so that a run can be repeated exactly.
    ``versioned`` holds for all buckets. With ``repeats_complete`` a repeated completion is
    answered with success and what the first one made, whatever became of the object since: S3
    does so at times, at others it says that there is no such upload. A caller must bear both.
    With ``opaque`` etags tell nothing of the bytes, as behind SSE-KMS.
    """

    def __init__(
        self,
        *buckets: str,
        clock: Clock | None = None,
        min_part_bytes: int = MIN_PART_BYTES,
        versioned: bool = False,
        repeats_complete: bool = False,
        opaque: bool = False,
    ) -> None:
        self._buckets = {name: Bucket(versioned) for name in buckets}
        self._clock = clock or ManualClock()
        self._min_part_bytes = min_part_bytes
        self._repeats_complete = repeats_complete
        self._opaque = opaque
        self._serial = itertools.count(1)
        self._lock = threading.RLock()

    def get(self, bucket: str, key: str, *, max_bytes: int) -> StoredObject:
        """See `ObjectReader.get`."""
        with self._lock:
            version = self._bucket(bucket).current(key)
            if version is None or version.body is None:
                raise NotFoundError(f"there is no object s3://{bucket}/{key}")
            if len(version.body) > max_bytes:
                raise InvalidInputError(
                    f"s3://{bucket}/{key} has {len(version.body)} bytes, more than the"
                    f" {max_bytes} that are read",
                    code="TOO_LARGE",
                )
            return StoredObject(version.facts(key), version.body)

    def head(self, bucket: str, key: str) -> ObjectFacts | None:
        """See `ObjectReader.head`."""
        with self._lock:
            holder = self._buckets.get(bucket)
            version = holder.current(key) if holder else None
            return version.facts(key) if version else None

    def list(self, bucket: str, prefix: str) -> Iterator[ListedObject]:
        """See `ObjectReader.list`."""
        with self._lock:
            return iter(self._bucket(bucket).listing(prefix))

    def list_uploads(self, bucket: str, prefix: str) -> Iterator[OpenUpload]:
        """See `ObjectReader.list_uploads`."""
        with self._lock:
            found = [
                OpenUpload(upload.key, upload_id, upload.initiated)
                for upload_id, upload in self._bucket(bucket).uploads.items()
                if upload.key.startswith(prefix)
            ]
        return iter(sorted(found, key=lambda upload: (upload.key.encode(), upload.initiated)))

    def is_versioned(self, bucket: str) -> bool:
        """See `ObjectReader.is_versioned`."""
        holder = self._bucket(bucket)
        return holder.versioned and not holder.suspended

    def upload_is_open(self, bucket: str, key: str, upload_id: str) -> bool:
        """See `ObjectReader.upload_is_open`."""
        with self._lock:
            upload = self._bucket(bucket).uploads.get(upload_id)
            return upload is not None and upload.key == key

    def put(
        self,
        bucket: str,
        key: str,
        body: bytes,
        *,
        if_absent: bool = False,
        if_match: str | None = None,
        content_type: str = "application/json",
    ) -> str:
        """See `ObjectWriter.put`."""
        with self._lock:
            holder = self._bucket(bucket)
            _check_key(key)
            self._check_condition(holder, bucket, key, if_absent, if_match)
            version = Version(
                self._new_version_id(holder),
                bytes(body),
                self._etag(etag_of(body)),
                {},
                content_type,
                self._clock.now(),
                self._opaque,
            )
            holder.add(key, version)
            return version.etag

    def delete(
        self, bucket: str, key: str, *, if_match: str | None = None, version_id: str | None = None
    ) -> None:
        """See `ObjectWriter.delete`."""
        with self._lock:
            holder = self._bucket(bucket)
            if if_match is not None:
                if holder.current(key) is None:
                    return
                self._check_condition(holder, bucket, key, False, if_match)
            if version_id is not None:
                holder.remove_version(key, version_id)
            else:
                holder.remove(key, self._new_version_id(holder) or "")

    def delete_seen(self, bucket: str, objects: Sequence[ListedObject]) -> None:
        """See `ObjectWriter.delete_seen`."""
        with self._lock:
            for seen in objects:
                with suppress(PreconditionError):
                    self.delete(bucket, seen.key, if_match=seen.etag)

    def create_upload(
        self, bucket: str, key: str, *, metadata: dict[str, str], content_type: str
    ) -> str:
        """See `UploadStarter.create_upload`."""
        with self._lock:
            holder = self._bucket(bucket)
            _check_key(key)
            upload_id = f"upload-{next(self._serial):06d}"
            lowered = {name.lower(): value for name, value in metadata.items()}
            holder.uploads[upload_id] = Upload(key, self._clock.now(), lowered, content_type)
            return upload_id

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: bytes | memoryview
    ) -> str:
        """See `UploadStarter.upload_part`."""
        if not 1 <= number <= MAX_PARTS:
            raise InvalidInputError(f"part number {number} is not within 1 and {MAX_PARTS}")
        copy = bytes(body)
        with self._lock:
            upload = self._upload(bucket, key, upload_id)
            upload.parts[number] = copy
            upload.modified = self._clock.now()
        return etag_of(copy)

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        """See `UploadStarter.abort_upload`."""
        with self._lock:
            if self.upload_is_open(bucket, key, upload_id):
                del self._bucket(bucket).uploads[upload_id]

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
        """See `UploadCompleter.complete_upload`."""
        with self._lock:
            holder = self._bucket(bucket)
            before = holder.completed.get(upload_id)
            if self._repeats_complete and before is not None and before.key == key:
                return before
            upload = self._upload(bucket, key, upload_id)
            parts = self._chosen_parts(upload, etags, length)
            self._check_condition(holder, bucket, key, if_absent, None)
            version = Version(
                self._new_version_id(holder),
                b"".join(parts),
                self._etag(composite_etag(parts)),
                upload.metadata,
                upload.content_type,
                self._clock.now(),
                self._opaque,
            )
            holder.add(key, version)
            del holder.uploads[upload_id]
            facts = ObjectFacts(key, version.etag, length, {}, version.version_id, self._opaque)
            holder.completed[upload_id] = facts
            return facts

    def bucket(self, bucket: str) -> Bucket:
        """What is in a bucket, for other fakes. Raises `NotFoundError`."""
        return self._bucket(bucket)

    def upload(self, bucket: str, key: str, upload_id: str) -> Upload:
        """An open upload, for other fakes. Raises `UploadGoneError`."""
        return self._upload(bucket, key, upload_id)

    def _bucket(self, bucket: str) -> Bucket:
        if bucket not in self._buckets:
            raise NotFoundError(f"there is no bucket {bucket}", code="NO_BUCKET")
        return self._buckets[bucket]

    def _upload(self, bucket: str, key: str, upload_id: str) -> Upload:
        upload = self._bucket(bucket).uploads.get(upload_id)
        if upload is None or upload.key != key:
            raise UploadGoneError(f"there is no open upload {upload_id} of s3://{bucket}/{key}")
        return upload

    def suspend_versioning(self, bucket: str) -> None:
        """Keep the versions that there are, and no more from now on."""
        with self._lock:
            self._bucket(bucket).suspended = True

    def _etag(self, of_bytes: str) -> str:
        """The etag that S3 gives, by that of the plain bytes."""
        return f'"{next(self._serial):032x}-1"' if self._opaque else of_bytes

    def _new_version_id(self, holder: Bucket) -> str | None:
        if not holder.versioned:
            return None
        return NULL_VERSION if holder.suspended else f"version-{next(self._serial):06d}"

    def _chosen_parts(self, upload: Upload, etags: Sequence[str], length: int) -> tuple[bytes, ...]:
        def refuse(why: str) -> JobRefusedError:
            return JobRefusedError(f"upload of {upload.key}: {why}", code="PARTS_MISMATCH")

        if not etags:
            raise refuse("no part is named")
        parts = []
        for number, etag in enumerate(etags, start=1):
            part = upload.parts.get(number)
            if part is None or etag_of(part).strip('"') != etag.strip('"'):
                raise refuse(f"part {number} is not the one that was sent")
            parts.append(part)
        if any(len(part) < self._min_part_bytes for part in parts[:-1]):
            raise refuse(f"a part but the last has less than {self._min_part_bytes} bytes")
        found = sum(map(len, parts))
        if found != length:
            raise refuse(f"the parts have {found} bytes, not {length}")
        return tuple(parts)

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


def _check_key(key: str) -> None:
    if not 1 <= len(key.encode()) <= MAX_KEY_BYTES:
        raise InvalidInputError(
            f"key {key[:80]!r} has {len(key.encode())} bytes, not 1 to {MAX_KEY_BYTES}",
            code="BAD_KEY",
        )
