"""``s3commit ls``."""

from __future__ import annotations

from os.path import commonprefix
from typing import Any

import click

from s3commit.cli.arguments import DESTINATION, JOB
from s3commit.cli.printer import Column, Printer
from s3commit.cli.session import Session
from s3commit.cli.text import amount, fields, many, moment, number, size
from s3commit.cli.verb import verb
from s3commit.core.formats.file_names import belongs_to_job
from s3commit.core.formats.layout import COMMITS, JobDirectory
from s3commit.core.formats.published import (
    MAX_LINE_BYTES,
    CommitHeader,
    CommittedFile,
    decode_commit_header,
)
from s3commit.core.job.documents import read_commit_manifest
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Destination
from s3commit.core.ports.objects import ListedObject


@verb()
@click.argument("destination", type=DESTINATION)
@click.option("--files", "job", type=JOB, metavar="JOB", help="The files of one committed job.")
def ls(
    session: Session, printer: Printer, destination: Destination, job: JobDirectory | str | None
) -> None:
    """List the committed jobs of a destination.

    The oldest job comes first. Times are UTC. The list comes from _commits/, whose manifests never
    change: readers that need a snapshot read them too. With a job, lists its files, and marks
    those that no longer exist because a later job replaced them or someone deleted them.
    """
    if job is not None:
        job_id = job if isinstance(job, str) else job.job_id
        header, files = committed_files(session, destination, job_id)
        gone = files_gone(session, header, destination, files)
        _list_files(printer, header, files, gone)
    else:
        _list_jobs(printer, destination, committed_jobs(session, destination))


_JOBS = (
    Column("DECIDED", "decidedAt", lambda text: moment(text)[:16]),
    Column("FILES", "fileCount", right=True),
    Column("SIZE", "bytes", size, right=True),
    Column("ROWS", "rows", number, right=True),
    Column("JOB", "jobId"),
)


def _list_jobs(printer: Printer, destination: Destination, jobs: list[CommitHeader]) -> None:
    about = {"destination": destination.uri}
    printer.listing(about, "jobs", [_job_document(job) for job in jobs], _JOBS)
    files, total = sum(job.files for job in jobs), sum(job.bytes for job in jobs)
    each = f": {amount(files, total, None)}" if jobs else ""
    printer.summary(f"{many(len(jobs), 'committed job')} at {destination.uri}{each}")


def _list_files(
    printer: Printer, header: CommitHeader, files: list[CommittedFile], gone: frozenset[str]
) -> None:
    prefix = header.destination.split("/", 3)[-1]
    documents = [
        {
            "key": file.key,
            "bytes": file.length,
            "rows": file.rows,
            "etag": file.etag,
            "gone": file.key in gone,
        }
        for file in files
    ]
    columns = (
        Column("SIZE", "bytes", size, right=True),
        Column("ROWS", "rows", number, right=True),
        Column("GONE", "gone", lambda is_gone: "gone" if is_gone else "", optional=True),
        Column("FILE", "key", lambda key: key.removeprefix(prefix)),
    )
    printer.listing(_job_document(header), "files", documents, columns)
    printer.summary(f"{many(len(files), 'file')} of job {header.job_id} at {header.destination}")
    if gone:
        which = "all of them" if len(gone) == len(files) else f"{len(gone)} of them"
        printer.summary(f"{which} gone by now: replaced by a later job, or deleted by someone")


def _job_document(job: CommitHeader) -> dict[str, Any]:
    members = fields(
        job, "job_id", "decided_at", "bytes", "rows", "partition_by", "idempotency_key"
    )
    return {**members, "fileCount": job.files}


SUFFIX = ".jsonl"


def committed_jobs(session: Session, destination: Destination) -> list[CommitHeader]:
    """The header of every committed job, in the order of their decisions.

    One request a job. Raises `InvalidInputError` for a manifest that can not be read.
    """
    prefix = destination.prefix + COMMITS
    keys = [
        found.key
        for found in session.store.list(destination.bucket, prefix)
        if found.key.endswith(SUFFIX) and "/" not in found.key[len(prefix) :]
    ]
    headers = session.parallel(lambda key: _header(session, destination.bucket, key), keys)
    return sorted(headers, key=lambda header: (header.decided_at, header.job_id))


def committed_files(
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


def files_gone(
    session: Session, header: CommitHeader, destination: Destination, files: list[CommittedFile]
) -> frozenset[str]:
    """The keys of a job's files that are not there any more as it wrote them.

    A job that replaces removes the files of those before it; so do people. Requests: one for each
    1,000 objects below what the files' keys have in common.
    """
    if not files:
        return frozenset()
    written = {file.key: file for file in files}
    prefix = commonprefix([file.key for file in files])  # noqa: RUF071 - keys, not paths
    for listed in session.store.list(destination.bucket, prefix):
        file = written.get(listed.key)
        if file is not None and _is_it(file, listed, header.job_id):
            del written[listed.key]
    return frozenset(written)


def _is_it(file: CommittedFile, listed: ListedObject, job_id: str) -> bool:
    # Behind KMS an etag can't be foretold, but a name with the job's id is the job's alone.
    by_name = belongs_to_job(file.key, job_id)
    return file.length == listed.length and (by_name or file.etag in {"", listed.etag})


def _header(session: Session, bucket: str, key: str) -> CommitHeader:
    start = session.store.first_bytes(bucket, key, MAX_LINE_BYTES)
    try:
        return decode_commit_header(start)
    except InvalidInputError as error:
        raise InvalidInputError(f"s3://{bucket}/{key}: {error.message}", code=error.code) from error
