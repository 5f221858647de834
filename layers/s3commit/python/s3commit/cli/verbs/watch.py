"""``s3commit watch``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import click

from s3commit.cli.arguments import AGE
from s3commit.cli.job.locate import Located, on_job
from s3commit.cli.job.snapshot import (
    REQUESTED,
    Progress,
    read_outcome,
    read_progress,
    read_snapshot,
    require_data,
)
from s3commit.cli.job.waiting import first_in_the_way
from s3commit.cli.output.advice import already_by, meaning_of
from s3commit.cli.output.job_text import progress_text
from s3commit.cli.printer import Printer
from s3commit.cli.session import Session
from s3commit.cli.text import age, amount, fields, moment
from s3commit.cli.verb import verb
from s3commit.core.model.errors import OutcomeUnknownError, TransientError
from s3commit.core.model.job import JobResult, Outcome, job_id_of
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
@on_job()
@click.option(
    "--timeout", type=AGE, default="15m", show_default=True, help="How long to wait: 90s, 15m, 2h."
)
def watch(session: Session, printer: Printer, *, located: Located, timeout: int) -> None:
    """Follow a job until it ends.

    Prints a line for each change of state, for each job that blocks it, and, at most twice a
    minute, for what its tasks have written. Exits with 0 if the job is committed, or if another
    job with its idempotency key was; with 3 if it is aborted or rolled back; with 4 if it has not
    ended within --timeout. The job continues in that case.

    JOB is a job id or the s3:// URI of a job directory. Without a table, only the states OPEN and
    REQUESTED and the outcome are visible.
    """
    read_snapshot(session, located)  # a job that is nowhere is an error now, not after the timeout
    for seen in _follow(session, located, timeout):
        document = _document(located, timestamp(session.environment), seen)
        if printer.json:
            printer.record(document)
        else:
            printer.line(_line(document))
        if seen.result is not None:
            require_data(seen.result)


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
    result = read_outcome(session, located.directory)
    if result is not None:
        return _Seen(result.outcome.value, result=result)
    record = located.record()
    if record is not None and located.ledger is not None:
        now = timestamp(session.environment)
        waits = first_in_the_way(map, located.ledger, record, now)
        return _Seen(record.state.value, tuple(map(job_id_of, waits[1])) if waits else ())
    stands = session.store.head(located.directory.bucket, located.directory.request) is not None
    return _Seen(REQUESTED if stands else JobState.OPEN.value)


def _line(seen: dict[str, Any]) -> str:
    told = meaning_of(seen["state"], seen["alreadyCommittedBy"])
    if seen["waitsFor"]:
        told = f"waits for {', '.join(seen['waitsFor'])}"
    if seen["noted"] and seen["noted"]["tasks"]:
        told = f"{told}: {progress_text(seen['noted'])}"
    if seen["outcome"] == Outcome.COMMITTED:
        told = f"{told}: {amount(seen['files'], seen['bytes'], seen['rows'])}"
    return f"{moment(seen['at'])}  {seen['state']:<12}  {told}"


def _document(located: Located, at: str, seen: _Seen) -> dict[str, Any]:
    result = seen.result
    error = result.error if result else None
    return {
        "at": at,
        "jobId": located.directory.job_id,
        **fields(seen, "state", "waits_for"),
        "noted": seen.progress and asdict(seen.progress),
        "error": error and fields(error, "code", "message"),
        "alreadyCommittedBy": already_by(error),
        **fields(result, "outcome", "files", "bytes", "rows"),
    }
