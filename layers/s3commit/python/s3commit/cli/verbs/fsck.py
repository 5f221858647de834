"""``s3commit fsck``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from s3commit.aws import env
from s3commit.cli.arguments import Parsed
from s3commit.cli.fsck_ports import connect
from s3commit.cli.output.fsck import Teller, tell_rebuilt
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.text import many
from s3commit.cli.verb import (
    FAILED,
    UNKNOWN,
    USAGE,
    Problem,
    dry_run_option,
    state_machine_option,
    table_option,
    verb,
)
from s3commit.core.formats.layout import parse_destination
from s3commit.core.fsck.check import check
from s3commit.core.fsck.findings import Repair, decode_plan, encode_plan
from s3commit.core.fsck.ports import Fsck
from s3commit.core.fsck.rebuild import rebuild
from s3commit.core.fsck.repair import UNKNOWN as NOT_KNOWN
from s3commit.core.fsck.repair import repair
from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.model.job import Destination

_BUCKET: Final = re.compile(r"s3[an]?://([a-z0-9][a-z0-9.\-]{1,61}[a-z0-9])/?")


def _parse_reach(text: str) -> Destination:
    """A destination, or a whole bucket, whose prefix is empty."""
    bucket = _BUCKET.fullmatch(text)
    return Destination(bucket[1], "") if bucket else parse_destination(text)


@verb(changes=True)
@click.argument("destination", type=Parsed("destination", _parse_reach))
@table_option
@state_machine_option
@click.option(
    "--plan",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the repairs there; with --repair, do those that it names.",
)
@click.option("--repair", "repairing", is_flag=True, help="Repair what is found.")
@click.option("--rebuild-ledger", is_flag=True, help="Make the ledger's lost records again.")
@dry_run_option
def fsck(
    session: Session,
    printer: Printer,
    *,
    destination: Destination,
    table: str | None,
    machine: str | None,
    plan: Path | None,
    repairing: bool,
    rebuild_ledger: bool,
    dry_run: bool,
) -> None:
    """Check a destination against the ledger; repair.

    Compares the ledger's records, the commit manifests, the open uploads and the objects at
    DESTINATION, and says what does not fit. Changes nothing without --repair, never touches a job
    that has not ended, and nothing that is not provably a job's. Each repair is conditional, and
    is done only if a new check finds it too, so a plan may be old, and repeating does no harm.

    --rebuild-ledger makes the records of the jobs below DESTINATION again from what is in S3,
    after the table was lost, and starts an execution for each job that was requested. It takes a
    whole bucket, s3://BUCKET/, too.

    Exit codes: 0 clean, or all repaired; 1 findings are left; 4 a repair's outcome is unknown.
    """
    if not table:
        raise Problem(f"fsck needs the ledger: --table or {env.TABLE}", USAGE)
    if not destination.prefix and not rebuild_ledger:
        raise Problem(
            f"{destination.uri} is a whole bucket, and a table is checked by its destination, such"
            f" as {destination.uri}sales/; --rebuild-ledger takes a bucket",
            USAGE,
        )
    if rebuild_ledger and (repairing or plan):
        raise Problem("--rebuild-ledger goes without --plan and --repair", USAGE)
    if repairing and dry_run:
        raise Problem("--repair and --dry-run exclude each other; without both it looks", USAGE)
    connected = connect(session, table, machine, printer.note)
    if rebuild_ledger:
        _rebuild(connected, printer, destination, dry_run)
    elif repairing:
        chosen = _read_plan(plan, destination) if plan else None
        _repair(connected, printer, destination, chosen)
    else:
        _check(connected, printer, destination, plan)


def _check(fsck: Fsck, printer: Printer, destination: Destination, plan: Path | None) -> None:
    teller = Teller(printer, destination)

    def repairs() -> Iterator[Repair]:
        for finding in check(fsck, destination, teller.tally):
            teller.tell(finding)
            yield from finding.repairs

    if plan is None:
        for _ in repairs():
            pass
    else:
        with _file_failures(plan):
            # Whole or not at all: half a plan looks like one.
            partial = plan.with_name(plan.name + ".part")
            with partial.open("wb") as file:
                file.writelines(encode_plan(destination, repairs()))
            partial.replace(plan)
    teller.sum_up(repairing=False)
    if plan is not None and teller.left:
        printer.note(
            f"wrote {plan}; to do it: s3commit fsck {destination.uri} --repair --plan {plan}"
        )
    _exit_if(teller.left)


def _repair(
    fsck: Fsck, printer: Printer, destination: Destination, chosen: list[Repair] | None
) -> None:
    teller = Teller(printer, destination)
    unknown = 0
    with _stopped(lambda: many(teller.repaired, "finding") + " repaired"):
        for one in repair(fsck, destination, chosen, teller.tally):
            teller.tell(one.finding, one)
            unknown += one.outcomes.count(NOT_KNOWN)
    teller.sum_up(repairing=True)
    if unknown:
        raise Problem(
            f"of {many(unknown, 'repair')} nobody knows whether it was done; repeating the command"
            " is harmless",
            UNKNOWN,
        )
    _exit_if(teller.left)


def _exit_if(left: int) -> None:
    if left:
        raise click.exceptions.Exit(FAILED)


@contextmanager
def _stopped(how_far: Callable[[], str]) -> Iterator[None]:
    """An error in the middle is not one before which nothing has changed: say how far it came."""
    try:
        yield
    except S3CommitError as error:
        raise Problem(
            f"{error.message} [{error.code}]; stopped there, with {how_far()}; when that is mended,"
            " repeating the command is harmless",
            FAILED,
        ) from error


def _rebuild(fsck: Fsck, printer: Printer, destination: Destination, dry_run: bool) -> None:
    jobs = made = left = 0
    with _stopped(lambda: f"{many(jobs, 'job directory', 'job directories')} told"):
        for one in rebuild(fsck, destination, dry_run=dry_run):
            tell_rebuilt(printer, one, dry_run=dry_run)
            jobs += 1
            made += one.made
            left += one.is_left
    word = "would be made" if dry_run else "made"
    printer.note(
        f"{many(jobs, 'job directory', 'job directories')} below {destination.uri}:"
        f" {many(made, 'record')} {word}, {left} left to look at"
    )
    _exit_if(left and not dry_run)


def _read_plan(plan: Path, destination: Destination) -> list[Repair]:
    with _file_failures(plan):
        body = plan.read_bytes()
    try:
        return decode_plan(body, destination)
    except InvalidInputError as error:
        raise Problem(f"{plan}: {error.message}", USAGE) from error


@contextmanager
def _file_failures(plan: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Problem(f"{plan}: {error.strerror or error}", USAGE) from error
