"""Undo a committed job: remove its files and restore the files that it replaced.

An undo is a job of its own. Before its commit S3 copies what comes back from the versions that the
bucket keeps into uploads, which are invisible as those of any job; no byte passes through this
process.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast

from s3commit.aws.clients import Encryption, make_client
from s3commit.aws.parallel import ThreadMap
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.documents.commit_manifest import CommittedFile, read_commit_header
from s3commit.core.documents.job_json import JobSpec
from s3commit.core.documents.pages import in_groups
from s3commit.core.documents.pendingset import PendingFile, PendingSet
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.documents.result_json import JobResult
from s3commit.core.formats.layout import (
    MAX_KEY_BYTES,
    JobDirectory,
    check_job_id,
    parse_destination,
    partition_of,
)
from s3commit.core.jobs.undo import NOTHING_TO_UNDO, Undo, look_back
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import NOT_READABLE, JobFailedError, JobRefusedError
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import PartSource
from s3commit.core.ports.parallel import in_order
from s3commit.writer.connect import check_pipeline
from s3commit.writer.job import Job
from s3commit.writer.options import DEFAULT_COMMIT_TIMEOUT
from s3commit.writer.start import DEFAULT_CLIENT, put_job
from s3commit.writer.system import Environment
from s3commit.writer.target import Target
from s3commit.writer.task import put_manifest
from s3commit.writer.transfer import MAX_PARTS, MIB
from s3commit.writer.who import this_program

VERSIONS_GONE: Final = "VERSIONS_GONE"
COPIED_BYTES: Final = 512 * MIB  # that S3 copies with one request
FILES_OF_A_TASK: Final = 1_000
WORKERS: Final = 16
_BUCKET: Final = re.compile(r"_\d+$")


@dataclass(frozen=True, slots=True)
class PlannedUndo:
    """The work of an undo.

    ``restores`` are the files that come back, each with the id of the version that is copied.
    ``key`` is the digest of the idempotency key that the undo takes: where it brings back the data
    of a job that an undo had removed. It ``leaves_removed`` what the job had replaced.
    """

    directory: JobDirectory
    found: Undo
    restores: tuple[tuple[CommittedFile, str], ...] = ()
    key: str | None = None
    leaves_removed: bool = False


def undo(
    destination: str,
    job_id: str,
    *,
    leave_removed: bool = False,
    commit_timeout: float = DEFAULT_COMMIT_TIMEOUT,
    encryption: Encryption | None = None,
) -> JobResult:
    """Undo a committed job of a table: all of it, or nothing.

    Its files that are there are removed. Those that it replaced come back, from the versions that
    the bucket keeps. Its idempotency key is free again, so the corrected data can be written under
    it. Undoing the undo in turn brings everything back.

    Args:
        destination: the directory, ``s3://bucket/prefix/``.
        job_id: the job to undo, as `CommitResult.job_id` has it.
        leave_removed: bring back nothing of what the job replaced.
        commit_timeout: seconds to wait for the outcome; 75 minutes by default.
        encryption: of what comes back; the bucket's own by default.

    Returns:
        The result of the undo, a job of its own: ``files`` came back, ``replaced`` were removed.

    Raises:
        JobRefusedError: there is nothing to undo, or not as a whole. Nothing was changed.
        JobFailedError: the undo was not committed. `Job.commit` says what else is raised.

    Examples:
        >>> wrong = s3commit.write_table(frame, "s3://lake/wrong/")
        >>> s3commit.undo("s3://lake/wrong/", wrong.job_id).replaced
        1
    """
    directory = JobDirectory(parse_destination(destination), check_job_id(job_id))
    client = make_client(connections=WORKERS)
    check_pipeline(client, directory.destination)
    no_ledger = cast("Ledger", None)  # a plan asks S3 alone
    store = S3ObjectStore(client, encryption=encryption)
    environment = Environment()
    ports = Ports(store, no_ledger, environment, ThreadMap(WORKERS))
    planned = plan_undo(ports, directory, leave_removed=leave_removed)
    return carry_out(ports, planned, environment, commit_timeout=commit_timeout)


def plan_undo(ports: Ports, directory: JobDirectory, *, leave_removed: bool) -> PlannedUndo:
    """The work of an undo of the job. Changes nothing.

    Raises `JobRefusedError` as `look_back`, ``REPLACED_SINCE`` and ``LIST_GONE`` if what the job
    replaced can't come back, and ``VERSIONS_GONE`` if the bucket has not kept all of it.
    """
    found = look_back(ports, directory)
    if leave_removed:
        if not found.removes:
            raise JobRefusedError(
                f"none of the files of job {directory.job_id} exist any more", code=NOTHING_TO_UNDO
            )
        return PlannedUndo(directory, found, leaves_removed=True)
    if found.refused:
        raise found.refused
    for number, file in enumerate(found.restores):
        if len(_name(file.key, number, directory.job_id).encode()) > MAX_KEY_BYTES:
            raise JobRefusedError(
                f"a copy of {file.key[:200]!r} would have a key of more than {MAX_KEY_BYTES}"
                " bytes; to remove only the job's own files, add --leave-removed",
                code="NAME_TOO_LONG",
            )
    return PlannedUndo(directory, found, _versions(ports, directory, found), _key(ports, directory))


def carry_out(
    ports: Ports, planned: PlannedUndo, environment: Environment, *, commit_timeout: float
) -> JobResult:
    """Undo as planned, and wait for the outcome. Raises as `undo`."""
    place = planned.directory.destination
    spec = JobSpec(
        job_id=environment.new_id(),
        destination=place,
        conflict=Conflict.REPLACE,
        created_at=environment.now(),
        client=DEFAULT_CLIENT,
        who=this_program(),
        idempotency_key=planned.key,
        undoes=planned.directory.job_id,
        leave_removed=planned.leaves_removed,
    )
    put_job(ports.store, spec)
    with Job(spec, environment=environment, _store=ports.store) as job:
        groups = in_groups(enumerate(planned.restores), FILES_OF_A_TASK)
        attempts = [_copy(ports, job, f"{n}", group) for n, group in enumerate(groups)]
        job.commit_timeout = commit_timeout
        result = job.commit(attempts)
    if result.error is not None:  # the key's data has been written again since
        raise JobFailedError(result.error.message, code=result.error.code)
    return result


def _versions(
    ports: Ports, directory: JobDirectory, found: Undo
) -> tuple[tuple[CommittedFile, str], ...]:
    """The files that come back, each with the version that has its bytes."""

    def version(file: CommittedFile) -> str | None:
        for one in ports.store.list_versions(directory.bucket, file.key):
            if (one.length, one.etag) == (file.length, file.etag):
                return one.version_id
        return None

    versions = in_order(ports.parallel, version, found.restores)
    missing = versions.count(None)
    if missing:
        raise JobRefusedError(
            f"bucket {directory.bucket} no longer has a version of {missing} of the"
            f" {len(versions)} files that job {directory.job_id} replaced (it keeps none, or they"
            " have expired), so they can't come back. To remove the job's own files anyway:"
            " --leave-removed",
            code=VERSIONS_GONE,
        )
    return tuple(zip(found.restores, versions, strict=True))


def _key(ports: Ports, directory: JobDirectory) -> str | None:
    """The key of the job that the undone one has undone: its data comes back."""
    with suppress(*NOT_READABLE):
        undone = read_commit_header(ports.store, directory).undoes
        if undone:
            job = JobDirectory(directory.destination, undone)
            return read_commit_header(ports.store, job).idempotency_key
    return None


def _copy(
    ports: Ports, job: Job, task_id: str, group: list[tuple[int, tuple[CommittedFile, str]]]
) -> CountedAttempt:
    """Have S3 copy the files into uploads of the job; the attempt that names them."""
    attempt_id = job.environment.new_id()

    def copied(one: tuple[int, tuple[CommittedFile, str]]) -> PendingFile:
        number, (file, version) = one
        key = _name(file.key, number, job.job_id)
        return _upload(ports, Target(job.directory, key, task_id, attempt_id), file, version)

    files = tuple(in_order(ports.parallel, copied, group))
    return put_manifest(
        ports.store, job.directory, PendingSet(job.job_id, files, task_id, attempt_id)
    )


def _name(key: str, number: int, job_id: str) -> str:
    """Beside the file, with the same ends of its name: readers go by them.

    A bucket's number too, where Spark still finds it
    (org.apache.spark.sql.execution.datasources.BucketingUtils).
    """
    stem, dot, ends = key.rpartition("/")[2].partition(".")
    bucket = _BUCKET.search(stem)
    ends = f".{bucket[0]}{dot}{ends}" if bucket else f"{dot}{ends}"
    return f"{partition_of(key)}part-{number:05d}-{job_id}{ends}"


def _upload(ports: Ports, target: Target, file: CommittedFile, version: str) -> PendingFile:
    bucket, key, store = target.bucket, target.key, ports.store
    upload_id = store.create_upload(
        bucket, key, metadata=target.metadata, content_type=target.content_type
    )
    step = max(COPIED_BYTES, -(-file.length // MAX_PARTS))
    sources = [PartSource(file.key, version)]
    if file.length > step:
        starts = range(0, file.length, step)
        sources = [PartSource(file.key, version, at, min(at + step, file.length)) for at in starts]
    etags = [
        store.copy_part(bucket, key, upload_id, number, source)
        for number, source in enumerate(sources, start=1)
        if file.length
    ] or [store.upload_part(bucket, key, upload_id, 1, b"")]  # there is nothing to copy
    return PendingFile(
        bucket,
        key,
        upload_id,
        tuple(etags),
        file.length,
        job_id=target.directory.job_id,
        task_id=target.task_id,
        attempt_id=target.attempt_id,
        rows=file.rows,
        origin=file.first_key,
    )
