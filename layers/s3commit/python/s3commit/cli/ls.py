"""``s3commit ls``."""

from __future__ import annotations

from os.path import commonprefix
from typing import Any

import click

from s3commit.cli.options import DESTINATION, JOB, with_session
from s3commit.cli.render import fields
from s3commit.cli.session import Session
from s3commit.core.formats.documents import (
    MAX_LINE_BYTES,
    CommitHeader,
    CommittedFile,
    decode_commit_header,
)
from s3commit.core.formats.layout import COMMITS, COMMITS_SUFFIX, JobDirectory
from s3commit.core.job.documents import read_commit_manifest
from s3commit.core.model.amounts import amount, many
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Destination

_JOBS = {
    "DECIDED": "decidedAt",
    "FILES": "fileCount",
    "SIZE": "bytes",
    "ROWS": "rows",
    "JOB": "jobId",
}
_FILES = {"SIZE": "bytes", "ROWS": "rows", "GONE": "gone", "FILE": "path"}


@click.command()
@click.argument("destination", type=DESTINATION)
@click.option("--files", "job", type=JOB, metavar="JOB", help="The files of one committed job.")
@with_session
def ls(session: Session, *, destination: Destination, job: JobDirectory | str | None) -> None:
    """List the committed jobs of a destination.

    The oldest job comes first. Times are UTC. The list comes from _commits/, whose manifests never
    change: readers that need a snapshot read them too. With a job, lists its files, and marks
    those that no longer exist because a later job replaced them or someone deleted them.
    """
    if job is None:
        _list_jobs(session, destination)
    else:
        _list_files(session, destination, job if isinstance(job, str) else job.job_id)


def _list_jobs(session: Session, destination: Destination) -> None:
    jobs = _committed_jobs(session, destination)
    document = {"destination": destination.uri, "jobs": list(map(_job_document, jobs))}
    session.out.table(document, "jobs", _JOBS)
    files, total = sum(job.files for job in jobs), sum(job.bytes for job in jobs)
    each = f": {amount(files, total, None)}" if jobs else ""
    session.out.note(f"{many(len(jobs), 'committed job')} at {destination.uri}{each}")


def _list_files(session: Session, destination: Destination, job_id: str) -> None:
    header, files = _committed_files(session, destination, job_id)
    gone = _gone(session, destination, files)
    prefix = header.destination.split("/", 3)[-1]
    documents = [
        {
            "key": file.key,
            "path": file.key.removeprefix(prefix),
            "bytes": file.length,
            "rows": file.rows,
            "etag": file.etag,
            "gone": file.key in gone,
        }
        for file in files
    ]
    session.out.table({**_job_document(header), "files": documents}, "files", _FILES)
    session.out.note(f"{many(len(files), 'file')} of job {job_id} at {header.destination}")
    if gone:
        which = "all of them" if len(gone) == len(files) else f"{len(gone)} of them"
        session.out.note(f"{which} gone by now: replaced by a later job, or deleted by someone")


def _job_document(job: CommitHeader) -> dict[str, Any]:
    members = fields(
        job, "job_id", "decided_at", "bytes", "rows", "partition_by", "idempotency_key"
    )
    return {**members, "fileCount": job.files}


def _committed_jobs(session: Session, destination: Destination) -> list[CommitHeader]:
    """The header of every committed job, in the order of their decisions.

    One request a job. Raises `InvalidInputError` for a manifest that can not be read.
    """
    bucket, prefix = destination.bucket, destination.prefix + COMMITS

    def read(key: str) -> CommitHeader:
        try:
            return decode_commit_header(session.store.first_bytes(bucket, key, MAX_LINE_BYTES))
        except InvalidInputError as error:
            line = f"s3://{bucket}/{key}: {error.message}"
            raise InvalidInputError(line, code=error.code) from error

    keys = [
        found.key
        for found in session.store.list(bucket, prefix)
        if found.key.endswith(COMMITS_SUFFIX) and "/" not in found.key[len(prefix) :]
    ]
    headers = session.parallel(read, keys)
    return sorted(headers, key=lambda header: (header.decided_at, header.job_id))


def _committed_files(
    session: Session, destination: Destination, job_id: str
) -> tuple[CommitHeader, list[CommittedFile]]:
    """A committed job's files, all of them. Raises `NotFoundError` (``NOT_COMMITTED``)."""
    directory = JobDirectory(destination, job_id)
    try:
        return read_commit_manifest(session.store, directory)
    except NotFoundError as error:
        if error.code != NotFoundError.code:
            raise
        raise NotFoundError(
            f"job {job_id} is not committed at {destination.uri}: there is no"
            f" s3://{directory.bucket}/{directory.commits}",
            code="NOT_COMMITTED",
        ) from error


def _gone(session: Session, destination: Destination, files: list[CommittedFile]) -> set[str]:
    """The keys of a job's files that are not there any more; fsck tells of those that changed.

    A job that replaces removes the files of those before it; so do people. Requests: one for each
    1,000 objects below what the files' keys have in common.
    """
    gone = {file.key for file in files}
    if gone:
        prefix = commonprefix(list(gone))  # noqa: RUF071 - keys, not paths
        gone.difference_update(one.key for one in session.store.list(destination.bucket, prefix))
    return gone
