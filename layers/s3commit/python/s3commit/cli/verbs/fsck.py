"""``s3commit fsck``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import click

from s3commit.aws import env
from s3commit.aws.arns import machine_of
from s3commit.cli.arguments import Parsed
from s3commit.cli.printer import Column, Printer
from s3commit.cli.session import Session
from s3commit.cli.text import amount, fields, many, some
from s3commit.cli.verb import (
    FAILED,
    USAGE,
    Problem,
    state_machine_option,
    table_option,
    verb,
)
from s3commit.core.check import Report, check
from s3commit.core.formats.layout import JobDirectory, parse_destination
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Destination
from s3commit.core.model.record import JobRecord
from s3commit.core.rebuild import Rebuilder, rebuild

_BUCKET: Final = re.compile(r"s3[an]?://([a-z0-9][a-z0-9.\-]{1,61}[a-z0-9])/?")


def _parse_place(text: str) -> Destination:
    """A destination, or a whole bucket, whose prefix is empty."""
    bucket = _BUCKET.fullmatch(text)
    return Destination(bucket[1], "") if bucket else parse_destination(text)


@verb()
@click.argument("destination", type=Parsed("destination", _parse_place))
@table_option
@state_machine_option
@click.option("--rebuild-ledger", is_flag=True, help="Make the ledger's lost records again.")
def fsck(
    session: Session,
    printer: Printer,
    *,
    destination: Destination,
    table: str | None,
    machine: str | None,
    rebuild_ledger: bool,
) -> None:
    """Compare a table with what was committed to it.

    Reports the files of commit manifests that are gone or changed, and the jobs without a result,
    each with what mends it. Changes nothing.

    --rebuild-ledger makes the records of the jobs below DESTINATION again from what is in S3,
    after the table was lost, and starts an execution for each job that was requested. It takes a
    whole bucket, s3://BUCKET/, too.

    Exit code 1: something is gone, changed or unreadable.
    """
    if rebuild_ledger:
        if not table:
            raise Problem(f"name the ledger's table: --table or {env.TABLE}", USAGE)
        hands = Rebuilder(
            session.ports(session.store, session.ledger(table)), _Executions(session, machine)
        )
        _rebuild(hands, printer, destination)
        return
    if not destination.prefix:
        raise Problem(f"{destination.uri} is a whole bucket: name a destination in it", USAGE)
    ledger = session.ledger(table) if table else None
    report = check(session.store, ledger, session.parallel, destination)
    _print(printer, report)
    if not report.is_sound:
        raise click.exceptions.Exit(FAILED)


_FILES = (
    Column("WHAT", "what"),
    Column("FILE", "key"),
    Column("JOB", "jobId"),
    Column("WHAT MENDS IT", "mend"),
)
_JOBS = (
    Column("JOB WITHOUT A RESULT", "jobId"),
    Column("STATE", "state", lambda state: state or "-"),
    Column("REQUESTED", "requested", lambda requested: "yes" if requested else "no"),
    Column("WHAT MENDS IT", "mend"),
)


def _print(printer: Printer, report: Report) -> None:
    findings = [fields(one, "what", "key", "job_id", "mend") for one in report.findings]
    open_jobs = [
        {"jobId": one.directory.job_id, **fields(one, "state", "requested", "mend")}
        for one in report.open_jobs
    ]
    if printer.json:
        counts = fields(report, "jobs", "files", "bytes", "replaced", "foreign", "examples")
        sound = {"destination": report.destination.uri, "sound": report.is_sound}
        printer.document({**sound, **counts, "findings": findings, "openJobs": open_jobs})
        return
    for columns, documents in ((_FILES, findings), (_JOBS, open_jobs)):
        if documents:
            printer.table(columns, documents)
    whole = amount(report.files, report.bytes, None)
    verdict = "sound" if report.is_sound else f"{many(len(findings), 'finding')}, beside"
    printer.line(f"{verdict}: {many(report.jobs, 'job')}, {whole}, as committed")
    if report.replaced:
        printer.line(f"{many(report.replaced, 'file')} replaced by later jobs")
    if report.foreign:
        more = " …" if report.foreign > len(report.examples) else ""
        names = some(report.examples)
        printer.line(f"{many(report.foreign, 'file')} of no commit manifest: {names}{more}")


def _rebuild(hands: Rebuilder, printer: Printer, destination: Destination) -> None:
    made = left = 0
    for one in rebuild(hands, destination):
        made += one.made
        left += one.is_left
        document = {
            "jobId": one.directory.job_id,
            "directory": one.directory.uri,
            **fields(one, "state", "made", "attempts", "locks", "started", "running", "failed"),
            "why": one.why,
        }
        if printer.json:
            printer.record(document)
        elif one.made or one.is_left or one.started:
            what = one.why or ("started" if one.started else "made")
            printer.line(f"{one.directory.uri}: {one.state or '-'}, {what}")
    printer.summary(f"{many(made, 'record')} made, {left} left to look at")
    if left:
        raise click.exceptions.Exit(FAILED)


@dataclass(frozen=True, slots=True)
class _Executions:
    """Implements `JobExecutions`; ``machine`` is for jobs whose record names no execution."""

    session: Session
    machine: str | None

    def is_running(self, directory: JobDirectory, record: JobRecord) -> bool:
        """See `JobExecutions.is_running`."""
        machine, execution = machine_of(record.execution), record.execution
        if machine is None:
            # As the pipeline names the first one, which may not have come to the ledger yet.
            machine, execution = self.machine, directory.ref
        if machine is None:
            return False
        return self.session.executions(machine).describe(execution).is_running

    def start(self, directory: JobDirectory, record: JobRecord) -> bool:
        """See `JobExecutions.start`. The hour: one that failed before its work is tried again."""
        machine = self.machine or machine_of(record.execution)
        if machine is None:
            raise InvalidInputError(
                f"to continue job {directory.job_id} name the state machine with --state-machine or"
                f" {env.STATE_MACHINE}",
                code="NO_STATE_MACHINE",
            )
        now = datetime.fromtimestamp(self.session.environment.epoch(), UTC)
        name = f"{directory.ref}-rebuild-{record.generation}-{now:%Y%m%d%H}"
        return self.session.executions(machine).start(name, directory) is not None
