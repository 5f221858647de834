"""The state of a job in words, whether someone has to act, and which command is next."""

import shlex
from typing import Any, Self

from s3commit.cli.job_facts import REQUESTED, JobFacts
from s3commit.cli.render import age, epoch_of
from s3commit.cli.undone import Fate
from s3commit.core.formats.layout import JOB_FILE, REQUEST_FILE
from s3commit.core.model.limits import HOLDER_SECONDS
from s3commit.core.model.outcome import ALREADY_COMMITTED, LISTS_LOST
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.executions import Execution

PATIENCE = 3600  # seconds without a change; only a step that dies again and again takes longer
OPEN_PATIENCE = 86400  # an OPEN job waits for its tasks, which may take their time
REQUEST_PATIENCE = 300  # of an OPEN job's request, with which an execution begins in seconds
_JAR = "s3commit-native"  # the client of Spark's own writers

MEANING: dict[str, str] = {
    JobState.OPEN: "tasks are writing; its commit is not requested yet",
    REQUESTED: "commit or abort was requested; the pipeline works on it",
    JobState.SEALED: "requested; being verified, nothing decided yet; waits an hour at most",
    JobState.COMMITTING: "decided: the files are being made visible; no abort any more",
    JobState.PUBLISHING: "all files are visible; being published",
    JobState.COMMITTED: "ended: all files were made visible",
    JobState.ABORTING: "will not be committed; its uploads are being aborted",
    JobState.ABORTED: "ended: none of its files are or were visible",
    JobState.ROLLING_BACK: "a file is lost: being undone",
    JobState.ROLLED_BACK: "ended: undone, none of its files are visible",
}


# The same of a job whose execution has ended before it.
_STOPPED: dict[str, str] = {
    **dict.fromkeys((JobState.OPEN, JobState.SEALED), "nothing is decided, and no file is visible"),
    JobState.COMMITTING: "its commit is decided, and some files may be visible",
    JobState.PUBLISHING: "all files are visible",
    JobState.ABORTING: "it will not be committed, and some of its uploads may be left",
    JobState.ROLLING_BACK: "a file is lost, and some of its files may be visible",
}


def meaning_of(job: JobFacts, execution: Execution | None) -> str:
    """The meaning of the job's state."""
    state, failure = job.state, job.failure
    if state in _STOPPED and execution is not None and not execution.is_running:
        return f"stopped: its execution is {execution.status}; {_STOPPED[state]}"
    if state == JobState.OPEN and job.request_stands:
        return "commit or abort was requested; no execution has started on it yet"
    if failure is not None and failure.code == ALREADY_COMMITTED:
        return "nothing was added: another job has this idempotency key, and its data is there"
    if failure is not None and failure.code == LISTS_LOST and state in ENDED:
        return "ended: abandoned, its error says which of its files are visible"
    if job.undoes and state == JobState.COMMITTED:
        return f"ended: job {job.undoes} is undone"
    return MEANING[state]


def needs_attention(record: JobRecord, now: float) -> bool:
    """True for a job that has not ended and is silent for longer than it should be.

    A SEALED one that waits says so every minute, and one that does not is soon decided; nothing
    works on one that is silent, and others take its locks.
    """
    if is_orphan(record):
        return True
    limits = {JobState.OPEN: OPEN_PATIENCE, JobState.SEALED: HOLDER_SECONDS}
    return now - epoch_of(record.updated_at) > limits.get(record.state, PATIENCE)


def is_orphan(record: JobRecord) -> bool:
    """True for a job that was requested, of which the ledger names no execution.

    So is one that was removed from its execution (`STALLED`), until another one takes it over.
    """
    return record.state not in {JobState.OPEN, *ENDED} and not record.execution


class Step(str):
    """A next step as people read it; ``command`` is what it says to type, if it says so."""

    command: str

    def __new__(cls, text: str, command: str = "", then: str = "") -> Self:
        """The line of these parts, with a space between them."""
        step = super().__new__(cls, " ".join(filter(None, (text, command, then))))
        step.command = command
        return step


def next_step(
    job: JobFacts,
    execution: Execution | None,
    in_the_way: list[dict[str, Any]],
    now: float,
    has_pipeline: bool | None,
    *,
    key_holder: str,
    fate: Fate | None = None,
) -> list[Step]:
    """The next steps, a line each; the first one says so if there is none.

    ``in_the_way`` are the jobs that this one waits for, as `show` prints them; ``has_pipeline`` is
    None where that is certain, or not known; ``key_holder`` is committed with the job's key;
    ``fate`` is that of a committed job.
    """
    again = f"s3commit {job.requested} {job.name}"
    undecided = job.requested == "commit" and job.state in {JobState.OPEN, JobState.SEALED}
    abort = f"s3commit abort {job.name}"
    give_up = [Step("to abort it:", abort)] if undecided else []
    if job.result is not None or (job.state in ENDED and not job.request_stands):
        return _after_the_end(job, fate or Fate())
    if has_pipeline is False:
        why = (
            f"bucket {job.directory.bucket} has no s3commit pipeline, so this job will never commit"
        )
        return [Step(f"{why}: deploy s3commit for it, or write to a bucket that has it")]
    if {JOB_FILE, REQUEST_FILE} & job.problems.keys() and job.state in {JobState.OPEN, REQUESTED}:
        line = "if the pipeline can't read the document either, it aborts the job: check again"
        return [Step(line), Step("to abort it now:", abort)]
    if not job.request_stands and job.state == JobState.OPEN:
        if key_holder:
            why = f"job {key_holder} already committed its idempotency key, so it can add nothing"
            return [Step(f"{why}: the sweep will end it"), Step("to end it now:", abort)]
        look = f"s3commit commit {job.name} --dry-run"
        return [
            Step("nothing while its driver lives"),
            Step("if the driver died and every task is done:", look),
            Step(
                "if the driver died before its tasks had ended, run the job again; the sweep aborts"
                " this one when it was silent for abandonedHours (by default a day)"
            ),
            Step("to abort it now:", abort),
        ]
    if job.ledger is None:
        named = "name its table with --table, or --name"
        line = f"the ledger knows how far it is: {'deploy an empty one' if job.table else named}"
        return [Step(line)]
    if job.record is None or job.state == JobState.OPEN:
        return [*_not_begun(job, now), Step("to start it:", again), *give_up]
    if is_orphan(job.record):
        return [Step("no execution works on it:", again, "ends it")]
    if execution is not None and not execution.is_running:
        return [*_restart(execution, again), *give_up]
    if in_the_way:
        lines = [Step("nothing: it waits for these jobs, which precede it")]
        for other in in_the_way:
            job_id, status = other["jobId"], other["executionStatus"] or "not known"
            verb = "show" if other["executionRuns"] is not False else "commit"
            command = f"s3commit {verb} {job_id}{job.where}"
            stands = f"job {job_id} is {other['state']}, its execution {status}:"
            lines.append(Step(stands, command))
        return lines
    if needs_attention(job.record, now):
        why = "no progress for too long: if its execution failed,"
        return [Step(why, again, "starts another")]
    return [Step("nothing: its execution is at work")]


def _not_begun(job: JobFacts, now: float) -> list[Step]:
    waited = now - epoch_of(job.requested_at)
    if waited <= REQUEST_PATIENCE:
        why = "says if its request was put aside, or if the bucket has no pipeline"
        return [Step("wait a few seconds;", "s3commit doctor", why)]
    return [
        Step(f"its request has waited {age(waited)}:", "s3commit doctor", "says why"),
        Step("without that cause, if the request was put aside:", "s3commit redrive"),
    ]


def _restart(execution: Execution, again: str) -> list[Step]:
    stopped, continues = f"its execution is {execution.status}", "starts another, which continues"
    if execution.failure is None:
        return [Step(f"{stopped}:", again, continues)]
    why = f"{stopped}, {execution.failure.code}: first remove the cause, as its error says"
    return [Step(why), Step("then:", again, continues)]


def _after_the_end(job: JobFacts, fate: Fate) -> list[Step]:
    destination = job.directory.destination.uri
    typed = shlex.quote(destination)
    if job.failure is not None:
        line = "nothing for this job, it has ended; for its data, follow the error's advice"
        return [Step(line)]
    undo = f"s3commit undo {fate.last} --destination {typed} --dry-run"
    if fate.by:
        revert = [Step("to revert the undo:", undo)] if fate.last else []
        return [Step("nothing: it is undone"), *revert]
    if fate.last:
        return [Step("nothing: its data was brought back"), Step("to undo it again:", undo)]
    undo = f"s3commit undo {job.name} --dry-run"
    if job.undoes:
        return [Step("nothing: it is done"), Step("to revert the undo:", undo)]
    wrong = "if it wrote the wrong data:"
    if fate.overwritten:
        wrong = "later overwrites may have replaced its files; what an undo would still change:"
    lines = [
        Step("nothing: it is done. Its files:", f"s3commit ls {typed} --files {job.job_id}"),
        Step(wrong, undo),
    ]
    if job.spec is not None and job.spec.client.startswith(_JAR):
        line = (
            "if its driver died or stopped waiting before this: a catalog's table lacks new"
            " partitions until MSCK REPAIR TABLE, and a new table is missing from the catalog"
            f" until CREATE TABLE ... LOCATION '{destination.replace('s3:', 's3a:', 1)}'"
        )
        lines.append(Step(line))
    return lines
