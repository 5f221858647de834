"""The documents of one job, each read whole: ``job.json``, request, commit manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from s3commit.core.formats.documents import (
    MAX_JOB_BYTES,
    MAX_REQUEST_BYTES,
    MAX_RESULT_BYTES,
    decode_job,
    decode_request,
    decode_result,
)
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.published import (
    MAX_COMMITS_BYTES,
    MAX_LINE_BYTES,
    CommitHeader,
    CommittedFile,
    decode_commit_header,
    decode_commit_manifest,
)
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
)
from s3commit.core.model.job import AbortRequest, CommitRequest, JobResult, JobSpec
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
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
