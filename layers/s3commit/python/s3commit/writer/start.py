"""Starts a job: `open_job`, and what libraries that have a name of their own call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from s3commit.aws.clients import Boto3Session, Encryption
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.documents.job_json import JOB_JSON, MAX_JOB_BYTES, JobSpec, Who, decode_job
from s3commit.core.formats.layout import JobDirectory, check_job_id
from s3commit.core.model.destination import Scope
from s3commit.core.model.errors import AccessError, InvalidInputError, NotFoundError, TransientError
from s3commit.core.model.locks import key_digest
from s3commit.core.ports.objects import WriterStore
from s3commit.version import __version__
from s3commit.writer.conditional_put import put_first
from s3commit.writer.connect import check_pipeline, no_bucket
from s3commit.writer.job import Job
from s3commit.writer.options import (
    Mode,
    Options,
    OverwriteMode,
    keywords_of,
    make_options,
    nothing_written,
)
from s3commit.writer.place import check_place, refuse_files, side_by_side
from s3commit.writer.strays import refusing_strays
from s3commit.writer.system import Environment
from s3commit.writer.transfer import UploadSettings
from s3commit.writer.who import this_program

DEFAULT_CLIENT: Final = f"s3commit-python/{__version__}"


@refusing_strays
def open_job(
    path: str,
    *,
    mode: Mode = "append",
    partition_by: str | Sequence[str] | None = None,
    partition_overwrite_mode: OverwriteMode | None = None,
    idempotency_key: str | None = None,
    note: str | None = None,
    labels: Mapping[str, str] | None = None,
    min_rows: int | None = None,
    max_rows: int | None = None,
    min_files: int | None = None,
    check_partitions: bool | None = None,
    check_names: bool | None = None,
    commit_timeout: float | None = None,
    uploads: UploadSettings | None = None,
    encryption: Encryption | None = None,
    boto3_session: Boto3Session | None = None,
) -> Job:
    """Start a job: a few requests, before anything is written.

    Args:
        path: the directory, ``s3://bucket/prefix/``.
        mode: ``error`` refuses if files are there; ``append``; ``overwrite`` removes them once all
            new ones are visible.
        partition_by: the columns for the directories, a name or several. In the order of the paths
            that the tasks open; without any, partitions are not compared.
        partition_overwrite_mode: ``static``, all of the destination, or ``dynamic``, the partitions
            that the job writes; by default ``static``.
        idempotency_key: of the jobs with one key at one destination at most one is committed.
        note: a text for people, up to 500 characters. No rule and no idempotency key depends on it.
        labels: the same, up to ten names with values, such as ``{"dag": "sales"}``.
        min_rows: the least number of rows that the job must have to be committed. Give each file's
            to `Task.open`.
        max_rows: the largest number of rows.
        min_files: the least number of files.
        commit_timeout: seconds to wait for the outcome; by default 75 minutes.
        check_partitions: False adds files also where those that stay have other partition columns.
        check_names: False allows names that some readers skip (docs/guide/refused_writes.md).
        uploads: sizes of parts and threads of each task.
        encryption: of the objects; by default the bucket's.
        boto3_session: whose credentials and region count; by default the standard configuration's.

    Returns:
        The `Job`, whose tasks write the files.

    Raises:
        InvalidInputError: ``BAD_PATH``, ``BAD_SCHEMA``, ``BAD_OPTION``, ``BAD_CONDITION``,
            ``BAD_CONFIG``, ``PATH_IS_OBJECT``, ``OTHER_LOG``, ``OTHER_PARTITIONS``,
            ``DESTINATION_NOT_EMPTY``. Nothing was written; so with those that follow.
        NotFoundError: ``NO_BUCKET``, ``NO_PIPELINE``.
        AccessError: the credentials are missing, or don't permit it.
        TransientError: S3 could not be reached.

    Examples:
        >>> with s3commit.open_job("s3://lake/daily/", idempotency_key="2026-11-21") as job:
        ...     with job.task("0") as task, task.open("part-0.csv", rows=1) as file:
        ...         file.write(b"1")
        ...     result = job.commit([task.counted])
        >>> result.files, result.rows
        (1, 1)
    """
    keywords = keywords_of(locals())
    with nothing_written():
        return start_job(make_options(path, **keywords))


def start_job(
    options: Options,
    *,
    client: str = DEFAULT_CLIENT,
    who: Who | None = None,
    job_id: str | None = None,
    store: WriterStore | None = None,
    environment: Environment | None = None,
) -> Job:
    """`open_job`, for a library with a name of its own (``client``).

    ``who`` is looked up unless given, ``job_id`` a new UUID, and never used twice. Of a ``store``
    given by hand pipeline and place are trusted. Raises as `open_job`, and for the id (``BAD_ID``,
    ``JOB_EXISTS``).
    """
    environment = environment or Environment()
    spec = new_spec(options, environment, client=client, who=who, job_id=job_id)
    if store is None:
        s3 = options.access.make_client()
        store = found = S3ObjectStore(s3, encryption=options.encryption)
        compares = options.check_partitions and bool(spec.partition_by)
        side_by_side(
            partial(check_pipeline, s3, spec.destination),
            partial(check_place, found, options, compares=compares),
            # With a key the files may be those of its own job, which only the pipeline knows.
            *([] if spec.idempotency_key else [partial(refuse_files, found, options)]),
        )
    put_job(store, spec)
    return Job(spec, options, environment, store, commit_timeout=options.commit_timeout)


def new_spec(
    options: Options,
    environment: Environment,
    *,
    client: str = DEFAULT_CLIENT,
    who: Who | None = None,
    job_id: str | None = None,
) -> JobSpec:
    """The ``_job.json`` of a new job with the options. Raises as `start_job`, for the id."""
    key = options.idempotency_key
    return JobSpec(
        job_id=check_job_id(environment.new_id() if job_id is None else job_id),
        destination=options.destination,
        conflict=options.conflict,
        scope=options.scope or Scope.DIRECTORY,
        partition_by=options.partition_by,
        created_at=environment.now(),
        client=client,
        who=this_program() if who is None else who,
        # The digest: no reader of a job's documents learns the next keys of a stream.
        idempotency_key=None if key is None else key_digest(key),
        conditions=options.conditions,
        note=options.note,
        labels=options.labels,
    )


def put_job(store: WriterStore, spec: JobSpec) -> None:
    """Put ``_job.json``, unless this very one is there: one request.

    Raises `InvalidInputError` if no reader would take it, or another one is there
    (``JOB_EXISTS``), `NotFoundError`
    (``NO_BUCKET``), `AccessError` and `TransientError`.
    """
    directory, body = JobDirectory(spec.destination, spec.job_id), JOB_JSON.encode(spec)
    decode_job(body, directory)  # refused now, not by the pipeline after the last task
    destination, job_id = directory.destination, directory.job_id
    try:
        stands = put_first(store, directory.bucket, directory.job, body, max_bytes=MAX_JOB_BYTES)
    except NotFoundError as error:
        raise no_bucket(destination) from error
    except AccessError as error:
        raise AccessError(
            f"no access to {destination.uri}: {error.message}", code=error.code
        ) from error
    except TransientError as error:
        error.guarantee("No file was written; _job.json may have been")
        raise
    if stands != body:
        raise InvalidInputError(
            f"job ID {job_id} is already used at {destination.uri}: give another, or none",
            code="JOB_EXISTS",
        )
