"""``s3commit status``."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any

import click

from s3commit.aws import env
from s3commit.cli.job.document import needs_attention
from s3commit.cli.job.waiting import refs_in_the_way
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
    ledger = session.ledger(table)
    now = timestamp(session.environment)
    records, more = _read(ledger, _wanted(states, ended_too), limit, now)
    waits = _read_waits(session, ledger, records, now)
    executions, problems = _read_executions(session, ledger, records, waits)
    jobs = [_document(record, waits, executions, epoch_of(now)) for record in records]
    jobs.sort(key=lambda job: (not job["attention"], job["updatedAt"]))
    counts = Counter(job["state"] for job in jobs)
    about = {"table": table, "counts": counts, "complete": not more}
    printer.listing(about, "jobs", jobs, _COLUMNS)
    printer.summary(_summary(jobs, counts))
    if more:
        printer.summary("there are more: raise --limit, or name a --state")
    for problem in problems:
        printer.note(problem)


def _wanted(states: tuple[str, ...], ended_too: bool) -> tuple[JobState, ...]:
    if states:
        return tuple(JobState(state.upper()) for state in dict.fromkeys(states))
    return tuple(JobState) if ended_too else UNDER_WAY


Waits = dict[str, tuple[str, ...]]  # by a job's ref the refs of those in its way


def _read(
    ledger: Ledger, states: tuple[JobState, ...], limit: int, now: str
) -> tuple[list[JobRecord], bool]:
    """The records, and whether there are more."""
    found = [list(islice(ledger.jobs_in(state, before=now), limit + 1)) for state in states]
    records = [record for of_state in found for record in of_state[:limit]]
    return records, any(len(of_state) > limit for of_state in found)


def _read_waits(session: Session, ledger: Ledger, records: list[JobRecord], now: str) -> Waits:
    """For whom each job waits."""

    def look(record: JobRecord) -> tuple[str, tuple[str, ...]]:
        return record.ref, refs_in_the_way(map, ledger, record, now)

    return dict(session.parallel(look, records))


def _read_executions(
    session: Session, ledger: Ledger, records: list[JobRecord], waits: Waits
) -> tuple[dict[str, Execution], tuple[str, ...]]:
    """The executions by the refs of their jobs, and what went wrong with asking.

    Those of the jobs in the way, and of those at work that were silent for the longest time.
    """
    known = {record.ref: record for record in records}
    names = sorted({name for in_the_way in waits.values() for name in in_the_way})
    others = [one for name in names if (one := known.get(name) or ledger.job(name))]
    at_work = [one for one in records if one.state not in {*ENDED, JobState.OPEN}]
    at_work.sort(key=lambda one: one.updated_at)
    by_ref = {one.ref: one.execution for one in (*others, *at_work[:LOOKED_AT])}
    found, problems = session.read_executions(by_ref.values())
    return {ref: found[arn] for ref, arn in by_ref.items() if arn in found}, problems


def _document(
    record: JobRecord, waits: Waits, executions: dict[str, Execution], now: float
) -> dict[str, Any]:
    execution = executions.get(record.ref)
    failed = _failure_of(execution)
    names = waits[record.ref]
    dead = [name for name in names if name in executions and not executions[name].is_running]
    silent = record.state not in ENDED and needs_attention(record, now)
    return {
        **fields(record, "job_id", "state", "created_at", "updated_at"),
        "attention": silent or failed is not None,
        "ageSeconds": int(now - epoch_of(record.updated_at)),
        "waitsSeconds": int(now - epoch_of(record.turn.since)) if names else None,
        "waitsFor": list(map(job_id_of, names)),
        "waitsForDead": list(map(job_id_of, dead)),
        "destination": record.destination.uri,
        "execution": record.execution or None,
        "executionStatus": execution.status if execution else None,
        "executionFailed": failed,
        "code": record.failure.code if record.failure else None,
    }


def _failure_of(execution: Execution | None) -> str | None:
    """Why the execution is dead, in a word or two; None if it is not known to be."""
    if execution is None or execution.is_running or execution.status == "SUCCEEDED":
        return None  # one that succeeded meanwhile has ended the job
    return execution.failure.code if execution.failure else execution.status


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


def _summary(jobs: list[dict[str, Any]], counts: Counter[str]) -> str:
    if not jobs:
        return "no jobs"
    each = ", ".join(f"{count} {state}" for state, count in counts.items())
    alarming = sum(job["attention"] for job in jobs)
    attention = f"; {many(alarming, 'needs', 'need')} attention (!)" if alarming else ""
    waiting = sum(bool(job["waitsFor"]) for job in jobs)
    waits = f"; {many(waiting, 'waits', 'wait')} for others" if waiting else ""
    return f"{many(len(jobs), 'job')}: {each}{waits}{attention}"
