"""``s3commit watch``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import click

from s3commit.cli.arguments import AGE, JOB, JobName, destination_option
from s3commit.cli.job.locate import Located, locate
from s3commit.cli.job.snapshot import (
    REQUESTED,
    Progress,
    read_outcome,
    read_progress,
    read_snapshot,
)
from s3commit.cli.job.waiting import first_in_the_way
from s3commit.cli.output.advice import already_by, meaning_of
from s3commit.cli.output.job_text import progress_text
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.text import age, amount, moment
from s3commit.cli.verb import table_option, verb
from s3commit.core.model.errors import JobFailedError, OutcomeUnknownError, TransientError
from s3commit.core.model.job import Destination, JobResult, Outcome, job_id_of
from s3commit.core.model.states import JobState
from s3commit.writer.environment import timestamp
from s3commit.writer.requests import Patience

COUNT_EVERY = 30.0  # seconds; a job of many tasks has megabytes of attempts in the ledger


@dataclass(frozen=True, slots=True)
class _Seen:
    """A state, for whom the job waits in it, and the result if that is it.

    ``progress`` counts the attempts whose manifests have arrived, while the job is OPEN.
    """

    state: str
    waits_for: tuple[str, ...] = ()
    result: JobResult | None = None
    progress: Progress | None = None


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
    """Follow a job until it ends.

    Prints a line for each change of state, for each job that blocks it, and, at most twice a
    minute, for what its tasks have written. Exits with 0 if the job is committed, or if another
    job with its idempotency key was; with 3 if it is aborted or rolled back; with 4 if it has not
    ended within --timeout. The job continues in that case.

    JOB is a job id or the s3:// URI of a job directory. Without a table, only the states OPEN and
    REQUESTED and the outcome are visible.
    """
    located = locate(session, job, table, destination)
    read_snapshot(session, located)  # a job that is nowhere is an error now, not after the timeout
    for seen in _follow(session, located, timeout):
        at = timestamp(session.environment)
        if printer.json:
            printer.record(_document(located, at, seen))
        else:
            printer.line(_line(at, seen))
        _fail_if_not_committed(seen.result)


def _follow(session: Session, located: Located, timeout: int) -> Iterator[_Seen]:
    """Each change, the last of which is the end."""
    patience = Patience(session.environment, timeout)
    seen, trouble, counted = _Seen(""), "", 0.0
    while True:
        try:
            found, trouble = _look(session, located), ""
            if found.state == JobState.OPEN:
                found = replace(found, progress=seen.progress)
                now = session.environment.epoch()
                if now - counted >= COUNT_EVERY:
                    counted = now  # also if it fails: a table that is throttled gets its pause
                    found = replace(found, progress=read_progress(located))
        except TransientError as error:  # the next look may go through
            found, trouble = seen, f" ({error.message})"
        if found != seen:
            seen = found
            yield seen
        if seen.result is not None:
            return
        if not patience.pause():
            raise OutcomeUnknownError(
                f"job {located.directory.job_id} has not ended after {age(timeout)}, it is"
                f" {seen.state or 'unseen'}{trouble} and goes on; see: s3commit show {located.name}"
            )


def _look(session: Session, located: Located) -> _Seen:
    result = read_outcome(session, located)
    if result is not None:
        return _Seen(result.outcome.value, result=result)
    record = located.record()
    if record is not None and located.ledger is not None:
        now = timestamp(session.environment)
        waits = first_in_the_way(map, located.ledger, record, now)
        return _Seen(record.state.value, tuple(map(job_id_of, waits[1])) if waits else ())
    stands = session.store.head(located.directory.bucket, located.directory.request) is not None
    return _Seen(REQUESTED if stands else JobState.OPEN.value)


def _line(at: str, seen: _Seen) -> str:
    result = seen.result
    told = meaning_of(seen.state, result.error if result else None)
    if seen.waits_for:
        told = f"waits for {', '.join(seen.waits_for)}"
    if seen.progress is not None and seen.progress.tasks:
        told = f"{told}: {progress_text(seen.progress)}"
    if result is not None and result.outcome is Outcome.COMMITTED:
        told = f"{told}: {amount(result.files, result.bytes, result.rows)}"
    return f"{moment(at)}  {seen.state:<12}  {told}"


def _document(located: Located, at: str, seen: _Seen) -> dict[str, Any]:
    result = seen.result
    error = result.error if result else None
    return {
        "at": at,
        "jobId": located.directory.job_id,
        "state": seen.state,
        "waitsFor": list(seen.waits_for),
        "noted": asdict(seen.progress) if seen.progress else None,
        "outcome": result.outcome.value if result else None,
        "error": {"code": error.code, "message": error.message} if error else None,
        "alreadyCommittedBy": already_by(error),
        "files": result.files if result else None,
        "bytes": result.bytes if result else None,
        "rows": result.rows if result else None,
    }


def _fail_if_not_committed(result: JobResult | None) -> None:
    if result is None or result.outcome is Outcome.COMMITTED or result.already_committed:
        return
    why = result.error.message if result.error else "no reason given"
    raise JobFailedError(
        f"job {result.job_id} ended {result.outcome}, none of its files is visible: {why}",
        code=result.error.code if result.error else None,
    )
