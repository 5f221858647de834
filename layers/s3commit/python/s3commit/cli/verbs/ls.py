"""``s3commit ls``."""

from __future__ import annotations

from typing import Any

import click

from s3commit.cli.arguments import DESTINATION, JOB, JobName
from s3commit.cli.committed import committed_files, committed_jobs, files_gone
from s3commit.cli.printer import Column, Printer
from s3commit.cli.session import Session
from s3commit.cli.text import amount, fields, many, moment, number, size
from s3commit.cli.verb import verb
from s3commit.core.formats.published import CommitHeader, CommittedFile
from s3commit.core.model.job import Destination


@verb()
@click.argument("destination", type=DESTINATION)
@click.option("--files", "job", type=JOB, metavar="JOB", help="The files of one committed job.")
def ls(session: Session, printer: Printer, destination: Destination, job: JobName | None) -> None:
    """List the committed jobs of a destination.

    The oldest job comes first. Times are UTC. The list comes from _commits/, whose manifests never
    change: readers that need a snapshot read them too. With a job, lists its files, and marks
    those that no longer exist because a later job replaced them or someone deleted them.
    """
    if job is not None:
        header, files = committed_files(session, destination, job.job_id)
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
    told = fields(job, "job_id", "decided_at", "bytes", "rows", "partition_by", "idempotency_key")
    return {**told, "fileCount": job.files}
