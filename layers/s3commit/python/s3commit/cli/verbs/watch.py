"""``s3commit watch``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from s3commit.cli.advice import already_by, meaning_of
from s3commit.cli.arguments import AGE, JOB, JobName, destination_option
from s3commit.cli.facts import REQUESTED, read_facts, read_outcome
from s3commit.cli.human import age, amount, moment
from s3commit.cli.locate import Located, locate
from s3commit.cli.render import Printer
from s3commit.cli.session import Session
from s3commit.cli.verb import table_option, verb
from s3commit.core.errors import JobFailedError, OutcomeUnknownError, TransientError
from s3commit.core.model import Destination, JobResult, Outcome
from s3commit.core.states import JobState
from s3commit.writer.asking import Patience
from s3commit.writer.environment import timestamp


@dataclass(frozen=True, slots=True)
class _Change:
    """A state, when it was first seen, and the result if that is it."""

    at: str
    state: str
    result: JobResult | None = None


@verb()
@click.argument("job", type=JOB)
@table_option
@destination_option
@click.option(
    "--timeout", type=AGE, default="15m", show_default=True, help="How long to wait: 90s, 15m, 2h."
)
def watch(
    session: Session,
    printer: Printer,
    *,
    job: JobName,
    table: str | None,
    destination: Destination | None,
    timeout: int,
) -> None:
    """Follow a job until it has ended.

    Prints a line for each state it is seen in. Exits 0 if it is committed, or adds nothing since
    another job with its idempotency key was; 3 if it is aborted or rolled back, 4 if it has not
    ended in time: it goes on then, watched or not.

    JOB is a job id or the s3:// URI of a job directory; without a table only what S3 tells is
    seen: OPEN, REQUESTED, and the end.
    """
    located = locate(session, job, table, destination)
    read_facts(session, located)  # a job that is nowhere is an error now, not after the timeout
    for change in _follow(session, located, timeout):
        if printer.json:
            printer.record(_document(located, change))
        else:
            printer.line(_line(change))
        _fail_if_not_committed(change)


def _follow(session: Session, located: Located, timeout: int) -> Iterator[_Change]:
    patience = Patience(session.environment, timeout)
    seen = trouble = ""
    while True:
        try:
            result = read_outcome(session, located)
            state = result.outcome.value if result else _state(session, located)
        except TransientError as error:  # the next look may go through
            result, state, trouble = None, seen, f" ({error.message})"
        if result is not None or state != seen:
            seen = state
            yield _Change(timestamp(session.environment), state, result)
        if result is not None:
            return
        if not patience.pause():
            raise OutcomeUnknownError(
                f"job {located.place.job_id} has not ended after {age(timeout)}, it is"
                f" {seen or 'unseen'}{trouble} and goes on; see: s3commit show {located.name}"
            )


def _state(session: Session, located: Located) -> str:
    record = located.record()
    if record is not None:
        return record.state.value
    stands = session.store.head(located.place.bucket, located.place.request) is not None
    return REQUESTED if stands else JobState.OPEN.value


def _line(change: _Change) -> str:
    result = change.result
    told = meaning_of(change.state, result.error if result else None)
    if result is not None and result.outcome is Outcome.COMMITTED:
        told = f"{told}: {amount(result.files, result.bytes, result.rows)}"
    return f"{moment(change.at)}  {change.state:<12}  {told}"


def _document(located: Located, change: _Change) -> dict[str, Any]:
    result = change.result
    error = result.error if result else None
    return {
        "at": change.at,
        "jobId": located.place.job_id,
        "state": change.state,
        "outcome": result.outcome.value if result else None,
        "error": {"code": error.code, "message": error.message} if error else None,
        "alreadyCommittedBy": already_by(error),
        "files": result.files if result else None,
        "bytes": result.bytes if result else None,
        "rows": result.rows if result else None,
    }


def _fail_if_not_committed(change: _Change) -> None:
    result = change.result
    if result is None or result.outcome is Outcome.COMMITTED or result.already_committed:
        return
    why = result.error.message if result.error else "no reason given"
    raise JobFailedError(
        f"job {result.job_id} ended {result.outcome}, none of its files is visible: {why}",
        code=result.error.code if result.error else None,
    )
