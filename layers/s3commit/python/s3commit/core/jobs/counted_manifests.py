"""The manifests that a request counts: read side by side, and judged."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Final

from s3commit.core.documents.pages import grouped
from s3commit.core.documents.pendingset import (
    MAX_MANIFEST_BYTES,
    SMALL_MANIFEST_BYTES,
    PendingSet,
    decode_pendingset,
)
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import TOO_LARGE, digest
from s3commit.core.jobs.guards import refusing_unreadable
from s3commit.core.model.errors import (
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
    S3CommitError,
)
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.parallel import in_order

MANIFESTS_AT_ONCE: Final = 128  # are read side by side, and held until their turn
FILES_AT_ONCE: Final = 4_096


def counted_manifests(
    ports: S3Ports,
    directory: JobDirectory,
    attempts: Iterable[CountedAttempt],
    first: list[bytes] | None = None,
) -> Iterator[PendingSet]:
    """The manifest of each counted attempt, in the order of their names.

    ``first`` is what `first_manifests` has read.

    Many are read side by side: a hundred thousand of them one after the other take longer than a
    call has time for. A large one is read alone, when its turn has come. Memory: that of
    `MANIFESTS_AT_ONCE` small manifests and a large one. Raises `JobRefusedError`:
    ``MANIFEST_MISSING``, ``MANIFEST_CHANGED`` (other bytes than the task wrote),
    ``COUNTS_DIFFER``, or the decoder's code.
    """
    for some in _groups(attempts):
        with refusing_unreadable(ports, directory):
            bodies, first = first or _small(ports, directory, some), None
        for attempt, body in zip(some, bodies, strict=True):
            yield _judged(directory, attempt, body or _large(ports, directory, attempt))


def first_manifests(
    ports: S3Ports, directory: JobDirectory, attempts: Iterable[CountedAttempt]
) -> list[bytes] | None:
    """The first manifests that `counted_manifests` reads; None if one of them can't be read."""
    with suppress(S3CommitError):
        return _small(ports, directory, next(_groups(attempts), []))
    return None


def _groups(attempts: Iterable[CountedAttempt]) -> Iterator[list[CountedAttempt]]:
    in_turn = sorted(attempts, key=attrgetter("manifest"))
    return grouped(in_turn, MANIFESTS_AT_ONCE, attrgetter("files"), FILES_AT_ONCE)


def _small(ports: S3Ports, directory: JobDirectory, some: list[CountedAttempt]) -> list[bytes]:
    """Their bytes, in their order; none of one that is not small."""
    read = partial(_read, ports, directory, max_bytes=SMALL_MANIFEST_BYTES)
    return in_order(ports.parallel, read, some)


def _large(ports: S3Ports, directory: JobDirectory, attempt: CountedAttempt) -> bytes:
    with refusing_unreadable(ports, directory):
        return _read(ports, directory, attempt, max_bytes=MAX_MANIFEST_BYTES)


def _read(
    ports: S3Ports, directory: JobDirectory, attempt: CountedAttempt, *, max_bytes: int
) -> bytes:
    """The manifest's bytes; none if it is not small, and only a small one was requested."""
    name = attempt.manifest
    try:
        key = directory.prefix + name
        return ports.store.get(directory.bucket, key, max_bytes=max_bytes).body
    except NotFoundError:
        raise JobRefusedError(f"manifest {name} does not exist", code="MANIFEST_MISSING") from None
    except InvalidInputError as error:
        if error.code == TOO_LARGE and max_bytes < MAX_MANIFEST_BYTES:
            return b""
        raise


def _judged(directory: JobDirectory, attempt: CountedAttempt, body: bytes) -> PendingSet:
    name = attempt.manifest
    if digest(body) != attempt.sha256:
        raise JobRefusedError(
            f"manifest {name} has changed since its task wrote it", code="MANIFEST_CHANGED"
        )
    try:
        pending = decode_pendingset(body, directory, name)
    except InvalidInputError as error:
        raise JobRefusedError(f"manifest {name}: {error.message}", code=error.code) from error
    if (attempt.files, attempt.bytes) != (len(pending.files), pending.bytes):
        raise JobRefusedError(
            f"manifest {name} has {len(pending.files)} files of {pending.bytes} bytes,"
            f" the request says {attempt.files} of {attempt.bytes}",
            code="COUNTS_DIFFER",
        )
    return pending
