"""Which attempts a request counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from s3commit.core.formats.documents import MAX_ATTEMPTS, refuse_two_attempts
from s3commit.core.formats.layout import (
    NOTE_SUFFIX,
    PENDINGSET_SUFFIX,
    JobDirectory,
    parse_manifest_key,
)
from s3commit.core.formats.manifest import MAX_MANIFEST_BYTES, digest
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.job.documents import JOB_CHANGED, read_request
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.job import CommitRequest, CountedAttempt, JobSpec
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject


def commit_request(ports: Ports, directory: JobDirectory, spec: JobSpec) -> CommitRequest:
    """The request, if it is one to commit, and means the ``job.json`` that lies there.

    Raises `JobRefusedError` (``REQUEST_CHANGED``, ``JOB_CHANGED``).
    """
    request = read_request(ports, directory)
    if not isinstance(request, CommitRequest):
        raise JobRefusedError("the request has changed to an abort", code="REQUEST_CHANGED")
    if request.job_sha256 not in {"", spec.sha256}:
        raise JobRefusedError(
            "job.json is gone, or not the one that the request means", code=JOB_CHANGED
        )
    return request


def refuse_ours(
    directory: JobDirectory, request: CommitRequest, counted: Iterable[CountedAttempt]
) -> None:
    """S3A alone has no ``job.json``, and its manifests lie elsewhere; no request can name them.

    A job of ours whose ``job.json`` was deleted before anybody had read it would be committed
    without its conditions, its key and its policy.
    """
    ours = directory.tasks[len(directory.prefix) :]
    if request.attempts is not None or any(one.manifest.startswith(ours) for one in counted):
        raise JobRefusedError(
            "job.json is gone, so nobody knows the job's policy, conditions and key",
            code=JOB_CHANGED,
        )


def counted_attempts(
    ports: Ports, directory: JobDirectory, request: CommitRequest
) -> Sequence[CountedAttempt]:
    """The attempts that the request names, or all that have a manifest.

    Raises `JobRefusedError` (``TWO_ATTEMPTS``).
    """
    if request.attempts is not None:
        return request.attempts
    found = _every_attempt(ports, directory)
    refuse_two_attempts(found)
    return found


def _every_attempt(ports: Ports, directory: JobDirectory) -> list[CountedAttempt]:
    """A request without attempts counts every manifest; two for one task are refused (I3).

    So are those of two attempts of one S3A application: the second began the job anew.
    """
    found: dict[str, CountedAttempt] = {}
    applications: set[str] = set()
    for listed in _every_manifest(ports, directory):
        if len(found) >= MAX_ATTEMPTS or listed.length > MAX_MANIFEST_BYTES:
            raise JobRefusedError(
                f"{listed.key[:200]!r} of {listed.length} bytes is one manifest too many: at most"
                f" {MAX_ATTEMPTS} are counted, of at most {MAX_MANIFEST_BYTES} bytes",
                code=TOO_LARGE,
            )
        _, task_id, attempt_id = parse_manifest_key(directory.bucket, listed.key)
        if task_id in found:
            raise JobRefusedError(f"task {task_id} has two manifests", code="TWO_ATTEMPTS")
        if listed.key.startswith(directory.s3a):
            applications.add(attempt_id)
        if len(applications) > 1:
            raise JobRefusedError(
                f"{directory.s3a} has manifests of two application attempts", code="TWO_ATTEMPTS"
            )
        stored = ports.store.get(directory.bucket, listed.key, max_bytes=MAX_MANIFEST_BYTES)
        name = listed.key[len(directory.prefix) :]
        found[task_id] = CountedAttempt(task_id, attempt_id, name, digest(stored.body), -1, -1)
    return list(found.values())


def _every_manifest(ports: Ports, directory: JobDirectory) -> Iterator[ListedObject]:
    """Below ``tasks/`` each must be one, or a note; what S3A writes has other files as well."""
    for listed in ports.store.list(directory.bucket, directory.tasks):
        if not listed.key.endswith(NOTE_SUFFIX):
            yield listed
    for listed in ports.store.list(directory.bucket, directory.s3a):
        if listed.key.endswith(PENDINGSET_SUFFIX):
            yield listed
