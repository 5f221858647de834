"""The manifests of a job's task attempts, read and judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from s3commit.core.formats.layout import JobDirectory, parse_manifest_key
from s3commit.core.formats.manifest import (
    MAX_MANIFEST_BYTES,
    SMALL_MANIFEST_BYTES,
    decode_pendingset,
    digest,
)
from s3commit.core.formats.plan import Slice
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, NotFoundError
from s3commit.core.model.job import CountedAttempt
from s3commit.core.model.pending import PendingSet
from s3commit.core.ports.bundle import Ports


def each_manifest(
    ports: Ports, read: Callable[[Any, int], Any], items: Iterable[Any]
) -> Iterator[Any]:
    """``read(item, max_bytes)`` of each item, many side by side where the manifests are small.

    The large ones, which ``read`` refuses at first with ``TOO_LARGE``, come after that, one at a
    time: so memory is that of one, however many of them a job has, and whoever wrote them. Results
    come in any order.
    """
    later: list[Any] = []

    def read_small(item: Any) -> Any:
        try:
            return read(item, SMALL_MANIFEST_BYTES)
        except (InvalidInputError, JobRefusedError) as error:
            if error.code != TOO_LARGE:
                raise
            later.append(item)
            return later

    for result in ports.parallel(read_small, items):
        if result is not later:
            yield result
    for item in later:
        yield read(item, MAX_MANIFEST_BYTES)


def read_manifest(
    ports: Ports,
    directory: JobDirectory,
    told: CountedAttempt | Slice,
    max_bytes: int = MAX_MANIFEST_BYTES,
) -> PendingSet:
    """The manifest as the request or plan names it, relative to the directory.

    Raises `JobRefusedError`: ``MANIFEST_MISSING``, ``MANIFEST_CHANGED`` (other bytes than the
    task wrote), or the codec's code.
    """
    name = told.manifest
    try:
        stored = ports.store.get(directory.bucket, directory.prefix + name, max_bytes=max_bytes)
    except NotFoundError:
        raise JobRefusedError(f"manifest {name} is not there", code="MANIFEST_MISSING") from None
    except InvalidInputError as error:
        raise JobRefusedError(error.message, code=error.code) from error
    if digest(stored.body) != told.sha256:
        raise JobRefusedError(
            f"manifest {name} has changed since its task wrote it", code="MANIFEST_CHANGED"
        )
    return decode_manifest(directory, name, stored.body)


def decode_manifest(directory: JobDirectory, name: str, body: bytes) -> PendingSet:
    """The manifest ``name`` as its bytes have it.

    Raises `JobRefusedError` with the codec's code, or ``WRONG_JOB`` if it is another attempt's.
    """
    try:
        pending = decode_pendingset(body, directory)
        _, task_id, attempt_id = parse_manifest_key(directory.bucket, directory.prefix + name)
    except InvalidInputError as error:
        raise JobRefusedError(f"manifest {name}: {error.message}", code=error.code) from error
    _refuse_other_ids(pending, task_id, attempt_id)
    return PendingSet(directory.job_id, pending.files, task_id, attempt_id, pending.task_count)


def _refuse_other_ids(pending: PendingSet, task_id: str, attempt_id: str) -> None:
    for said_task, said_attempt in [
        (pending.task_id, pending.attempt_id),
        *((file.task_id, file.attempt_id) for file in pending.files),
    ]:
        if said_task not in {"", task_id} or said_attempt not in {"", attempt_id}:
            raise JobRefusedError(
                f"the manifest of task {task_id}, attempt {attempt_id}, says that it is of"
                f" {said_task[:80]!r}, {said_attempt[:80]!r}",
                code="WRONG_JOB",
            )
