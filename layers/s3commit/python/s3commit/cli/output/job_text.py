"""All about one job, as names and values for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from s3commit.cli.codes import CODES, advice_on_execution
from s3commit.cli.job.snapshot import JobSnapshot, Progress
from s3commit.cli.job.waiting import InTheWay, LockStatus
from s3commit.cli.output.advice import console_url, meaning_of, next_step
from s3commit.cli.text import age, amount, epoch_of, many, moment, size
from s3commit.core.formats.locations import location_uris
from s3commit.core.model.conditions import encode_conditions
from s3commit.core.model.job import AbortRequest, CommitRequest, JobSpec, Names
from s3commit.core.model.locks import Claim, LockMode
from s3commit.core.model.states import JobState

Pairs = Iterator[tuple[str, str]]

SHOWN_NODES = 5

_REPLACED: dict[str, str] = {
    JobState.SEALED: "to be removed, if the job is committed, once its own are all visible",
    JobState.COMMITTING: "to be removed once all new ones are visible",
    JobState.PUBLISHING: "being removed",
    JobState.COMMITTED: "removed",
}


def progress_text(progress: Progress) -> str:
    """How much the tasks of a job have written."""
    return (
        f"{many(progress.attempts, 'attempt')} of {many(progress.tasks, 'task')}:"
        f" {many(progress.files, 'file')}, {size(progress.bytes)}"
    )


def job_pairs(snapshot: JobSnapshot, now: float) -> Pairs:
    """What `show` prints; ``now`` in seconds since 1970."""
    yield "job", snapshot.directory.job_id
    yield "destination", snapshot.directory.destination.uri
    yield "state", snapshot.state
    yield "state", meaning_of(snapshot.state, snapshot.failure)
    yield from _history(snapshot, now)
    policy = snapshot.policy
    if policy is not None:
        yield from _policy(policy)
    elif not snapshot.problems:
        yield "conflict", "append, with exact names: there is no job.json, as with Hadoop's S3A"
    yield from _asked(snapshot)
    if snapshot.locks is not None:
        yield from _standing(snapshot.locks, now)
    yield from _outcome(snapshot)
    yield from _execution(snapshot)
    for problem in snapshot.problems:
        yield "problem", problem
    for line in next_step(snapshot, now):
        yield "next", line


def _history(snapshot: JobSnapshot, now: float) -> Pairs:
    spec, record = snapshot.spec, snapshot.record
    created = spec.created_at if spec and spec.created_at else record.created_at if record else ""
    if created:
        client = f" by {spec.client}" if spec and spec.client else ""
        yield "created", f"{moment(created)}{client}"
    if record is not None:
        changed = now - epoch_of(record.updated_at)
        yield "changed", f"{moment(record.updated_at)}, {age(changed)} ago"
        yield "generation", str(record.generation)


def _policy(policy: JobSpec) -> Pairs:
    parts = f", partitioned by {', '.join(policy.partition_by)}" if policy.partition_by else ""
    yield "conflict", f"{policy.conflict.value}, scope {policy.scope.value}{parts}"
    for name, uri in location_uris(policy.locations, policy.destination.bucket).items():
        yield "location", f"{name} at {uri}"
    for name, value in encode_conditions(policy.conditions).items():
        if isinstance(value, dict):
            for column, share in value.items():
                yield "condition", f"{name}.{column} {share:g}"
        else:
            yield "condition", f"{name} {value}"
    if policy.idempotency_key is not None:
        yield "once", f"idempotency key {policy.idempotency_key!r}"
    if policy.names is Names.EXACT:
        yield "names", "exact: the program's own, without the job's id"


def _asked(snapshot: JobSnapshot) -> Pairs:
    request = snapshot.request
    if isinstance(request, AbortRequest):
        yield "request", f"abort: {request.reason or 'no reason given'}"
    elif request is not None:
        yield "request", _counted(request)
    elif not snapshot.request_stands:
        yield "request", "none"
    yield "manifests", many(len(snapshot.manifests), "in S3", "in S3")
    progress = snapshot.progress
    if progress is not None:
        yield "noted", progress_text(progress)
    if snapshot.record is not None and snapshot.record.plan is not None:
        plan = snapshot.record.plan
        units = f" in {many(plan.units, 'unit')}" if plan.units else ""
        yield "plan", f"{amount(plan.files, plan.bytes, plan.rows)}{units}"
    if snapshot.replaced is not None:
        of_before = (
            f"{many(snapshot.replaced.files, 'file')} of before, {size(snapshot.replaced.bytes)}"
        )
        yield "replaces", f"{of_before}: {_REPLACED.get(snapshot.state, 'kept')}"
    more = "" if snapshot.uploads_complete else " or more (too many at the destination to count)"
    yield "open uploads", f"{len(snapshot.uploads)}{more}"


def _counted(request: CommitRequest) -> str:
    if request.attempts is None:
        return "commit, every manifest counts"
    files = sum(attempt.files for attempt in request.attempts)
    total = sum(attempt.bytes for attempt in request.attempts)
    attempts = many(len(request.attempts), "counted attempt")
    return f"commit, {attempts}: {many(files, 'file')}, {size(total)}"


def _standing(locks: LockStatus, now: float) -> Pairs:
    yield from _nodes("holds", locks.holds)
    if locks.since is not None:
        yield "waits", f"since {moment(locks.since)}, {age(now - epoch_of(locks.since))}"
        yield from _nodes("waits", locks.waits)
    for one in locks.in_the_way:
        yield "in the way", _in_the_way(one, now)
    if locks.kept_waiting:
        first, *others = locks.kept_waiting
        yield "keeps waiting", f"{first} and {len(others)} more" if others else first


def _nodes(name: str, claims: Sequence[Claim]) -> Pairs:
    for claim in claims[:SHOWN_NODES]:
        of_key = claim.mode is LockMode.KEY
        yield name, "the idempotency key" if of_key else f"{claim.mode.name.lower()} {claim.node}"
    if len(claims) > SHOWN_NODES:
        yield name, f"and {len(claims) - SHOWN_NODES} more; --output json has them all"


def _in_the_way(one: InTheWay, now: float) -> str:
    state = f"{one.record.state}, unchanged for {age(now - epoch_of(one.record.updated_at))}"
    does = "holds" if one.holds else "waits for"
    execution = f", execution {one.execution.status}" if one.execution else ""
    return f"{one.job_id}: {state}, {does} {one.mode.name.lower()} {one.node}{execution}"


def _outcome(snapshot: JobSnapshot) -> Pairs:
    result, failure = snapshot.result, snapshot.failure
    if result is not None:
        yield "result", f"{result.outcome.value} at {moment(result.finished_at)}"
        if result.decided_at:
            replaced = f", {many(result.replaced, 'file')} of before removed"
            yield (
                "result",
                f"{amount(result.files, result.bytes, result.rows)}"
                f"{replaced if result.replaced else ''}; decided {moment(result.decided_at)}",
            )
    if failure is not None:
        yield "reason", f"{failure.message} [{failure.code}]"
        if failure.code in CODES:
            yield "reason", CODES[failure.code].means


def _execution(snapshot: JobSnapshot) -> Pairs:
    if snapshot.execution:
        status = f" ({snapshot.execution_status})" if snapshot.execution_status else ""
        yield "execution", f"{snapshot.execution}{status}"
    url = console_url(snapshot.execution)
    if url:
        yield "console", url
    failure = snapshot.execution_failure
    if failure is not None:
        named = failure.code in failure.message
        yield "error", failure.message if named else f"{failure.message} [{failure.code}]"
        yield "error", advice_on_execution(failure.code).means
