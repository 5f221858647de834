"""What a job's state means, and what happens next, in words for whoever was woken up by it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from s3commit.aws.arns import machine_of
from s3commit.cli.codes import advice_on, advice_on_execution
from s3commit.cli.job.snapshot import REQUESTED, JobSnapshot
from s3commit.cli.job.waiting import InTheWay
from s3commit.cli.text import age, epoch_of, many
from s3commit.core.model.job import ALREADY_COMMITTED, AbortRequest, Failure, Outcome
from s3commit.core.model.limits import HOLDER_SECONDS
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.executions import Execution

PATIENCE = 3600  # seconds without a change; no step takes longer, with its retries
OPEN_PATIENCE = 86400  # an OPEN job waits for its tasks, which may take their time
SHOWN_BLOCKERS = 5
_JAR = "s3commit-native"  # the client of Spark's own writers

MEANING: dict[str, str] = {
    JobState.OPEN: "tasks are writing; neither commit nor abort was requested yet",
    REQUESTED: "the driver has asked; the pipeline works on it",
    JobState.SEALED: "requested; being verified, nothing decided yet",
    JobState.COMMITTING: "decided: the files are being made visible",
    JobState.PUBLISHING: "all files are visible; being published",
    JobState.COMMITTED: "ended: all files are visible",
    JobState.ABORTING: "will not be committed; its uploads are being aborted",
    JobState.ABORTED: "ended: none of its files is or was visible",
    JobState.ROLLING_BACK: "a file is lost for good: being undone",
    JobState.ROLLED_BACK: "ended: undone, none of its files is visible",
}

_GOES_ON: dict[str, str] = {
    JobState.SEALED: (
        "it is verified, waits for its destination, and is then decided. An hour at most for the"
        " destination; then it is aborted"
    ),
    JobState.COMMITTING: (
        "it rolls forward until every file is visible. It can not be aborted any more"
    ),
    JobState.PUBLISHING: (
        "files of before are removed if it replaces them; _commits/, _SUCCESS and result.json are"
        " written. No way back from here"
    ),
    JobState.ABORTING: "when its uploads are aborted it is ABORTED, and result.json is written",
    JobState.ROLLING_BACK: (
        "what it made visible is deleted; when none of it is left it is ROLLED_BACK"
    ),
}

# Of all ids in the message the last: a key may look like one.
_ID = re.compile(r"by job ([0-9a-fA-F-]{36});")


def needs_attention(record: JobRecord, now: float) -> bool:
    """Whether a job that has not ended is silent for longer than it should be.

    A SEALED one that waits says so every minute, and one that holds is soon decided; of one that
    does neither others take what it claims, and nobody works on it.
    """
    if is_orphan(record):
        return True
    limits = {JobState.OPEN: OPEN_PATIENCE, JobState.SEALED: HOLDER_SECONDS}
    return now - epoch_of(record.updated_at) > limits.get(record.state, PATIENCE)


def is_orphan(record: JobRecord) -> bool:
    """Whether the job was taken from its execution, and no other one has taken it over."""
    return record.state is JobState.ABORTING and not record.execution


def meaning_of(state: str, other: str | None) -> str:
    """What is true of a job in the state; ``other`` as by `already_by`."""
    if other is not None and state in {JobState.ABORTING, JobState.ABORTED}:
        return f"nothing was added: job {other} has this idempotency key"
    return MEANING[state]


def already_by(failure: Failure | None) -> str | None:
    """The job that was committed with the same idempotency key, where that is the reason."""
    if failure is None or failure.code != ALREADY_COMMITTED:
        return None
    found = _ID.findall(failure.message)
    return str(found[-1]) if found else "another"


def next_step(snapshot: JobSnapshot, now: float) -> list[str]:
    """What happens next and what to do, a sentence or two a line."""
    if snapshot.result is not None:
        return _after_the_end(snapshot)
    if snapshot.problems and snapshot.state in {JobState.OPEN, REQUESTED}:
        return ["the pipeline will refuse the document that can not be read, and abort the job"]
    if snapshot.state == JobState.OPEN and not snapshot.request_stands:
        return _while_open(snapshot)
    if snapshot.state in {JobState.OPEN, REQUESTED}:
        return _before_the_pipeline(snapshot)
    if snapshot.record is None:
        return [_GOES_ON[snapshot.state]]
    return _while_working(snapshot, snapshot.record, now)


def _after_the_end(snapshot: JobSnapshot) -> list[str]:
    lines = []
    name, destination = snapshot.job_id, snapshot.directory.destination.uri
    failure, other = snapshot.failure, already_by(snapshot.failure)
    if snapshot.result is not None and snapshot.result.outcome is Outcome.COMMITTED:
        lines.append(f"nothing, it is done. Its files: s3commit ls {destination} --files {name}")
        if snapshot.spec is not None and snapshot.spec.client.startswith(_JAR):
            lines.append(
                "if its driver died or gave up before this: a catalog's table lacks new partitions"
                " until MSCK REPAIR TABLE, and a table that the job was to create until"
                f" CREATE TABLE ... LOCATION '{destination.replace('s3:', 's3a:', 1)}'"
            )
    elif other is not None:
        lines.append(f"nothing, the data is there: s3commit ls {destination} --files {other}")
    elif failure is None:
        lines.append("nothing, it is over. To have the data, run the job again, as a new job")
    else:
        lines.append("for this job nothing, it is over. To have the data takes a new job:")
        lines.append(advice_on(failure.code).do)
    if snapshot.uploads:
        lines.append(
            f"{many(len(snapshot.uploads), 'upload is', 'uploads are')} still open and invisible;"
            " tidying aborts them, or the bucket's lifecycle rule"
        )
    return lines


def _while_open(snapshot: JobSnapshot) -> list[str]:
    uri = snapshot.directory.uri
    if snapshot.of_s3a:
        return [
            "it waits for its driver, which writes with Hadoop's S3A committer",
            f"if the driver died: s3commit rescue {uri}",
        ]
    return [
        "it waits for its driver to ask for commit or abort",
        f"if the driver died and every task is done: s3commit commit {uri} --dry-run",
        f"if it is to be given up: s3commit abort {uri}",
    ]


def _verb(snapshot: JobSnapshot) -> str:
    """The verb that resumes what was requested."""
    return "abort" if isinstance(snapshot.request, AbortRequest) else "commit"


def _before_the_pipeline(snapshot: JobSnapshot) -> list[str]:
    asked = _verb(snapshot)
    lines = [f"the {asked} was requested, and that stands; the pipeline takes it up within seconds"]
    if snapshot.record is None:
        lines.append(
            f"if it never does, bucket {snapshot.directory.bucket} may have no pipeline, and"
            " nothing else commits a job: s3commit doctor tells"
        )
    if snapshot.record is None and snapshot.ledger is None:
        lines.append("how far it is the ledger knows: name it with --table")
    else:
        lines.append(
            "if not: look at RequestQueue and its dead-letter queue, and the log of"
            f" `dispatch`; s3commit {asked} {snapshot.name} starts an execution"
        )
    return lines


def _while_working(snapshot: JobSnapshot, record: JobRecord, now: float) -> list[str]:
    lines = []
    if snapshot.locks is not None and snapshot.locks.in_the_way:
        lines.append("it waits for its turn, an hour at most; then it is aborted")
        blockers = snapshot.locks.in_the_way
        lines += [_on_blocker(one) for one in blockers[:SHOWN_BLOCKERS]]
        if len(blockers) > SHOWN_BLOCKERS:
            lines.append(f"and {many(len(blockers) - SHOWN_BLOCKERS, 'more job')}")
    else:
        lines.append(_GOES_ON.get(record.state, "result.json is being written; then it is over"))
    goes_on, execution = f"s3commit {_verb(snapshot)} {snapshot.name}", snapshot.execution_found
    if is_orphan(record):
        lines.append(
            "but it was taken from its execution, and nobody works on it:"
            f" {goes_on} --state-machine ARN ends it"
        )
    elif execution is not None and not execution.is_running:
        lines += _after_a_failure(execution, snapshot.name, goes_on)
    elif needs_attention(record, now):
        silent = age(now - epoch_of(record.updated_at))
        lines.append(
            f"but nothing changed for {silent}: look at the execution; if it has failed, {goes_on}"
            " starts another one. It goes on where the ledger says, a repetition does no harm"
        )
    return lines


def _after_a_failure(execution: Execution, name: str, goes_on: str) -> list[str]:
    """What to do where the job's execution is dead, and nobody works on the job."""
    dead = f"but its execution is {execution.status}, and nobody works on it"
    another = f"{goes_on} starts another one, which goes on where the ledger says"
    if execution.failure is None:
        return [f"{dead}: {another}"]
    do = advice_on_execution(execution.failure.code).do.replace("JOB", name)
    return [dead, f"first: {do}", f"then: {another}"]


def _on_blocker(one: InTheWay) -> str:
    """What becomes of a job that is in another one's way, and what to do about it."""
    record, job = one.record, one.record.job_id
    if not one.holds:
        return f"job {job} waits for longer and goes first: s3commit show {job}"
    if one.execution is None or one.execution.is_running:
        dies = "" if one.execution else f". If its execution has died: s3commit commit {job}"
        return f"job {job} is {record.state}: its place is free when it has ended{dies}"
    line = (
        f"job {job} is {record.state} and its execution is {one.execution.status} (why:"
        f" s3commit show {job}): it keeps its place until s3commit commit {job} goes"
        " on with it"
    )
    if record.state is JobState.SEALED:
        given_up = datetime.fromtimestamp(epoch_of(record.updated_at) + HOLDER_SECONDS, UTC)
        line += f", or until {given_up:%H:%M}, when it is given up (STALLED)"
    return line


def console_url(execution: str) -> str | None:
    """The page of an execution in the AWS console, or None for what is no ARN."""
    if not machine_of(execution):
        return None
    fields = execution.split(":")
    partition, region = fields[1], fields[3]
    host = {
        "aws-cn": "console.amazonaws.cn",
        "aws-us-gov": "console.amazonaws-us-gov.com",
    }.get(partition, "console.aws.amazon.com")
    return f"https://{region}.{host}/states/home?region={region}#/v2/executions/details/{execution}"
