"""``s3commit uploads``."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import click

from s3commit.cli.arguments import AGE, DESTINATION
from s3commit.cli.leftovers import Leftover, abort_leftovers, find_leftovers, measure
from s3commit.cli.printer import Column, Printer
from s3commit.cli.session import Session
from s3commit.cli.text import age, fields, many, size
from s3commit.cli.verb import FAILED, USAGE, Problem, dry_run_option, table_option, verb
from s3commit.core.model.job import Destination
from s3commit.core.ownership.open_uploads import Ownership


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
    if abort and dry_run:
        found = [_planned(leftover, older_than) for leftover in found]
    elif abort:
        found = abort_leftovers(session, destination, found, older_than)
    _tell(printer, destination, found)
    _fail_if_any_failed(found)


_DONE = {"would abort": "would be aborted", "would keep": "would be kept"}


def _planned(leftover: Leftover, older_than: int) -> Leftover:
    return replace(leftover, done="would abort" if leftover.may_go(older_than) else "would keep")


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
