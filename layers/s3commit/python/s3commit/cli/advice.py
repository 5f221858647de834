"""What a job's state means, and what happens next, in words for whoever was woken up by it."""

from __future__ import annotations

from s3commit.cli.facts import REQUESTED, JobFacts
from s3commit.cli.human import age, epoch_of, many
from s3commit.core.model import AbortRequest, JobRecord, Outcome
from s3commit.core.states import JobState

PATIENCE = 3600  # seconds without a change; the longest regular wait is that for a lock, an hour
OPEN_PATIENCE = 86400  # an OPEN job waits for its tasks, which may take their time

MEANING: dict[str, str] = {
    JobState.OPEN: "tasks are writing; nothing was asked for yet",
    REQUESTED: "the driver has asked; the pipeline works on it",
    JobState.SEALED: "asked for; being verified, nothing decided yet",
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
    JobState.PUBLISHING: "_commits/, _SUCCESS and result.json are written. No way back from here",
    JobState.ABORTING: "when its uploads are aborted it is ABORTED, and result.json is written",
    JobState.ROLLING_BACK: (
        "what it made visible is deleted; when none of it is left it is ROLLED_BACK"
    ),
}


def needs_attention(record: JobRecord, now: float) -> bool:
    """Whether a job that has not ended is silent for longer than it should be."""
    limit = OPEN_PATIENCE if record.state is JobState.OPEN else PATIENCE
    return now - epoch_of(record.updated_at) > limit


def next_step(facts: JobFacts, now: float) -> list[str]:
    """What happens next and what to do, a sentence or two a line."""
    if facts.result is not None:
        return _after_the_end(facts)
    if facts.problems and facts.state in {JobState.OPEN, REQUESTED}:
        return ["the pipeline will refuse the document that can not be read, and abort the job"]
    if facts.state == JobState.OPEN and not facts.request_stands:
        return _while_open(facts)
    if facts.state in {JobState.OPEN, REQUESTED}:
        return _before_the_pipeline(facts)
    if facts.record is None:
        return [_GOES_ON[facts.state]]
    return _while_working(facts.record, now)


def _after_the_end(facts: JobFacts) -> list[str]:
    lines = []
    name = facts.place.job_id
    if facts.result is not None and facts.result.outcome is Outcome.COMMITTED:
        destination = facts.place.destination.uri
        lines.append(f"nothing, it is done. Its files: s3commit ls {destination} --files {name}")
    else:
        lines.append("nothing, it is over. To have the data, run the job again, as a new job")
    if facts.uploads:
        lines.append(
            f"{many(len(facts.uploads), 'upload is', 'uploads are')} still open and invisible;"
            " tidying aborts them. If they stay:"
            f" s3commit uploads {facts.place.destination.uri} --abort"
        )
    return lines


def _while_open(facts: JobFacts) -> list[str]:
    uri = facts.located.uri
    return [
        "it waits for its driver to ask for commit or abort",
        f"if the driver died and every task is done: s3commit commit {uri} --dry-run",
        f"if it is to be given up: s3commit abort {uri}",
    ]


def _before_the_pipeline(facts: JobFacts) -> list[str]:
    asked = "abort" if isinstance(facts.request, AbortRequest) else "commit"
    lines = [f"the {asked} was asked for and stands; the pipeline takes it up within seconds"]
    if facts.record is None and facts.located.ledger is None:
        lines.append("how far it is the ledger knows: name it with --table")
    else:
        lines.append(
            "if not: look at RequestQueue and its dead-letter queue, and the log of"
            " dispatch_requests"
        )
    return lines


def _while_working(record: JobRecord, now: float) -> list[str]:
    if record.state not in _GOES_ON:
        return ["result.json is being written; then it is over"]
    lines = [_GOES_ON[record.state]]
    if needs_attention(record, now):
        silent = age(now - epoch_of(record.updated_at))
        lines.append(
            f"but nothing changed for {silent}: look at the execution; if it has failed, redrive"
            " it there. It goes on where the ledger says, a repetition does no harm"
        )
    return lines


def console_url(execution: str) -> str | None:
    """The page of an execution in the AWS console, or None for what is no ARN."""
    fields = execution.split(":")
    if len(fields) < 8 or fields[0] != "arn" or fields[5] != "execution":
        return None
    partition, region = fields[1], fields[3]
    host = {
        "aws-cn": "console.amazonaws.cn",
        "aws-us-gov": "console.amazonaws-us-gov.com",
    }.get(partition, "console.aws.amazon.com")
    return f"https://{region}.{host}/states/home?region={region}#/v2/executions/details/{execution}"
