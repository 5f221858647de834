"""``s3commit watch``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from s3commit.cli.arguments import age_option
from s3commit.cli.job.snapshot import (
    REQUESTED,
    JobSnapshot,
    on_job,
    read_outcome,
    read_progress,
)
from s3commit.cli.job.waiting import refs_in_the_way
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
from s3commit.writer.requests import Patience, require_committed

COUNT_EVERY = 30.0  # seconds; a job of many tasks has megabytes of attempts in the ledger


@verb()
@on_job()
@age_option("--timeout", default="15m", told="How long to wait: 90s, 15m, 2h.")
def watch(session: Session, printer: Printer, *, snapshot: JobSnapshot, timeout: int) -> None:
    """Follow a job until it ends.

    Prints a line for each change of state, for each job that blocks it, and, at most twice a
    minute, for what its tasks have written. Exits with 0 if the job is committed, or if another
    job with its idempotency key was; with 3 if it is aborted or rolled back; with 4 if it has not
    ended within --timeout. The job continues in that case.

    JOB is a job id or the s3:// URI of a job directory. Without a table, only the states OPEN and
    REQUESTED and the outcome are visible.
    """
    for seen, result in _follow(session, snapshot, timeout):
        document = {"at": timestamp(session.environment), **seen}
        if printer.json:
            printer.record(document)
        else:
            printer.line(_line(document))
        if result is not None:
            require_committed(result)


def _follow(
    session: Session, snapshot: JobSnapshot, timeout: int
) -> Iterator[tuple[dict[str, Any], JobResult | None]]:
    """Each change, the last of which is the end: with the job's result."""
    patience = Patience(session.environment, timeout)
    seen: dict[str, Any] = {"state": "", "noted": None}
    counted, result = 0.0, None
    while True:
        found, trouble = seen, ""
        try:
            result = read_outcome(session, snapshot.directory)
            found = {**_look(session, snapshot, result), "noted": None}
            if found["state"] == JobState.OPEN:
                found["noted"] = seen["noted"]
                now = session.environment.epoch()
                if now - counted >= COUNT_EVERY:
                    counted = now  # also if it fails: a table that is throttled gets its pause
                    found["noted"] = read_progress(snapshot)
        except TransientError as error:  # the next look may go through
            found, trouble = seen, f" ({error.message})"
        if found != seen:
            seen = found
            yield seen, result
        if result is not None:
            return
        if not patience.pause():
            raise OutcomeUnknownError(
                f"job {snapshot.job_id} has not ended after {age(timeout)}, it is"
                f" {seen['state'] or 'unseen'}{trouble} and goes on; see: s3commit show"
                f" {snapshot.name}"
            )


def _look(session: Session, snapshot: JobSnapshot, result: JobResult | None) -> dict[str, Any]:
    """The job's state, for whom it waits in it, and the result if that is it."""
    directory, error = snapshot.directory, result.error if result else None
    waits: tuple[str, ...] = ()
    record = None if result else snapshot.read_record()
    if result is not None:
        state = result.outcome.value
    elif record is not None and snapshot.ledger is not None:
        state = record.state.value
        waits = refs_in_the_way(map, snapshot.ledger, record, timestamp(session.environment))
    else:
        stands = session.store.head(directory.bucket, directory.request) is not None
        state = REQUESTED if stands else JobState.OPEN.value
    return {
        "jobId": directory.job_id,
        "state": state,
        "waitsFor": list(map(job_id_of, waits)),
        "error": error and fields(error, "code", "message"),
        "alreadyCommittedBy": already_by(error),
        **fields(result, "outcome", "files", "bytes", "rows"),
    }


def _line(seen: dict[str, Any]) -> str:
    told = meaning_of(seen["state"], seen["alreadyCommittedBy"])
    if seen["waitsFor"]:
        told = f"waits for {', '.join(seen['waitsFor'])}"
    if seen["noted"] and seen["noted"]["tasks"]:
        told = f"{told}: {progress_text(seen['noted'])}"
    if seen["outcome"] == Outcome.COMMITTED:
        told = f"{told}: {amount(seen['files'], seen['bytes'], seen['rows'])}"
    return f"{moment(seen['at'])}  {seen['state']:<12}  {told}"
