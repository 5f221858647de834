"""What the protocol needs of the world: an object store, a ledger, a clock.

Each port is as narrow as its consumers allow. `s3commit.aws` implements them on S3 and DynamoDB,
`s3commit.testing` in memory with the same conditional semantics; one contract suite runs on all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from s3commit.core.errors import S3CommitError
from s3commit.core.locks import LockRecord
from s3commit.core.model import AttemptRecord, Failure, JobRecord, PlanFacts, ReplacedFacts
from s3commit.core.states import JobState

NULL_VERSION = "null"  # of an object that was put while its bucket kept no versions


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """What HEAD says of an object. ``metadata`` keys are lower case; ``etag`` keeps its quotes.

    ``opaque``: the object is encrypted so that its etag tells nothing of its bytes (SSE-KMS).
    ``version_id`` is `NULL_VERSION` where S3 says so, and None where it says nothing.
    """

    key: str
    etag: str
    length: int
    metadata: dict[str, str] = field(default_factory=dict)
    version_id: str | None = None
    opaque: bool = False


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object's facts and its bytes."""

    facts: ObjectFacts
    body: bytes


@dataclass(frozen=True, slots=True)
class ListedObject:
    """One line of a listing."""

    key: str
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


class Clock(Protocol):
    """Time comes in from outside."""

    def now(self) -> str:
        """The present as RFC 3339 in UTC with milliseconds: ``2026-11-21T22:07:22.123Z``."""
        ...


class ObjectReader(Protocol):
    """Reading from one bucket or several; strongly consistent, as S3 is."""

    def get(self, bucket: str, key: str, *, max_bytes: int) -> StoredObject:
        """The whole object.

        Raises `NotFoundError`; `InvalidInputError` with code ``TOO_LARGE`` past ``max_bytes``,
        before more than that is read.
        """
        ...

    def head(self, bucket: str, key: str) -> ObjectFacts | None:
        """The facts of the object, or None if there is none."""
        ...

    def list(self, bucket: str, prefix: str) -> Iterator[ListedObject]:
        """Every object whose key starts with ``prefix``, in key order, however many pages."""
        ...

    def list_uploads(self, bucket: str, prefix: str) -> Iterator[OpenUpload]:
        """Every open upload whose key starts with ``prefix``, however many pages."""
        ...

    def is_versioned(self, bucket: str) -> bool:
        """Whether the bucket keeps the versions of before (versioning enabled, not suspended)."""
        ...

    def upload_is_open(self, bucket: str, key: str, upload_id: str) -> bool:
        """Whether S3 still holds the upload (ListParts: the word that counts after an abort)."""
        ...


class ObjectWriter(Protocol):
    """Writing whole objects, conditionally."""

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
        """Put the object and return its etag.

        ``if_absent`` is If-None-Match ``*``; ``if_match`` an etag. Raises `PreconditionError` if
        the condition does not hold; `NotFoundError` if the bucket is not there.
        """
        ...

    def delete(
        self, bucket: str, key: str, *, if_match: str | None = None, version_id: str | None = None
    ) -> None:
        """Delete the object (or the version); nothing to delete is success.

        Raises `PreconditionError` if ``if_match`` is given and the object is another one.
        """
        ...

    def delete_seen(self, bucket: str, objects: Sequence[ListedObject]) -> None:
        """Delete up to 1,000 objects with one call, each only if it still has the etag seen.

        One that is gone, or is another object by now, is passed over in silence. Raises
        `TransientError` if some could not be judged; those that could be are deleted.
        """
        ...


class UploadStarter(Protocol):
    """What a task does: start uploads and send parts, never complete them."""

    def create_upload(
        self, bucket: str, key: str, *, metadata: dict[str, str], content_type: str
    ) -> str:
        """Start a multipart upload at its final key; return its id."""
        ...

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: bytes | memoryview
    ) -> str:
        """Send part ``number`` (from 1) and return its etag. Raises `UploadGoneError`."""
        ...

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        """Abort the upload; one that is already gone is success."""
        ...


class UploadCompleter(Protocol):
    """What the pipeline alone does: make an upload visible."""

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
        `UploadGoneError`: whoever completes again looks.

        Raises `UploadGoneError` if the upload is not known (completed before, or aborted),
        `PreconditionError` if ``if_absent`` and the key exists (or a 409: final),
        `JobRefusedError` (code ``PARTS_MISMATCH``) if the parts are not the ones that S3 has.
        """
        ...


class ObjectStore(ObjectReader, ObjectWriter, UploadStarter, UploadCompleter, Protocol):
    """All verbs together, for adapters and for the contract suite; consumers ask for less."""


class LostRaceError(S3CommitError):
    """A conditional write of the ledger lost; ``found`` is the record that beat it (None: none).

    The write changed nothing.
    """

    code = "LOST_RACE"

    def __init__(self, message: str, found: JobRecord | None) -> None:
        super().__init__(message)
        self.found = found

    @classmethod
    def over(
        cls, job_id: str, state: JobState | None, generation: int, found: JobRecord | None
    ) -> Self:
        """The error of a write that expected ``state`` (None: any) at ``generation``."""
        stands = f"{found.state} at generation {found.generation}" if found else "no record"
        return cls(
            f"job {job_id}: expected {state or 'any state'} at generation {generation},"
            f" found {stands}",
            found,
        )


class Ledger(Protocol):
    """The state of each job, its attempts and its locks; every write is conditional."""

    def job(self, job_id: str) -> JobRecord | None:
        """The record, read consistently."""
        ...

    def open_job(self, record: JobRecord) -> JobRecord:
        """Create the record if there is none; return the one that stands."""
        ...

    def take_over(self, job_id: str, *, generation: int, execution: str, now: str) -> JobRecord:
        """Raise the generation by one, for an execution that goes on with the job.

        Conditional on ``generation`` being the present one. Raises `LostRaceError`.
        """
        ...

    def advance(
        self,
        job_id: str,
        *,
        source: JobState,
        target: JobState,
        generation: int,
        now: str,
        plan: PlanFacts | None = None,
        failure: Failure | None = None,
    ) -> JobRecord:
        """One transition of the table, conditional on state and generation.

        ``plan`` and ``failure`` are stored if given. A transition into an ended state stores
        ``now`` as ``finished_at`` and sets the record's time to live. Raises `LostRaceError`,
        `IllegalTransitionError`. Entering COMMITTING is `decide`'s alone.
        """
        ...

    def decide(
        self,
        job_id: str,
        *,
        generation: int,
        plan: PlanFacts,
        replaced: ReplacedFacts | None,
        locks: Sequence[str],
        now: str,
    ) -> JobRecord:
        """SEALED→COMMITTING, the decision: one transaction over the job and its locks.

        Conditional on state, generation, the digests of plan and replace list, and on each node of
        ``locks`` (at most 98) being held by the job. Raises `LostRaceError`.
        """
        ...

    def note(
        self,
        job_id: str,
        *,
        generation: int,
        now: str,
        plan: PlanFacts | None = None,
        locks: Sequence[str] | None = None,
        replaced: ReplacedFacts | None = None,
    ) -> JobRecord:
        """Store what was found out about a SEALED job; None leaves a fact as it is.

        Raises `LostRaceError`.
        """
        ...

    def begin_unit(self, job_id: str, unit: int) -> bool:
        """Note that a worker begins the unit; True for the first one ever to say so.

        A worker that gets False repeats work of another, and looks at each object it completes.
        """
        ...

    def record_attempts(self, attempts: Iterable[AttemptRecord]) -> None:
        """Note arrived manifests; repeated notes of the same attempt change nothing.

        An attempt noted before with another digest keeps its first note.
        """
        ...

    def attempts(self, job_id: str) -> Iterator[AttemptRecord]:
        """Every noted attempt of the job, in no order."""
        ...

    def lock(self, node: str) -> LockRecord:
        """The node's lock, read consistently; an empty one with version 0 if there is none."""
        ...

    def put_lock(self, record: LockRecord) -> bool:
        """Store the record, on condition that the stored one still has ``record.version``.

        The stored version then is one more. An empty record may be kept or dropped, but a version
        that was seen never comes back with other contents. False if the condition does not hold;
        then nothing was changed.
        """
        ...

    def put_locks(self, records: Sequence[LockRecord]) -> bool:
        """Store all of the records (at most 98, of different nodes) or none of them.

        Each on the condition of `put_lock`; in one transaction.
        """
        ...

    def jobs_in(self, state: JobState, *, before: str, since: str = "") -> Iterator[JobRecord]:
        """Jobs in ``state`` not updated since ``before``, oldest first (eventually consistent).

        ``since`` leaves out those not updated since then: from there a listing is gone on with.
        """
        ...

    def forget(self, job_id: str, *, generation: int) -> bool:
        """Remove the record of a job in OPEN, conditional on state and generation.

        False if the condition does not hold; then nothing was changed.
        """
        ...
