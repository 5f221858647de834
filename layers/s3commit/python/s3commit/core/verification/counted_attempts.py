"""Which attempts a request counts, and the places in which their manifests lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from s3commit.core.formats.documents import MAX_ATTEMPTS, refuse_two_attempts
from s3commit.core.formats.layout import (
    NOTE_SUFFIX,
    PENDINGSET_SUFFIX,
    JobDirectory,
    parse_manifest_key,
    partition_of,
)
from s3commit.core.formats.locations import BAD_LOCATION
from s3commit.core.formats.manifest import MAX_MANIFEST_BYTES, digest
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.job.documents import JOB_CHANGED, read_request
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.job import CommitRequest, CountedAttempt, JobSpec
from s3commit.core.ownership.other_jobs import OtherJobs
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


def targets_of(
    ports: Ports, directory: JobDirectory, locations: Mapping[str, str]
) -> dict[str, Target]:
    """The job's places by their prefix; the destination's is empty."""
    targets = {
        prefix: Target(ports, directory.at(prefix), name) for name, prefix in locations.items()
    }
    targets[""] = Target(ports, directory, "", outside=frozenset(locations))
    return targets


class Target:
    """One place of the job: the destination, or the location of ``partition``.

    ``outside`` are the partitions that the destination must not have, since they lie elsewhere.
    """

    def __init__(
        self,
        ports: Ports,
        directory: JobDirectory,
        partition: str,
        outside: frozenset[str] = frozenset(),
    ) -> None:
        self.directory = directory
        self.other_jobs = OtherJobs(ports.store, directory)
        self._partition = partition
        self._outside = outside

    def partition(self, key: str) -> str:
        """The partition of a file here. Raises `JobRefusedError` (``BAD_LOCATION``)."""
        if self._partition:
            return self._partition
        directory = partition_of(self.directory.relative(key))
        found = next((name for name in self._outside if directory.startswith(name)), "")
        if found:
            raise JobRefusedError(
                f"{key[:200]!r} lies in partition {found!r}, which has a location of its own",
                code=BAD_LOCATION,
            )
        return directory


def counted_attempts(
    ports: Ports, request: CommitRequest, targets: Mapping[str, Target]
) -> Sequence[CountedAttempt]:
    """The attempts that the request names, or all that have a manifest.

    Raises `JobRefusedError` (``BAD_LOCATION``, ``TWO_ATTEMPTS``).
    """
    if request.attempts is None:
        found = [
            replace(attempt, location=prefix)
            for prefix, target in sorted(targets.items())
            for attempt in _every_attempt(ports, target.directory)
        ]
        refuse_two_attempts(found)
        return found
    for attempt in request.attempts:
        if attempt.location not in targets:
            raise JobRefusedError(
                f"the request counts a manifest at {attempt.location[:200]!r}, which is no"
                " location of the job",
                code=BAD_LOCATION,
            )
    return request.attempts


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
