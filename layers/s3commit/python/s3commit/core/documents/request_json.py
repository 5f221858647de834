"""``_request.json``: the client's request to commit or abort its job (docs/protocol.md)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from s3commit.core.formats.codec import VERSION, Codec
from s3commit.core.formats.layout import META_REQUESTED, JobDirectory
from s3commit.core.formats.strict_json import parse
from s3commit.core.model.destination import ID, JobId
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, NotFoundError
from s3commit.core.model.fields import SPARSE, Name, Several, Sha256, Text
from s3commit.core.model.moments import read_moment
from s3commit.core.model.outcome import MAX_TEXT
from s3commit.core.ports.objects import ObjectFacts

if TYPE_CHECKING:  # as in job_json
    from s3commit.core.ports.bundle import S3Ports

MAX_REQUEST_BYTES = 64 * 1024 * 1024
MAX_REQUEST_VALUES = 1_800_000
MAX_ATTEMPTS: Final = 200_000  # 1.4 million values; the worst of this size takes 1.1 GB to read
_SHA256_OR_NONE = re.compile("(?:[0-9a-f]{64})?")


@dataclass(frozen=True, slots=True)
class CountedAttempt:
    """One attempt that the driver counts."""

    task_id: Annotated[str, Text(64, pattern=ID)]
    """Which task of the job."""
    attempt_id: Annotated[str, Text(64, pattern=ID)]
    """Which try at it."""
    manifest: str
    """Its manifest, relative to the job directory."""
    sha256: Sha256
    """The hex digest of the manifest's bytes."""
    files: int
    """How many files it has."""
    bytes: int
    """Their size."""


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """``_request.json`` with the action commit.

    ``job_sha256`` is the digest of the ``_job.json`` that the client means; empty: it does not say.
    ``put_at`` is when S3 has got it, or, as its order, what the object's metadata says instead. It
    is not part of it.
    """

    job_id: JobId
    attempts: Annotated[tuple[CountedAttempt, ...], Several(MAX_ATTEMPTS)]
    job_sha256: Annotated[str, Text(64, pattern=_SHA256_OR_NONE), Name("jobDigest"), SPARSE] = ""
    put_at: str = field(default="", compare=False)

    @property
    def files(self) -> int:
        """How many the counted attempts say that they have, together."""
        return sum(attempt.files for attempt in self.attempts)


@dataclass(frozen=True, slots=True)
class AbortRequest:
    """``_request.json`` with the action abort; ``abandoned`` if the sweep put it for the driver."""

    job_id: JobId
    reason: str = ""
    abandoned: Annotated[bool, SPARSE] = False


class _Action(StrEnum):
    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class _Head:
    """The head of every request: the action decides which fields follow."""

    job_id: JobId
    action: _Action


_REQUEST: Final[Any] = {
    "what": "_request.json",
    "max_bytes": MAX_REQUEST_BYTES,
    "most": MAX_REQUEST_VALUES,
}
_HEAD: Final = Codec(_Head, version=VERSION, **_REQUEST)
_COMMIT: Final = Codec(
    CommitRequest,
    version=VERSION,
    constants={"action": _Action.COMMIT},
    unwritten={"put_at": ""},
    **_REQUEST,
)
_ABORT: Final = Codec(
    AbortRequest, version=VERSION, constants={"action": _Action.ABORT}, **_REQUEST
)


def encode_request(request: CommitRequest | AbortRequest) -> bytes:
    """``_request.json``. Raises `InvalidInputError` (``TOO_LARGE``) if no reader would take it."""
    if isinstance(request, CommitRequest):
        return _COMMIT.encode(request)
    return _ABORT.encode(replace(request, reason=request.reason[:MAX_TEXT]))


def decode_request(body: bytes, directory: JobDirectory) -> CommitRequest | AbortRequest:
    """Read the ``_request.json`` of ``directory``. Raises `InvalidInputError`.

    Two counted attempts of one task are refused (``TWO_ATTEMPTS``, I3), and a manifest that is
    not at the place which its ids give.
    """
    document = parse(body, **_REQUEST)
    head = _HEAD.read(document)
    if head.job_id != directory.job_id:
        raise InvalidInputError("_request.json is of another job", code="WRONG_JOB")
    if head.action is _Action.ABORT:
        return _ABORT.read(document)
    request = _COMMIT.read(document)
    for attempt in request.attempts:
        if attempt.manifest != directory.manifest_name(attempt.task_id, attempt.attempt_id):
            raise InvalidInputError(
                f"manifest {attempt.manifest[:200]!r} is not where its ids put it", code="BAD_FIELD"
            )
    refuse_two_attempts(request.attempts)
    return request


def refuse_two_attempts(attempts: Iterable[CountedAttempt]) -> None:
    """Raise `InvalidInputError` (``TWO_ATTEMPTS``) if a task is counted twice (I3)."""
    seen: set[str] = set()
    for one in attempts:
        if one.task_id in seen:
            raise InvalidInputError(
                f"two attempts of one task are counted, of {one.task_id}: commit one of them",
                code="TWO_ATTEMPTS",
            )
        seen.add(one.task_id)


def read_request(ports: "S3Ports", directory: JobDirectory) -> CommitRequest | AbortRequest:
    """The job's ``_request.json``.

    Raises `InvalidInputError`, and `JobRefusedError` (``REQUEST_MISSING``) if it was deleted: the
    job has to end anyway, since no event would announce a second request.
    """
    try:
        stored = ports.store.get(directory.bucket, directory.request, max_bytes=MAX_REQUEST_BYTES)
    except NotFoundError:
        raise JobRefusedError("_request.json no longer exists", code="REQUEST_MISSING") from None
    request = decode_request(stored.body, directory)
    if isinstance(request, CommitRequest):
        return replace(request, put_at=first_put_at(stored.facts))
    return request


def first_put_at(facts: ObjectFacts) -> str:
    """When S3 got a request first: a client that still waits puts it again, and says so."""
    claimed = read_moment(facts.metadata.get(META_REQUESTED, ""))
    return min(claimed or facts.modified, facts.modified)
