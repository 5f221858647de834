"""``s3commit status``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import Any

import click

from s3commit.aws import env
from s3commit.cli.advice import needs_attention
from s3commit.cli.human import age, epoch_of, many
from s3commit.cli.render import Printer
from s3commit.cli.session import Session
from s3commit.cli.verb import USAGE, Problem, table_option, verb
from s3commit.core.model import JobRecord
from s3commit.core.ports import Ledger
from s3commit.core.states import ENDED, JobState
from s3commit.writer.environment import timestamp

UNDER_WAY = tuple(state for state in JobState if state not in ENDED)


@dataclass(frozen=True, slots=True)
class _Line:
    record: JobRecord
    attention: bool
    seconds: int  # since the record's last change


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
    """Show the jobs under way.

    What needs attention comes first, then the oldest. AGE is the time since the job's last
    change of state. A "!" marks a job that is silent for longer than it should be: an hour at
    work, a day while its tasks write. `s3commit show JOB` says what it waits for and what to do.
    """
    if not table:
        raise Problem(f"status reads the ledger: name its table with --table or {env.TABLE}", USAGE)
    wanted = _wanted(states, ended_too)
    lines, more = _read(session.ledger(table), wanted, limit, timestamp(session.environment))
    if printer.json:
        printer.document(_document(table, lines, more))
    else:
        _print(printer, lines, more)


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
    return sorted(lines, key=lambda line: (not line.attention, line.record.updated_at)), more


def _line(record: JobRecord, now: float) -> _Line:
    attention = record.state not in ENDED and needs_attention(record, now)
    return _Line(record, attention, int(now - epoch_of(record.updated_at)))


def _document(table: str, lines: list[_Line], more: bool) -> dict[str, Any]:
    return {
        "table": table,
        "counts": Counter(line.record.state.value for line in lines),
        "complete": not more,
        "jobs": [
            {
                "jobId": line.record.job_id,
                "state": line.record.state.value,
                "attention": line.attention,
                "ageSeconds": line.seconds,
                "createdAt": line.record.created_at,
                "updatedAt": line.record.updated_at,
                "destination": line.record.destination.uri,
                "execution": line.record.execution or None,
                "code": line.record.failure.code if line.record.failure else None,
            }
            for line in lines
        ],
    }


def _print(printer: Printer, lines: list[_Line], more: bool) -> None:
    if lines:
        printer.table(
            ["!", "STATE", "AGE", "JOB", "DESTINATION"],
            [
                [
                    "!" if line.attention else "",
                    line.record.state.value,
                    age(line.seconds),
                    line.record.job_id,
                    line.record.destination.uri,
                ]
                for line in lines
            ],
        )
    printer.note(_summary(lines))
    if more:
        printer.note("there are more: raise --limit, or name a --state")


def _summary(lines: list[_Line]) -> str:
    counts = Counter(line.record.state.value for line in lines)
    if not lines:
        return "no jobs"
    each = ", ".join(f"{count} {state}" for state, count in counts.items())
    alarming = sum(line.attention for line in lines)
    attention = f"; {many(alarming, 'needs', 'need')} attention (!)" if alarming else ""
    return f"{many(len(lines), 'job')}: {each}{attention}"
