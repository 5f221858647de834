"""``s3commit show``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import click

from s3commit.cli.arguments import age_option
from s3commit.cli.job.document import job_document
from s3commit.cli.job.follow import follow, print_change
from s3commit.cli.job.snapshot import (
    JobSnapshot,
    on_job,
    open_uploads,
    own_uploads,
)
from s3commit.cli.job.waiting import read_lock_status
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.text import many, size
from s3commit.cli.verb import USAGE, Problem, verb
from s3commit.core.job.replace_list import listed_files
from s3commit.core.model.errors import JobRefusedError, NotFoundError
from s3commit.core.model.states import ENDED
from s3commit.core.ports.objects import ListedObject, OpenUpload
from s3commit.writer.environment import timestamp
from s3commit.writer.requests import require_committed

SCANNED_UPLOADS = 20_000  # of the destination: 20 requests, then it stops counting


@verb()
@on_job()
@click.option("--follow", "following", is_flag=True, help="Print each change until the job ends.")
@age_option("--timeout", default="15m", told="With --follow: how long to wait: 90s, 15m, 2h.")
@click.option("--replaced", is_flag=True, help="List the existing files that the job replaces.")
def show(
    session: Session,
    printer: Printer,
    *,
    snapshot: JobSnapshot,
    following: bool,
    timeout: int,
    replaced: bool,
) -> None:
    """Show one job and what to do about it.

    Prints the job's state, its locks, the jobs that block it, its error, and the next step. JOB is
    a job id (with a table or --destination), or the s3:// URI of a job directory. With a URI the
    command needs S3 alone, but only the ledger knows which jobs a job waits for:

    \b
      s3commit show 7c9e6679-7425-40de-944b-e07fc1f90ae7 --table ledger
      s3commit show s3://lake/sales/__magic_job-7c9e6679-7425-40de-944b-e07fc1f90ae7/

    --follow prints a line for each change of state and of what the tasks have written, and for
    each job that blocks this one. It exits with 0 if the job is committed, or if another job with
    its idempotency key was; with 3 if it is aborted or rolled back; with 4 after --timeout, and the
    job continues.
    """  # noqa: D301 - click wants the backspace
    if replaced and following:
        raise Problem("--follow and --replaced exclude each other", USAGE)
    if following:
        for change, result in follow(session, snapshot, timeout):
            print_change(printer, change)
            if result is not None:
                require_committed(result)
        return
    if replaced:
        _list_replaced(printer, snapshot, _replaced(session, snapshot))
        return
    uploads, complete = _uploads(session, snapshot)
    snapshot = _with_others(session, replace(snapshot, uploads=uploads, uploads_complete=complete))
    now = session.environment.epoch()
    document = job_document(snapshot, now)
    if printer.json:
        printer.document(document)
    else:
        printer.facts(document)


def _uploads(session: Session, snapshot: JobSnapshot) -> tuple[tuple[OpenUpload, ...], bool]:
    """The job's open uploads among the first of its places', and whether those were all."""
    scanned = list(islice(open_uploads(session, snapshot), SCANNED_UPLOADS + 1))
    mine = own_uploads(session, snapshot, scanned[:SCANNED_UPLOADS])
    return tuple(mine), len(scanned) <= SCANNED_UPLOADS


def _with_others(session: Session, snapshot: JobSnapshot) -> JobSnapshot:
    """The facts with the job's locks, those in its way, and whether their executions live."""
    ledger, record = snapshot.ledger, snapshot.record
    if ledger is None or record is None or snapshot.result is not None:
        return snapshot
    locks = read_lock_status(session, ledger, record, timestamp(session.environment))
    others = locks.in_the_way if locks else ()
    executions = [other.record.execution for other in others]
    found, problems = session.read_executions([snapshot.execution, *executions])
    others = tuple(replace(one, execution=found.get(one.record.execution)) for one in others)
    return replace(
        snapshot,
        locks=locks and replace(locks, in_the_way=others),
        execution_found=found.get(snapshot.execution),
        problems=snapshot.problems + problems,
    )


def _replaced(session: Session, snapshot: JobSnapshot) -> Iterator[ListedObject]:
    """The files of the job's replace list, in key order."""
    if snapshot.ledger is None:
        raise Problem("which replace list counts the ledger knows: name it with --table", USAGE)
    if snapshot.replaced is None:
        raise NotFoundError(
            f"job {snapshot.job_id} has no replace list: it is {snapshot.state}, with"
            f" conflict {snapshot.policy.conflict.value if snapshot.policy else 'unknown'!r}",
            code="NO_REPLACE_LIST",
        )
    try:
        for group in listed_files(session.store, snapshot.directory, snapshot.replaced):
            yield from group
    except JobRefusedError as error:
        if snapshot.state not in ENDED:
            raise
        raise NotFoundError(
            f"the replace list of job {snapshot.job_id} is gone: it is kept until the job"
            f" has ended, for {many(snapshot.replaced.files, 'file')}",
            code="NO_REPLACE_LIST",
        ) from error


def _list_replaced(printer: Printer, snapshot: JobSnapshot, files: Iterator[ListedObject]) -> None:
    documents = ({"key": one.key, "bytes": one.length, "etag": one.etag} for one in files)
    count = _list_files(printer, snapshot, "replaced", documents, lambda one: str(one["key"]))
    printer.summary(f"{many(count, 'file')} that job {snapshot.job_id} replaces: {snapshot.state}")


def _list_files(
    printer: Printer,
    snapshot: JobSnapshot,
    name: str,
    documents: Iterable[dict[str, Any]],
    text: Callable[[dict[str, Any]], str],
) -> int:
    """Print files of the job, as they come, and how many they were."""
    if printer.json:
        about = {"jobId": snapshot.job_id, "state": snapshot.state}
        printer.document({**about, name: list(documents)})
        return 0
    count = 0
    for count, one in enumerate(documents, 1):  # noqa: B007 - read after the loop
        printer.line(f"{size(one['bytes']):>10}  {text(one)}")
    return count
