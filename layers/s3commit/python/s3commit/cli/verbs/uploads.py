"""``s3commit uploads``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import click

from s3commit.cli.arguments import AGE, DESTINATION
from s3commit.cli.printer import Column, Printer
from s3commit.cli.rescue.jobs import find_jobs, write_ids
from s3commit.cli.session import Session
from s3commit.cli.text import age, epoch_of, fields, many, size
from s3commit.cli.verb import FAILED, USAGE, Problem, dry_run_option, table_option, verb
from s3commit.core.formats.layout import JobDirectory, owner_of, write_of
from s3commit.core.model.errors import S3CommitError, UploadGoneError
from s3commit.core.model.job import Destination
from s3commit.core.ownership.open_uploads import Ownership, UploadOwners
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import OpenUpload


@verb(changes=True)
@click.argument("destination", type=DESTINATION)
@table_option
@click.option("--abort", is_flag=True, help="Abort the uploads that no job can complete.")
@click.option(
    "--older-than",
    type=AGE,
    default="2d",
    show_default=True,
    help="Age from which an upload of an unknown job is aborted: 12h, 2d, 1w.",
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
      unknown    no trace of the job, and a directory above it has had jobs;
                 --abort aborts it if it is older than --older-than
      foreign    no job id in the name, or no directory above it has had a job;
                 never aborted
    """  # noqa: D301 - click wants the backspace
    if dry_run and not abort:
        raise Problem("--dry-run goes with --abort; without it nothing is changed anyway", USAGE)
    found = find_leftovers(session, destination, session.ledger(table) if table else None)
    if measured:
        found = measure(session, destination, found)
    if abort:
        found = abort_leftovers(session, destination, found, older_than, dry_run)
    _tell(printer, destination, found)
    _fail_if_any_failed(found)


_DONE = {"would abort": "would be aborted", "would keep": "would be kept"}


def _tell(printer: Printer, destination: Destination, found: list[Leftover]) -> None:
    columns = (
        Column("AGE", "ageSeconds", age),
        Column("OWNER", "owner"),
        Column("SIZE", "bytes", _size, right=True, optional=True),
        Column("DONE", "done", optional=True),
        Column("FILE", "key", lambda key: key.removeprefix(destination.prefix)),
    )
    about = {"destination": destination.uri}
    printer.listing(about, "uploads", [_document(leftover) for leftover in found], columns)
    printer.summary(_summary(destination, found))


def _size(measured: int | None) -> str:
    return "" if measured is None else size(measured)


def _document(leftover: Leftover) -> dict[str, Any]:
    return {
        **fields(leftover.upload, "key", "upload_id", "initiated"),
        "ageSeconds": leftover.seconds,
        **fields(leftover, "owner", "job_id", "bytes", "done"),
    }


def _summary(destination: Destination, found: list[Leftover]) -> str:
    owners = Counter(leftover.owner for leftover in found)
    parts = [f"{owners[owner]} {owner.value}" for owner in Ownership if owners[owner]]
    done = Counter((leftover.done or "").split(":")[0] for leftover in found if leftover.done)
    each = f": {', '.join(parts)}" if parts else ""
    came = "; " + ", ".join(f"{count} {_DONE.get(what, what)}" for what, count in done.items())
    return f"{many(len(found), 'open upload')} below {destination.uri}{each}{came if done else ''}"


def _fail_if_any_failed(found: list[Leftover]) -> None:
    failed = [leftover.done for leftover in found if (leftover.done or "").startswith("failed")]
    if failed:
        raise Problem(
            f"{many(len(failed), 'upload')} could not be aborted, {failed[0]}; run it again", FAILED
        )


@dataclass(frozen=True, slots=True)
class Leftover:
    """An open upload. ``done`` is what was done with it: aborted, kept, or failed and why."""

    upload: OpenUpload
    owner: Ownership
    job_id: str | None
    seconds: int
    bytes: int | None = None
    done: str | None = None

    def may_go(self, older_than: int) -> bool:
        """Whether it may be aborted: its job has ended, or is unknown and it is old enough."""
        return self.owner is Ownership.ENDED or (
            self.owner is Ownership.UNKNOWN and self.seconds > older_than
        )


@dataclass(frozen=True, slots=True)
class _Documents:
    """Which documents lie in a job directory."""

    job: bool
    request: bool
    result: bool


def _owners(session: Session, bucket: str, ledger: Ledger | None) -> UploadOwners:
    """The rule, by the ledger if one is named, and by what lies in S3."""
    store = session.store

    def is_there(key: str) -> bool:
        found = next(iter(store.list(bucket, key)), None)
        return found is not None and found.key == key

    def look(directory: JobDirectory) -> _Documents | None:
        if next(iter(store.list(bucket, directory.prefix)), None) is None:
            return None
        documents = (directory.job, directory.request, directory.result)
        return _Documents(*map(is_there, documents))

    ask = ledger.jobs_with_id if ledger else lambda _job_id: []
    return UploadOwners(session.ports(store, ledger), bucket, ask, look)


def find_leftovers(
    session: Session, destination: Destination, ledger: Ledger | None
) -> list[Leftover]:
    """Every open upload below the destination, the oldest first.

    Requests: the listings of the uploads, of the job directories and of ``_commits/``; for each job
    of S3A's that was left behind a read of one manifest, which has its files' id; for each job a
    read of the ledger; for one that is not found there, unless it is under way here, three for
    each directory above its files.
    """
    owners = _owners(session, destination.bucket, ledger)
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
        if owner is Ownership.FOREIGN:
            job_id = None
        seconds = max(0, int(now - epoch_of(upload.initiated)))
        found.append(Leftover(upload, owner, job_id, seconds))
    return _in_order(found)


def measure(
    session: Session, destination: Destination, found: Iterable[Leftover]
) -> list[Leftover]:
    """The leftovers with their bytes; without those that are gone by now."""

    def one(leftover: Leftover) -> Leftover | None:
        upload = leftover.upload
        try:
            parts = session.survey.parts(destination.bucket, upload.key, upload.upload_id)
        except UploadGoneError:
            return None
        return replace(leftover, bytes=parts.bytes)

    return _in_order(filter(None, session.parallel(one, found)))


def abort_leftovers(
    session: Session,
    destination: Destination,
    found: Iterable[Leftover],
    older_than: int,
    dry_run: bool,
) -> list[Leftover]:
    """Abort those that may go; each comes back with what was, or would be, done with it."""

    def one(leftover: Leftover) -> Leftover:
        may_go, upload = leftover.may_go(older_than), leftover.upload
        if dry_run:
            return replace(leftover, done="would abort" if may_go else "would keep")
        if not may_go:
            return replace(leftover, done="kept")
        try:
            session.store.abort_upload(destination.bucket, upload.key, upload.upload_id)
        except S3CommitError as error:
            return replace(leftover, done=f"failed: {error.message}")
        return replace(leftover, done="aborted")

    return _in_order(session.parallel(one, found))


def _in_order(found: Iterable[Leftover]) -> list[Leftover]:
    return sorted(found, key=lambda leftover: (leftover.upload.initiated, leftover.upload.key))
