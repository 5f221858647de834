"""``s3commit show --follow``: a line for each change of a job until it ends."""

from collections.abc import Callable
from typing import Any

from s3commit.cli.advice import meaning_of, next_step
from s3commit.cli.job_facts import JobFacts, blockers
from s3commit.cli.render import age, fields, moment
from s3commit.cli.session import Session
from s3commit.core.documents.result_json import JobResult
from s3commit.core.model.amounts import amount, many
from s3commit.core.model.errors import OutcomeUnknownError, TransientError
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from s3commit.core.ports.executions import Execution
from s3commit.writer.requests import Patience

COUNT_EVERY = 30.0  # seconds; a job of many tasks has megabytes of attempts in the ledger
STARTING = 20.0  # seconds until a new execution works on its job, at most
COUNTS = ("files", "bytes", "rows")


def follow(session: Session, look: Callable[[], JobFacts], timeout: int) -> JobResult:
    """Print each change until the job has its result.

    Raises `OutcomeUnknownError` if its execution has died, and after ``timeout`` seconds.
    """
    patience = Patience(session.environment, timeout)
    seen: dict[str, Any] = {"state": "unseen", "noted": None}
    counted, looked, again, is_last = 0.0, 0.0, f"status{session.where}", False
    at, execution = ("", ""), None  # of the job when it was looked at last
    dead_since: float | None = None  # seconds; of that execution, if it has ended
    while True:
        trouble = ""
        try:
            job = look()
            again = f"show {job.name}"
            now, where = session.epoch(), (job.state, job.execution)
            dead_since = dead_since if where == at else None
            # It may just have ended its job, or another, of `s3commit commit`, be starting.
            stopped = dead_since is not None and now - dead_since >= STARTING
            if job.result is None and (where != at or dead_since or now - looked >= COUNT_EVERY):
                at, looked = where, now
                execution = session.read_executions([job.execution])[0].get(job.execution)
                is_dead = execution is not None and not execution.is_running
                dead_since = (dead_since or now) if is_dead else None
            known = execution if stopped or dead_since is None else None
            change = {**_change(session, job, known), "noted": seen["noted"]}
            if job.state != JobState.OPEN:
                change["noted"] = None
            elif session.epoch() - counted >= COUNT_EVERY:
                counted = session.epoch()  # also if it fails: a throttled table gets its pause
                change["noted"] = noted_attempts(job)
            if change != seen:
                seen = change
                session.out.line({"at": session.clock.now(), **change}, _sentence(session, change))
            if job.result is not None:
                return job.result
            if job.header and job.state == JobState.COMMITTED:  # its documents were deleted
                head, ended = job.header, job.header.decided_at
                counts = (head.files, head.bytes, head.rows)
                return JobResult(job.job_id, Outcome.COMMITTED, None, *counts, ended, ended)
            if execution and dead_since and stopped:
                steps = next_step(job, execution, [], session.epoch(), None, key_holder="")
                says = f"the job is {job.state} and stopped; see: s3commit {again}"
                raise OutcomeUnknownError("; ".join((says, *steps)))
        except TransientError as error:  # the next look may go through
            trouble = f" ({error.message})"
        if is_last:
            raise OutcomeUnknownError(
                f"the job has not ended after {age(timeout)}: it is {seen['state']}{trouble}"
                f"{' and continues' if execution and not dead_since else ''}; see: s3commit {again}"
            )
        is_last = not patience.pause()


def _change(session: Session, job: JobFacts, execution: Execution | None) -> dict[str, Any]:
    others = blockers(job.ledger, job.record) if job.result is None else []
    return {
        "jobId": job.job_id,
        "state": job.state,
        "means": meaning_of(job, execution),
        "waitsFor": [one.job_id for one in others],
        "error": job.failure and fields(job.failure, "code", "message"),
        **fields(job.result, "outcome", *COUNTS),
    }


def _sentence(session: Session, change: dict[str, Any]) -> str:
    text, noted = change["means"], change["noted"]
    if change["waitsFor"]:
        text = f"waits for {', '.join(change['waitsFor'])}"
    elif noted:
        counts = amount(noted["files"], noted["bytes"], None)
        text = f"{text}: {many(noted['tasks'], 'task')} done, {counts}"
    elif change["outcome"] == Outcome.COMMITTED:
        text = f"{text}: {amount(change['files'], change['bytes'], change['rows'])}"
    return f"{moment(session.clock.now())}  {change['state']:<12}  {text}"


def noted_attempts(job: JobFacts) -> dict[str, int] | None:
    """Count the attempts whose manifests the ledger has noted; None if there are none.

    A job of many tasks has megabytes of them.
    """
    attempts = list(job.ledger.attempts(job.directory.ref)) if job.ledger and job.record else []
    counts = {
        "attempts": len(attempts),
        "tasks": len({attempt.task_id for attempt in attempts}),
        "files": sum(attempt.files for attempt in attempts),
        "bytes": sum(attempt.bytes for attempt in attempts),
    }
    return counts if attempts else None
