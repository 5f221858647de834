"""``s3commit ls``."""

from __future__ import annotations

from typing import Any

import click

from s3commit.cli.arguments import DESTINATION, JOB, JobName
from s3commit.cli.committed import committed_files, committed_jobs, files_gone
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.text import amount, many, moment, number, size
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


def _list_jobs(printer: Printer, destination: Destination, jobs: list[CommitHeader]) -> None:
    if printer.json:
        documents = [_job_document(job) for job in jobs]
        printer.document({"destination": destination.uri, "jobs": documents})
        return
    if jobs:
        printer.table(
            ["DECIDED", "FILES", "SIZE", "ROWS", "JOB"],
            [
                [
                    moment(job.decided_at)[:16],
                    str(job.files),
                    size(job.bytes),
                    number(job.rows),
                    job.job_id,
                ]
                for job in jobs
            ],
            right=["FILES", "SIZE", "ROWS"],
        )
    files, total = sum(job.files for job in jobs), sum(job.bytes for job in jobs)
    each = f": {amount(files, total, None)}" if jobs else ""
    printer.note(f"{many(len(jobs), 'committed job')} at {destination.uri}{each}")


def _list_files(
    printer: Printer, header: CommitHeader, files: list[CommittedFile], gone: frozenset[str]
) -> None:
    if printer.json:
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
        printer.document({**_job_document(header), "files": documents})
        return
    prefix = header.destination.split("/", 3)[-1]
    if files:
        printer.table(
            ["SIZE", "ROWS", *["GONE"] * bool(gone), "FILE"],
            [
                [
                    size(file.length),
                    number(file.rows),
                    *["gone" if file.key in gone else ""] * bool(gone),
                    file.key.removeprefix(prefix),
                ]
                for file in files
            ],
            right=["SIZE", "ROWS"],
        )
    printer.note(f"{many(len(files), 'file')} of job {header.job_id} at {header.destination}")
    if gone:
        which = "all of them" if len(gone) == len(files) else f"{len(gone)} of them"
        printer.note(f"{which} gone by now: replaced by a later job, or deleted by someone")


def _job_document(job: CommitHeader) -> dict[str, Any]:
    return {
        "jobId": job.job_id,
        "decidedAt": job.decided_at,
        "fileCount": job.files,
        "bytes": job.bytes,
        "rows": job.rows,
        "partitionBy": list(job.partition_by),
        "idempotencyKey": job.idempotency_key,
    }
