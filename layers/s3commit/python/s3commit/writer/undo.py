"""Undo a committed job: remove its files and restore the files that it replaced.

An undo is a job of its own. Before its commit S3 copies what comes back from the versions that the
bucket keeps into uploads, which are invisible as those of any job; no byte passes through this
process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from s3commit.aws.clients import Boto3Session, Encryption
from s3commit.aws.parallel import ThreadMap
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.documents.commit_manifest import CommittedFile
from s3commit.core.documents.pages import in_groups
from s3commit.core.documents.pendingset import PendingFile, PendingSet
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.formats.layout import JobDirectory, check_job_id
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import JobFailedError, JobRefusedError, S3CommitError
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import PartSource
from s3commit.core.ports.parallel import in_order
from s3commit.core.undo.back_to import WayBack, jobs_to_undo, plan_way_back
from s3commit.core.undo.job import PlannedUndo, plan_undo
from s3commit.writer.commit_result import CommitResult
from s3commit.writer.connect import check_pipeline
from s3commit.writer.job import Job, committed
from s3commit.writer.options import (
    DEFAULT_COMMIT_TIMEOUT,
    Options,
    keywords_of,
    make_options,
    nothing_written,
)
from s3commit.writer.start import new_spec, put_job
from s3commit.writer.strays import refusing_strays
from s3commit.writer.system import Environment
from s3commit.writer.target import Target
from s3commit.writer.task import put_manifest
from s3commit.writer.transfer import MAX_PARTS, MIB

COPIED_BYTES: Final = 512 * MIB  # that S3 copies with one request
FILES_OF_A_TASK: Final = 1_000
WORKERS: Final = 16


@refusing_strays
def undo(
    path: str,
    job_id: str,
    *,
    leave_removed: bool = False,
    dry_run: bool = False,
    note: str | None = None,
    labels: Mapping[str, str] | None = None,
    commit_timeout: float = DEFAULT_COMMIT_TIMEOUT,
    encryption: Encryption | None = None,
    boto3_session: Boto3Session | None = None,
) -> CommitResult:
    """Undo a committed job of a table: all of it, or nothing.

    Its files that are there are removed. Those that it replaced come back, from the versions that
    the bucket keeps. Its idempotency key is free again, so the corrected data can be written under
    it. Undoing the undo in turn brings everything back.

    Args:
        path: the directory, ``s3://bucket/prefix/``.
        job_id: a committed job, as `CommitResult.job_id` has it. It is undone.
        leave_removed: bring back nothing of what the job replaced.
        dry_run: write nothing, only check. An undo that would be refused raises.
        note: a text for people, up to 500 characters. No rule and no idempotency key depends on it.
        labels: the same, up to ten names with values, such as ``{"dag": "sales"}``.
        commit_timeout: seconds to wait for the outcome; by default 75 minutes.
        encryption: of the objects; by default the bucket's.
        boto3_session: whose credentials and region count; by default the standard configuration's.

    Returns:
        The result of the undo, a job of its own: ``files`` came back, ``replaced`` were removed;
        of a dry run those that would. ``rows`` are those that came back, 0 if unknown.

    Raises:
        JobRefusedError: there is nothing to undo, or not as a whole. Nothing was changed.
        JobFailedError: the undo was not committed. `Job.commit` says what else is raised.

    Examples:
        >>> wrong = s3commit.write_table(frame, "s3://lake/wrong/")
        >>> s3commit.undo("s3://lake/wrong/", wrong.job_id).replaced
        1
    """
    keywords = keywords_of(locals())
    with nothing_written():
        ports, directory, options = _connect(path, job_id, keywords)
        planned = plan_undo(ports, directory, leave_removed=leave_removed)
    return _would(planned) if dry_run else carry_out(ports, planned, options, Environment())


@refusing_strays
def undo_back_to(
    path: str,
    job_id: str,
    *,
    dry_run: bool = False,
    note: str | None = None,
    labels: Mapping[str, str] | None = None,
    commit_timeout: float = DEFAULT_COMMIT_TIMEOUT,
    encryption: Encryption | None = None,
    boto3_session: Boto3Session | None = None,
) -> dict[str, CommitResult]:
    """Undo what came after a job of a table, so that it holds what it held right after that job.

    As far as jobs changed it: files of other writers stay, and those deleted by hand stay deleted.
    All is planned first. Each `undo` is a job of its own, the newest job's is the first; so this
    is a call of its own, with a result for each. After a crash the same call does the rest.

    Args:
        path: the directory, ``s3://bucket/prefix/``.
        job_id: a committed job, as `CommitResult.job_id` has it. It stays.
        dry_run: write nothing, only check. A plan that would be refused raises.
        note: a text for people, up to 500 characters. No rule and no idempotency key depends on it.
        labels: the same, up to ten names with values, such as ``{"dag": "sales"}``.
        commit_timeout: seconds to wait for the outcome; by default 75 minutes. Of each undo.
        encryption: of the objects; by default the bucket's.
        boto3_session: whose credentials and region count; by default the standard configuration's.

    Returns:
        The result of each undo, in their order, by the id of the job that it has undone.

    Raises:
        JobRefusedError: there is no way back. Or the table has changed since the plan, and the
            message says how many undos are done.
        JobFailedError: an undo was not committed. `Job.commit` says what else is raised.

    Examples:
        >>> right = s3commit.write_table(frame, "s3://lake/back/")
        >>> wrong = s3commit.undo("s3://lake/back/", right.job_id)
        >>> [*s3commit.undo_back_to("s3://lake/back/", wrong.job_id)]
        []
    """
    keywords = keywords_of(locals())
    with nothing_written():
        ports, directory, options = _connect(path, job_id, keywords)
        way = plan_way_back(ports, directory)
    if dry_run:
        return {one.directory.job_id: _would(planned) for one, planned in way.undos}
    carry = partial(carry_out, ports, options=options, environment=Environment())
    return {job.job_id: result for job, result in take_back(ports, way, carry)}


def _connect(
    path: str, job_id: str, keywords: Mapping[str, Any]
) -> tuple[S3Ports, JobDirectory, Options]:
    options = make_options(path, check_names=False, **keywords)
    directory = JobDirectory(options.destination, check_job_id(job_id))
    client = options.access.make_client(connections=WORKERS)
    check_pipeline(client, directory.destination)
    store = S3ObjectStore(client, encryption=options.encryption)
    return S3Ports(store, parallel=ThreadMap(WORKERS)), directory, options


def _would(planned: PlannedUndo) -> CommitResult:
    """The result of a dry run."""
    place, backs = planned.directory.destination.uri, [file for file, _ in planned.restores]
    known, size = [one.rows for one in backs], sum(one.length for one in backs)
    rows = 0 if None in known else sum(filter(None, known))
    removed = len(planned.found.removes)
    return CommitResult(place, "", len(backs), rows, size, removed, dry_run=True)


def take_back(
    ports: S3Ports, way: WayBack, carry: Callable[[PlannedUndo], CommitResult]
) -> Iterator[tuple[JobDirectory, CommitResult]]:
    """Undo as planned by `carry_out`; each job with its result. Raises as `undo_back_to`.

    Before each undo, and at the end, it looks whether the plan still holds.
    """
    done, jobs = 0, [one.directory for one, _ in way.undos]
    try:
        for job in (*jobs, None):
            expected = way.idle.union(jobs if job else ())
            if new := {one.directory for one in jobs_to_undo(ports, way.job)} - expected:
                why = f"job {(one := new.pop()).job_id} at {one.destination.uri} is not in the plan"
                raise JobRefusedError(f"the table has changed since: {why}", code="FILES_CHANGED")
            if job is None:
                return
            try:
                result = carry(plan_undo(ports, job, leave_removed=False))
            except (JobRefusedError, JobFailedError) as error:
                if error.code != "NOTHING_TO_UNDO":
                    raise
                continue  # it is undone since, as by a command that died
            done += 1
            yield job, result
    except S3CommitError as error:
        known = f"{done} of the {len(jobs)} undos are known to be done"
        error.guarantee(f"{known}: run it again for the rest")
        raise


def carry_out(
    ports: S3Ports, planned: PlannedUndo, options: Options, environment: Environment
) -> CommitResult:
    """Undo as planned, and wait for the outcome. Raises as `undo`."""
    spec = replace(
        new_spec(options, environment),
        destination=planned.directory.destination,
        conflict=Conflict.REPLACE,
        idempotency_key=planned.key,
        undoes=planned.directory.job_id,
        leave_removed=planned.leaves_removed,
    )
    put_job(ports.store, spec)
    timeout = options.commit_timeout
    with Job(spec, options, environment, ports.store, commit_timeout=timeout) as job:
        groups = in_groups(planned.copies(job.job_id), FILES_OF_A_TASK)
        attempts = [_copy(ports, job, f"{n}", group) for n, group in enumerate(groups)]
        result = job._ended(attempts)
    if result.already_committed and result.error:  # the key's data has been written again since
        raise JobFailedError(result.error.message, code=result.error.code)
    return committed(job.directory, result)


def _copy(
    ports: S3Ports, job: Job, task_id: str, group: list[tuple[str, CommittedFile, str]]
) -> CountedAttempt:
    """Have S3 copy the files into uploads of the job; the attempt that names them."""
    attempt_id = job.task(task_id).attempt_id

    def copied(one: tuple[str, CommittedFile, str]) -> PendingFile:
        key, file, version = one
        return _upload(ports, Target(job.directory, key, task_id, attempt_id), file, version)

    files = tuple(in_order(ports.parallel, copied, group))
    return put_manifest(
        ports.store, job.directory, PendingSet(job.job_id, files, task_id, attempt_id)
    )


def _upload(ports: S3Ports, target: Target, file: CommittedFile, version: str) -> PendingFile:
    bucket, key, store = target.bucket, target.key, ports.store
    upload_id = target.begin(store)
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
    return target.pending(upload_id, etags, file.length, file.rows, file.first_key)
