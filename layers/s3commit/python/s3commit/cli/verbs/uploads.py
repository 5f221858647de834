"""``s3commit uploads``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import click

from s3commit.cli.arguments import DESTINATION, age_option
from s3commit.cli.printer import Column, Printer
from s3commit.cli.rescue.jobs import find_jobs, write_ids
from s3commit.cli.session import Session
from s3commit.cli.text import age, epoch_of, fields, many, size
from s3commit.cli.verb import FAILED, USAGE, Problem, dry_run_option, table_option, verb
from s3commit.core.formats.file_names import owner_of, write_of
from s3commit.core.model.errors import S3CommitError, UploadGoneError
from s3commit.core.model.job import Destination
from s3commit.core.ownership.open_uploads import Ownership, UploadOwners
from s3commit.core.ports.ledger import Ledger


@verb(changes=True)
@click.argument("destination", type=DESTINATION)
@table_option
@click.option("--abort", is_flag=True, help="Abort the uploads that no job can complete.")
@age_option(
    "--older-than",
    default="2d",
    told="Age from which an upload of an unknown job is aborted: 12h, 2d, 1w.",
)
@click.option(
    "--bytes",
    "measured",
    is_flag=True,
    help="Add up the sizes of their parts: one request for each upload.",
)
@dry_run_option
def uploads(
    session: Session,
    printer: Printer,
    *,
    destination: Destination,
    table: str | None,
    abort: bool,
    older_than: int,
    measured: bool,
    dry_run: bool,
) -> None:
    """List open uploads; abort those of ended jobs.

    Lists the uploads below DESTINATION, the oldest first. Open uploads are invisible, and S3
    charges for them. OWNER follows from the job id in the file name:

    \b
      ended      the job has ended; --abort aborts the upload, whatever its age
      under way  the job may still commit it; never aborted
      unknown    no trace of the job, or of when it began, and a directory above
                 it has had jobs; --abort aborts it if it is older than
                 --older-than
      foreign    no job id in the name, or begun before the job of that id, or
                 no directory above it has had a job; never aborted
    """  # noqa: D301 - click wants the backspace
    if dry_run and not abort:
        raise Problem("--dry-run goes with --abort; without it nothing is changed anyway", USAGE)
    found = _find(session, destination, session.ledger(table) if table else None)
    if measured:
        found = _measure(session, destination, found)
    if abort:
        found = _abort(session, destination, found, older_than, dry_run)
    _tell(printer, destination, found)
    _fail_if_any_failed(found)


Upload = dict[str, Any]  # an open upload, as --output json prints it

_DONE = {"would abort": "would be aborted", "would keep": "would be kept"}


def _tell(printer: Printer, destination: Destination, found: list[Upload]) -> None:
    columns = (
        Column("AGE", "ageSeconds", age),
        Column("OWNER", "owner"),
        Column("SIZE", "bytes", _size, right=True, optional=True),
        Column("DONE", "done", optional=True),
        Column("FILE", "key", lambda key: key.removeprefix(destination.prefix)),
    )
    printer.listing({"destination": destination.uri}, "uploads", found, columns)
    owners = Counter(one["owner"] for one in found)
    parts = [f"{owners[owner]} {owner}" for owner in Ownership if owners[owner]]
    done = Counter(one["done"].split(":")[0] for one in found if one["done"])
    each = f": {', '.join(parts)}" if parts else ""
    came = "; " + ", ".join(f"{count} {_DONE.get(what, what)}" for what, count in done.items())
    total = many(len(found), "open upload")
    printer.summary(f"{total} below {destination.uri}{each}{came if done else ''}")


def _size(count: int | None) -> str:
    return "" if count is None else size(count)


def _fail_if_any_failed(found: list[Upload]) -> None:
    failed = [one["done"] for one in found if (one["done"] or "").startswith("failed")]
    if failed:
        raise Problem(
            f"{many(len(failed), 'upload')} could not be aborted, {failed[0]}; run it again", FAILED
        )


def _find(session: Session, destination: Destination, ledger: Ledger | None) -> list[Upload]:
    """Every open upload below the destination, the oldest first.

    Requests: the listings of the uploads, of the job directories and of ``_commits/``; for each job
    of S3A's that was left behind a read of one manifest, which has its files' id; for each job a
    read of the ledger; for one that is not found there, unless it is under way here, three for
    each directory above its files.
    """
    ask = ledger.jobs_with_id if ledger else lambda _job_id: []
    owners = UploadOwners(session.ports(session.store, ledger), destination.bucket, ask)
    left_by_s3a = {
        write
        for job in find_jobs(session, destination, None)[0]
        for write in write_ids(session, job)
    }
    now = session.environment.epoch()
    found = []
    for upload in session.store.list_uploads(destination.bucket, destination.prefix):
        owner, job_id = owners.of(upload), owner_of(upload.key)
        write = write_of(upload.key)
        if write in left_by_s3a:  # of its driver, or until `s3commit rescue` ends it
            owner, job_id = Ownership.UNDER_WAY, write
        found.append(
            {
                **fields(upload, "key", "upload_id", "initiated"),
                "ageSeconds": max(0, int(now - epoch_of(upload.initiated))),
                "owner": owner,
                "jobId": None if owner is Ownership.FOREIGN else job_id,
                "bytes": None,
                "done": None,
            }
        )
    return _in_order(found)


def _measure(session: Session, destination: Destination, found: list[Upload]) -> list[Upload]:
    """The uploads with their bytes; without those that are gone by now."""

    def measured(one: Upload) -> Upload | None:
        try:
            parts = session.store.upload_parts(destination.bucket, one["key"], one["uploadId"])
        except UploadGoneError:
            return None
        return {**one, "bytes": parts.bytes}

    return _in_order(filter(None, session.parallel(measured, found)))


def _abort(
    session: Session, destination: Destination, found: list[Upload], older_than: int, dry_run: bool
) -> list[Upload]:
    """Abort those that may go; each comes back with what was, or would be, done with it.

    An upload may go if its job has ended, or is unknown and the upload is old enough (I5).
    """

    def done_with(one: Upload) -> str:
        is_old = one["owner"] is Ownership.UNKNOWN and one["ageSeconds"] > older_than
        may_go = one["owner"] is Ownership.ENDED or is_old
        if dry_run:
            return "would abort" if may_go else "would keep"
        if not may_go:
            return "kept"
        try:
            session.store.abort_upload(destination.bucket, one["key"], one["uploadId"])
        except S3CommitError as error:
            return f"failed: {error.message}"
        return "aborted"

    return _in_order(session.parallel(lambda one: {**one, "done": done_with(one)}, found))


def _in_order(found: Iterable[Upload]) -> list[Upload]:
    return sorted(found, key=lambda one: (one["initiated"], one["key"]))
