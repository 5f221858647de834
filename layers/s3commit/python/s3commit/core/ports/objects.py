"""Objects and uploads in S3. Each port is as narrow as its consumers allow.

`s3commit.aws` implements them on S3, the tests' fakes in memory with the same conditional
semantics; one contract suite runs on all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """HEAD's facts of an object. ``metadata`` keys are lower case; ``etag`` keeps its quotes.

    ``opaque``: the object is encrypted so that its etag does not depend on its bytes alone
    (SSE-KMS). ``modified`` is Last-Modified, RFC 3339, UTC: for what was uploaded in parts when the
    upload was started (https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html),
    on some servers when it was completed; empty where it is not known.
    """

    key: str
    etag: str
    length: int
    metadata: dict[str, str] = field(default_factory=dict)
    opaque: bool = False
    modified: str = field(default="", compare=False)

    def matches(self, length: int, etag: str) -> bool:
        """True if it has that length and that etag; the length alone counts where no etag does.

        So where S3 encrypts with KMS
        (https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html, ETag), and for an empty
        one, which is not known.
        """
        return self.length == length and (self.opaque or etag in {"", self.etag})


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object's facts and its bytes."""

    facts: ObjectFacts
    body: bytes


@dataclass(frozen=True, slots=True)
class ListedObject:
    """One line of a listing; ``modified`` as in `ObjectFacts`."""

    key: str
    etag: str
    length: int
    modified: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ListedVersion:
    """One version of an object that has bytes (no delete marker)."""

    version_id: str
    etag: str
    length: int


@dataclass(frozen=True, slots=True)
class OpenUpload:
    """A multipart upload that is neither completed nor aborted; ``initiated`` is RFC 3339, UTC.

    ``composite``: its parts have checksums of their own, which its completion has to repeat.
    """

    key: str
    upload_id: str
    initiated: str
    composite: bool = False
    storage_class: str = ""


class ObjectReader(Protocol):
    """Reading from one bucket or several; strongly consistent, as S3 is."""

    def get(self, bucket: str, key: str, *, max_bytes: int) -> StoredObject:
        """The whole object.

        Raises `NotFoundError`; `InvalidInputError` with code ``TOO_LARGE`` past ``max_bytes``,
        before more than that is read. `AccessError` and `InvalidInputError` also say that it can't
        be read (`listed_at`).
        """

    def first_bytes(self, bucket: str, key: str, count: int, *, start: int = 0) -> bytes:
        """The first ``count`` bytes of the object from ``start`` on, or all that it has.

        Raises `NotFoundError`; `InvalidInputError` if it has none there.
        """

    def head(self, bucket: str, key: str) -> ObjectFacts | None:
        """The facts of the object, or None if there is none. Raises as `get`."""

    def list(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[ListedObject]:
        """Every object whose key starts with ``prefix`` and comes after ``after``.

        In key order, however many pages.
        """

    def below(self, bucket: str, prefix: str) -> Iterator[ListedObject]:
        """The objects and the directories directly below ``prefix``, a directory.

        In key order, each once; the directory's own marker is left out. A directory's key ends in
        ``/``; nothing else is known of it.
        """

    def list_versions(self, bucket: str, key: str) -> Iterator[ListedVersion]:
        """The versions of the object, the newest first."""

    def list_uploads(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[OpenUpload]:
        """Every open upload whose key starts with ``prefix`` and comes after ``after``.

        In key order, however many pages.
        """

    def upload_is_open(self, bucket: str, key: str, upload_id: str) -> bool:
        """True if S3 still holds the upload (ListParts: the answer that counts after an abort).

        Raises `AccessError`, `InvalidInputError` where its parts have checksums, and a key without
        the right to use it.
        """

    def upload_bytes(self, bucket: str, key: str, upload_id: str) -> int:
        """The bytes of all its parts. Raises `UploadGoneError`, and as `upload_is_open`."""


def listed_at(store: ObjectReader, bucket: str, key: str) -> ListedObject | None:
    """The object, or None if there is none. By listing, which the right to list always allows.

    A HEAD needs more rights; and it is refused, as a GET is, where the object was encrypted so that
    no one else can read it: with 403 under another account's KMS key, with 400 under a key that S3
    does not keep (SSE-C). https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
    """
    first = next(iter(store.list(bucket, key)), None)
    return first if first is not None and first.key == key else None


@dataclass(frozen=True, slots=True)
class PartSource:
    """A version of an object, or its bytes from ``start`` up to ``stop``."""

    key: str
    version_id: str
    start: int = 0
    stop: int | None = None


class WriterStore(ObjectReader, Protocol):
    """The requests of a writer. It never completes an upload."""

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
        """Put the object and return its etag.

        ``if_absent`` is If-None-Match ``*``; ``if_match`` an etag. Raises `PreconditionError` if
        the condition does not hold; `NotFoundError` if the bucket is not there.
        """

    def delete(self, bucket: str, key: str, *, if_match: str | None = None) -> None:
        """Delete the object; nothing to delete is success. A bucket that keeps versions keeps it.

        Raises `PreconditionError` if ``if_match`` is given and the object is another one.
        """

    def delete_seen(self, bucket: str, objects: Sequence[ListedObject]) -> None:
        """Delete up to 1,000 objects with one call, each only if it still has the etag seen.

        One that was deleted, or is another object, is skipped without an error. Raises
        `TransientError` if some could not be judged; those that could be are deleted.
        """

    def create_upload(
        self, bucket: str, key: str, *, metadata: dict[str, str], content_type: str
    ) -> str:
        """Start a multipart upload at its final key; return its id."""

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: bytes | memoryview
    ) -> str:
        """Send part ``number`` (from 1) and return its etag. Raises `UploadGoneError`."""

    def copy_part(
        self, bucket: str, key: str, upload_id: str, number: int, source: PartSource
    ) -> str:
        """Have S3 copy part ``number`` from an object of the bucket; return the part's etag.

        Raises `NotFoundError` if that version is not there, and `UploadGoneError`.
        """

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        """Abort the upload; one that is already gone is success."""


class ObjectStore(WriterStore, Protocol):
    """All verbs, for adapters and the contract suite: the pipeline alone makes uploads visible."""

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
        """Complete the upload; S3 checks that the parts add up to ``length`` bytes.

        The facts carry no metadata: S3 does not say it here. A repeated completion may be
        answered either way, by success (with what the first one made, wherever that is now) or by
        `UploadGoneError`: who completes again has to look.

        Raises `UploadGoneError` if the upload is not known (completed before, or aborted),
        `PreconditionError` if ``if_absent`` and the key exists (or a 409: final), `JobRefusedError`
        (code ``PARTS_MISMATCH``) if S3 always refuses it, as where the parts are not the ones that
        it has.
        """
