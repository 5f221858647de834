"""The documents of one job, each read whole: job.json, request, result, and every manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Final

from s3commit.core.formats.documents import (
    MAX_COMMITS_BYTES,
    MAX_JOB_BYTES,
    MAX_LINE_BYTES,
    MAX_REQUEST_BYTES,
    MAX_RESULT_BYTES,
    CommitHeader,
    CommittedFile,
    decode_commit_header,
    decode_commit_manifest,
    decode_job,
    decode_request,
    decode_result,
)
from s3commit.core.formats.layout import JobDirectory, parse_manifest_key
from s3commit.core.formats.manifest import (
    MAX_MANIFEST_BYTES,
    SMALL_MANIFEST_BYTES,
    decode_pendingset,
    digest,
)
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
)
from s3commit.core.model.job import (
    AbortRequest,
    CommitRequest,
    CountedAttempt,
    JobResult,
    JobSpec,
    PendingFile,
    PendingSet,
)
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports, together
from s3commit.core.ports.objects import ObjectReader, listed_at

JOB_CHANGED = "JOB_CHANGED"
UNREADABLE = "UNREADABLE"
_OWN = b"{}\n"  # a page of no list


@contextmanager
def refusing_unreadable(ports: Ports, directory: JobDirectory) -> Iterator[None]:
    """For the steps that read a client's documents: what may not be read counts as changed.

    A document under a key of somebody else's ends its own job (`InvalidInputError`,
    ``UNREADABLE``). An object of the pipeline's own tells that apart from an outage: if that can't
    be written and read either, `AccessError` goes on, and the step comes again.
    """
    try:
        yield
    except AccessError as error:
        own = directory.page(hashlib.sha256(_OWN).hexdigest())
        ports.store.put(directory.bucket, own, _OWN)
        ports.store.get(directory.bucket, own, max_bytes=len(_OWN))
        raise InvalidInputError(error.message, code=UNREADABLE) from error


def read_spec(ports: Ports, directory: JobDirectory) -> JobSpec:
    """The job's ``job.json``.

    Raises `InvalidInputError` if it is not acceptable, with ``JOB_CHANGED`` if there is none: a
    directory without one is no job.
    """
    try:
        stored = ports.store.get(directory.bucket, directory.job, max_bytes=MAX_JOB_BYTES)
    except NotFoundError:
        raise InvalidInputError(f"{directory.job} is not there", code=JOB_CHANGED) from None
    return replace(decode_job(stored.body, directory), put_at=stored.facts.modified)


def opened_at(store: ObjectReader, record: JobRecord) -> str:
    """When S3 got the job's ``job.json``; empty if there is none.

    The ledger does not know it if the job's abort was requested before ``job.json`` was put.
    """
    if record.opened_at:
        return record.opened_at
    directory = JobDirectory.of(record)
    found = listed_at(store, directory.bucket, directory.job)
    return found.modified if found is not None else ""


def read_spec_of(ports: Ports, directory: JobDirectory, record: JobRecord) -> JobSpec:
    """As `read_spec`, if it is still the document that the ledger knows.

    Raises `JobRefusedError` (``JOB_CHANGED``).
    """
    changed = JobRefusedError(
        "job.json is gone, or not what it was when the job began", code=JOB_CHANGED
    )
    try:
        spec = read_spec(ports, directory)
    except InvalidInputError as error:
        if error.code != JOB_CHANGED:
            raise
        raise changed from error
    now = (spec.conflict, spec.scope, spec.idempotency_key)
    same = now == (record.conflict, record.scope, record.idempotency_key)
    if not same or record.job_sha256 not in {None, spec.sha256}:
        raise changed
    return spec


def read_result(store: ObjectReader, directory: JobDirectory) -> JobResult:
    """The job's ``result.json``. Raises `NotFoundError`, `InvalidInputError`."""
    stored = store.get(directory.bucket, directory.result, max_bytes=MAX_RESULT_BYTES)
    return decode_result(stored.body, directory)


def read_commit_manifest(
    store: ObjectReader, directory: JobDirectory
) -> tuple[CommitHeader, list[CommittedFile]]:
    """The job's manifest in ``_commits/``, whole: a gigabyte has no room in a function.

    Raises `NotFoundError`, `InvalidInputError`.
    """
    stored = store.get(directory.bucket, directory.commits, max_bytes=MAX_COMMITS_BYTES)
    return decode_commit_manifest(stored.body)


def read_commit_header(store: ObjectReader, directory: JobDirectory) -> CommitHeader:
    """How the job's manifest in ``_commits/`` begins. Raises as `read_commit_manifest`."""
    return decode_commit_header(
        store.first_bytes(directory.bucket, directory.commits, MAX_LINE_BYTES)
    )


def read_request(ports: Ports, directory: JobDirectory) -> CommitRequest | AbortRequest:
    """The job's ``request.json``.

    Raises `InvalidInputError`, and `JobRefusedError` (``REQUEST_MISSING``) if it is gone: the job
    has to end all the same, since no event would announce a second request.
    """
    try:
        stored = ports.store.get(directory.bucket, directory.request, max_bytes=MAX_REQUEST_BYTES)
    except NotFoundError:
        raise JobRefusedError(
            "request.json is not there any more", code="REQUEST_MISSING"
        ) from None
    return decode_request(stored.body, directory)


def commit_request(request: CommitRequest | AbortRequest, spec: JobSpec) -> CommitRequest:
    """The request, if it is one to commit, and means that ``job.json``.

    Raises `JobRefusedError` (``REQUEST_CHANGED``, ``JOB_CHANGED``).
    """
    if not isinstance(request, CommitRequest):
        raise JobRefusedError("the request has changed to an abort", code="REQUEST_CHANGED")
    if request.job_sha256 not in {"", spec.sha256}:
        raise JobRefusedError(
            "job.json is gone, or not the one that the request means", code=JOB_CHANGED
        )
    return request


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
