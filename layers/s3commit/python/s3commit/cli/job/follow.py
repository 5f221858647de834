"""Following a job until it ends: each change of what can be seen of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from s3commit.cli.job.document import already_by, meaning_of
from s3commit.cli.job.snapshot import REQUESTED, JobSnapshot, read_outcome, read_progress
from s3commit.cli.job.waiting import refs_in_the_way
from s3commit.cli.printer import Printer, lines
from s3commit.cli.session import Session
from s3commit.cli.text import age, amount, fields, moment
from s3commit.core.model.errors import OutcomeUnknownError, TransientError
from s3commit.core.model.job import JobResult, Outcome, job_id_of
from s3commit.core.model.states import JobState
from s3commit.writer.environment import timestamp
from s3commit.writer.requests import Patience

COUNT_EVERY = 30.0  # seconds; a job of many tasks has megabytes of attempts in the ledger


def follow(
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
            yield {"at": timestamp(session.environment), **seen}, result
        if result is not None:
            return
        if not patience.pause():
            raise OutcomeUnknownError(
                f"job {snapshot.job_id} has not ended after {age(timeout)}, it is"
                f" {seen['state'] or 'unseen'}{trouble} and continues; see: s3commit show"
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


def print_change(printer: Printer, change: dict[str, Any]) -> None:
    """Print a change on one line."""
    if printer.json:
        printer.record(change)
        return
    text = meaning_of(change["state"], change["alreadyCommittedBy"])
    if change["waitsFor"]:
        text = f"waits for {', '.join(change['waitsFor'])}"
    if change["noted"] and change["noted"]["tasks"]:
        text = f"{text}: {', '.join(lines(change['noted']))}"
    if change["outcome"] == Outcome.COMMITTED:
        text = f"{text}: {amount(change['files'], change['bytes'], change['rows'])}"
    printer.line(f"{moment(change['at'])}  {change['state']:<12}  {text}")
