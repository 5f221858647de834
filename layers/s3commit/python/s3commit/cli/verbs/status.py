"""``s3commit status``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import click

from s3commit.aws import env
from s3commit.cli.executions import read_executions
from s3commit.cli.job.waiting import first_in_the_way
from s3commit.cli.output.advice import needs_attention
from s3commit.cli.printer import Column, Printer
from s3commit.cli.session import Session
from s3commit.cli.text import age, epoch_of, fields, many
from s3commit.cli.verb import USAGE, Problem, table_option, verb
from s3commit.core.model.job import job_id_of
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.executions import Execution
from s3commit.core.ports.ledger import Ledger
from s3commit.writer.environment import timestamp

LOOKED_AT = 50  # executions of jobs at work; Step Functions answers some ten a second for long
UNDER_WAY = tuple(state for state in JobState if state not in ENDED)


@dataclass(frozen=True, slots=True)
class _Line:
    record: JobRecord
    attention: bool
    seconds: int  # since the record's last change
    waits: int | None = None  # seconds
    waits_for: tuple[str, ...] = ()  # refs of jobs
    dead: tuple[str, ...] = ()  # of these jobs those whose execution is dead
    execution: Execution | None = None  # if it was looked at

    @property
    def failed(self) -> str:
        """Why the job's execution is dead, in a word or two; empty if it is not known to be."""
        found = self.execution
        if found is None or found.is_running or found.status == "SUCCEEDED":
            return ""  # one that succeeded meanwhile has ended the job
        return found.failure.code if found.failure else found.status


@verb()
@table_option
@click.option("--all", "ended_too", is_flag=True, help="Also the jobs that have ended.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in JobState], case_sensitive=False),
    metavar="STATE",
    help="Only jobs in this state; may be repeated.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Jobs of each state at most, the oldest ones.",
)
def status(
    session: Session,
    printer: Printer,
    *,
    table: str | None,
    ended_too: bool,
    states: tuple[str, ...],
    limit: int,
) -> None:
    """List the jobs that have not ended.

    Jobs that need attention come first, then the oldest. AGE is the time since the job's last
    change of state, or since its last sign of life while it waits for its destination. WAITS FOR
    has the time it has waited and the job that blocks it. EXECUTION FAILED has the error code. A
    "!" marks a job whose execution is dead, and a job that has been silent for too long: 40
    minutes in SEALED, an hour in later states, a day while its tasks write. Run `s3commit show
    JOB` for the next step.
    """
    if not table:
        raise Problem(f"status reads the ledger: name its table with --table or {env.TABLE}", USAGE)
    wanted = _wanted(states, ended_too)
    now = timestamp(session.environment)
    lines, more = _read(session.ledger(table), wanted, limit, now)
    lines = _with_waits(session, session.ledger(table), lines, now)
    lines, problems = _with_dead(session, session.ledger(table), lines)
    _print(printer, table, lines, more)
    for problem in problems:
        printer.note(problem)


def _wanted(states: tuple[str, ...], ended_too: bool) -> tuple[JobState, ...]:
    if states:
        return tuple(JobState(state.upper()) for state in dict.fromkeys(states))
    return tuple(JobState) if ended_too else UNDER_WAY


def _read(
    ledger: Ledger, states: tuple[JobState, ...], limit: int, now: str
) -> tuple[list[_Line], bool]:
    lines: list[_Line] = []
    more = False
    for state in states:
        found = list(islice(ledger.jobs_in(state, before=now), limit + 1))
        more = more or len(found) > limit
        lines += [_line(record, epoch_of(now)) for record in found[:limit]]
    return _in_order(lines), more


def _line(record: JobRecord, now: float) -> _Line:
    attention = record.state not in ENDED and needs_attention(record, now)
    return _Line(record, attention, int(now - epoch_of(record.updated_at)))


def _with_waits(session: Session, ledger: Ledger, lines: list[_Line], now: str) -> list[_Line]:
    """The lines with whom each job waits for."""

    def look(record: JobRecord) -> tuple[str, tuple[str, tuple[str, ...]] | None]:
        return record.ref, first_in_the_way(map, ledger, record, now)

    found = dict(session.parallel(look, [line.record for line in lines]))
    return [_with_wait(line, found[line.record.ref], epoch_of(now)) for line in lines]


def _with_wait(line: _Line, found: tuple[str, tuple[str, ...]] | None, now: float) -> _Line:
    if found is None:
        return line
    since, names = found
    return replace(line, waits=int(now - epoch_of(since)), waits_for=names)


def _with_dead(
    session: Session, ledger: Ledger, lines: list[_Line]
) -> tuple[list[_Line], tuple[str, ...]]:
    """The lines with executions looked at, and what went wrong with it.

    Those of the jobs in the way, and of those at work that were silent for the longest time.
    """
    records = {line.record.ref: line.record for line in lines}
    names = sorted({name for line in lines for name in line.waits_for})
    others = [one for name in names if (one := records.get(name) or ledger.job(name))]
    at_work = [
        line.record
        for line in lines
        if line.record.state not in ENDED and line.record.state is not JobState.OPEN
    ]
    known = {one.ref: one.execution for one in (*others, *at_work[:LOOKED_AT])}
    found, problems = read_executions(session, known.values())
    executions = {name: found[arn] for name, arn in known.items() if arn in found}
    dead = {name for name, one in executions.items() if not one.is_running}
    marked = [_marked(line, executions.get(line.record.ref), dead) for line in lines]
    return _in_order(marked), problems


def _marked(line: _Line, execution: Execution | None, dead: set[str]) -> _Line:
    line = replace(line, execution=execution)
    return replace(
        line,
        attention=line.attention or bool(line.failed),
        dead=tuple(name for name in line.waits_for if name in dead),
    )


def _in_order(lines: list[_Line]) -> list[_Line]:
    return sorted(lines, key=lambda line: (not line.attention, line.record.updated_at))


def _document(line: _Line) -> dict[str, Any]:
    record = line.record
    return {
        **fields(record, "job_id", "state", "created_at", "updated_at"),
        "attention": line.attention,
        "ageSeconds": line.seconds,
        "waitsSeconds": line.waits,
        "waitsFor": [job_id_of(ref) for ref in line.waits_for],
        "waitsForDead": [job_id_of(ref) for ref in line.dead],
        "destination": record.destination.uri,
        "execution": record.execution or None,
        "executionStatus": line.execution.status if line.execution else None,
        "executionFailed": line.failed or None,
        "code": record.failure.code if record.failure else None,
    }


def _waits(job: dict[str, Any]) -> str:
    if job["waitsSeconds"] is None:
        return ""
    first, *others = job["waitsForDead"] or job["waitsFor"]
    dead = " (its execution is dead)" if job["waitsForDead"] else ""
    more = f" and {len(others)} more" if others else ""
    return f"{age(job['waitsSeconds'])} for {first}{more}{dead}"


_COLUMNS = (
    Column("!", "attention", lambda needed: "!" if needed else ""),
    Column("STATE", "state"),
    Column("AGE", "ageSeconds", age),
    Column("JOB", "jobId"),
    Column("DESTINATION", "destination"),
    Column("EXECUTION FAILED", "executionFailed", optional=True),
    Column("WAITS FOR", text=_waits, optional=True),
)


def _print(printer: Printer, table: str, lines: list[_Line], more: bool) -> None:
    counts = Counter(line.record.state for line in lines)
    about = {"table": table, "counts": counts, "complete": not more}
    printer.listing(about, "jobs", list(map(_document, lines)), _COLUMNS)
    printer.summary(_summary(lines))
    if more:
        printer.summary("there are more: raise --limit, or name a --state")


def _summary(lines: list[_Line]) -> str:
    counts = Counter(line.record.state.value for line in lines)
    if not lines:
        return "no jobs"
    each = ", ".join(f"{count} {state}" for state, count in counts.items())
    alarming = sum(line.attention for line in lines)
    attention = f"; {many(alarming, 'needs', 'need')} attention (!)" if alarming else ""
    waiting = sum(bool(line.waits_for) for line in lines)
    waits = f"; {many(waiting, 'waits', 'wait')} for others" if waiting else ""
    return f"{many(len(lines), 'job')}: {each}{waits}{attention}"
