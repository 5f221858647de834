"""The manifests of a job's counted attempts, read and judged, each once and in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from operator import attrgetter
from typing import Final

from s3commit.core.formats.layout import JobDirectory, parse_manifest_key
from s3commit.core.formats.manifest import (
    MAX_MANIFEST_BYTES,
    SMALL_MANIFEST_BYTES,
    decode_pendingset,
    digest,
)
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.job.documents import refusing_unreadable
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, NotFoundError
from s3commit.core.model.job import CountedAttempt, PendingFile, PendingSet
from s3commit.core.ports.bundle import Ports, together

MANIFESTS_AT_ONCE: Final = 128  # are read side by side, and held until their turn
FILES_AT_ONCE: Final = 4_096


def counted_manifests(
    ports: Ports, directory: JobDirectory, attempts: Iterable[CountedAttempt]
) -> Iterator[PendingSet]:
    """The manifest of each counted attempt, in the order of their names.

    Many are read side by side: a hundred thousand of them one after the other take longer than a
    call has time for. A large one is read alone, when its turn has come. Memory: that of
    `MANIFESTS_AT_ONCE` small manifests and a large one. Raises `JobRefusedError`:
    ``MANIFEST_MISSING``, ``MANIFEST_CHANGED`` (other bytes than the task wrote),
    ``COUNTS_DIFFER``, or the decoder's code.
    """

    def read_small(attempt: CountedAttempt) -> PendingSet | None:
        try:
            return _read(ports, directory, attempt, SMALL_MANIFEST_BYTES)
        except JobRefusedError as error:
            if error.code != TOO_LARGE:
                raise
            return None

    for some in _at_once(sorted(attempts, key=attrgetter("manifest"))):
        read = together(ports.parallel, *[partial(read_small, one) for one in some])
        for attempt, pending in zip(some, read, strict=True):
            yield pending or _read(ports, directory, attempt, MAX_MANIFEST_BYTES)


def _at_once(attempts: Iterable[CountedAttempt]) -> Iterator[list[CountedAttempt]]:
    some: list[CountedAttempt] = []
    files = 0
    for attempt in attempts:
        if some and (len(some) >= MANIFESTS_AT_ONCE or files + attempt.files > FILES_AT_ONCE):
            yield some
            some, files = [], 0
        some.append(attempt)
        files += attempt.files
    if some:
        yield some


def _read(
    ports: Ports, directory: JobDirectory, attempt: CountedAttempt, max_bytes: int
) -> PendingSet:
    name = attempt.manifest
    try:
        with refusing_unreadable(ports, directory):
            stored = ports.store.get(directory.bucket, directory.prefix + name, max_bytes=max_bytes)
    except NotFoundError:
        raise JobRefusedError(f"manifest {name} is not there", code="MANIFEST_MISSING") from None
    except InvalidInputError as error:
        raise JobRefusedError(error.message, code=error.code) from error
    if digest(stored.body) != attempt.sha256:
        raise JobRefusedError(
            f"manifest {name} has changed since its task wrote it", code="MANIFEST_CHANGED"
        )
    pending = decode_manifest(directory, name, stored.body)
    if (attempt.files, attempt.bytes) != (len(pending.files), pending.bytes):
        raise JobRefusedError(
            f"manifest {name} has {len(pending.files)} files of {pending.bytes} bytes,"
            f" the request says {attempt.files} of {attempt.bytes}",
            code="COUNTS_DIFFER",
        )
    return pending


def decode_manifest(directory: JobDirectory, name: str, body: bytes) -> PendingSet:
    """The manifest as its bytes have it.

    Raises `JobRefusedError` with the decoder's code, or ``WRONG_JOB`` if it is another attempt's.
    """
    try:
        pending = decode_pendingset(body, directory)
        _, task_id, attempt_id = parse_manifest_key(directory.bucket, directory.prefix + name)
    except InvalidInputError as error:
        raise JobRefusedError(f"manifest {name}: {error.message}", code=error.code) from error
    ones: tuple[PendingSet | PendingFile, ...] = (pending, *pending.files)
    for one in ones:
        if one.task_id not in {"", task_id} or one.attempt_id not in {"", attempt_id}:
            raise JobRefusedError(
                f"the manifest of task {task_id}, attempt {attempt_id}, says that it is of"
                f" {one.task_id[:80]!r}, {one.attempt_id[:80]!r}",
                code="WRONG_JOB",
            )
    return pending
