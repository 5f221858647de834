"""All about one job, as names and values for people: the document of `job_json` in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from s3commit.cli.codes import CODES
from s3commit.cli.output.advice import meaning_of
from s3commit.cli.text import age, amount, epoch_of, many, moment, size
from s3commit.core.model.locks import LockMode
from s3commit.core.model.states import JobState

Pairs = Iterator[tuple[str, str]]

SHOWN_NODES = 5

_REPLACED: dict[str, str] = {
    JobState.SEALED: "to be removed, if the job is committed, once its own are all visible",
    JobState.COMMITTING: "to be removed once all new ones are visible",
    JobState.PUBLISHING: "being removed",
    JobState.COMMITTED: "removed",
}


def progress_text(noted: dict[str, Any]) -> str:
    """How much the tasks of a job have written."""
    return (
        f"{many(noted['attempts'], 'attempt')} of {many(noted['tasks'], 'task')}:"
        f" {many(noted['files'], 'file')}, {size(noted['bytes'])}"
    )


def job_pairs(job: dict[str, Any], now: float) -> Pairs:
    """What `show` prints of a job's document; ``now`` in seconds since 1970."""
    yield "job", job["jobId"]
    yield "destination", job["destination"]
    yield "state", job["state"]
    yield "state", meaning_of(job["state"], job["alreadyCommittedBy"])
    if job["createdAt"]:
        client = f" by {job['client']}" if job["client"] else ""
        yield "created", f"{moment(job['createdAt'])}{client}"
    if job["inLedger"]:
        ago = age(now - epoch_of(job["updatedAt"]))
        yield "changed", f"{moment(job['updatedAt'])}, {ago} ago"
        yield "generation", str(job["generation"])
    yield from _policy(job)
    yield from _asked(job)
    if job["locks"]:
        yield from _locks(job["locks"])
    yield from _outcome(job)
    yield from _execution(job)
    for name, lines in (("problem", job["problems"]), ("next", job["next"])):
        for line in lines:
            yield name, line


def _policy(job: dict[str, Any]) -> Pairs:
    if job["conflict"] is None:
        if not job["problems"]:
            yield "conflict", "append, with exact names: there is no job.json, as with Hadoop's S3A"
        return
    columns = job["partitionBy"]
    parts = f", partitioned by {', '.join(columns)}" if columns else ""
    yield "conflict", f"{job['conflict']}, scope {job['scope']}{parts}"
    for name, value in (job["conditions"] or {}).items():
        if isinstance(value, dict):
            for column, share in value.items():
                yield "condition", f"{name}.{column} {share:g}"
        else:
            yield "condition", f"{name} {value}"
    if job["idempotencyKey"] is not None:
        yield "once", f"idempotency key {job['idempotencyKey']!r}"
    if job["names"] == "exact":
        yield "names", "exact: the program's own, without the job's id"


def _asked(job: dict[str, Any]) -> Pairs:
    if job["request"]:
        yield "request", _requested(job["request"])
    elif not job["requestStands"]:
        yield "request", "none"
    yield "manifests", f"{job['manifests']} in S3"
    if job["noted"]:
        yield "noted", progress_text(job["noted"])
    plan, replaced = job["plan"], job["replaced"]
    if plan:
        units = f" in {many(plan['units'], 'unit')}" if plan["units"] else ""
        yield "plan", f"{amount(plan['files'], plan['bytes'], plan['rows'])}{units}"
    if replaced:
        of_before = f"{many(replaced['files'], 'file')} of before, {size(replaced['bytes'])}"
        yield "replaces", f"{of_before}: {_REPLACED.get(job['state'], 'kept')}"
    complete = job["openUploadsComplete"]
    more = "" if complete else " or more (too many at the destination to count)"
    yield "open uploads", f"{job['openUploads']}{more}"


def _requested(request: dict[str, Any]) -> str:
    if request["action"] == "abort":
        return f"abort: {request['reason'] or 'no reason given'}"
    if request["attempts"] is None:
        return "commit, every manifest counts"
    attempts = many(request["attempts"], "counted attempt")
    return f"commit, {attempts}: {many(request['files'], 'file')}, {size(request['bytes'])}"


def _locks(locks: dict[str, Any]) -> Pairs:
    yield from _nodes("holds", locks["holds"])
    if locks["waitsSince"] is not None:
        yield "waits", f"since {moment(locks['waitsSince'])}, {age(locks['waitsSeconds'])}"
        yield from _nodes("waits", locks["waits"])
    for one in locks["inTheWay"]:
        state = f"{one['state']}, unchanged for {age(one['unchangedSeconds'])}"
        does = "holds" if one["holds"] else "waits for"
        status = one["executionStatus"]
        execution = f", execution {status}" if status else ""
        yield "in the way", f"{one['jobId']}: {state}, {does} {_claim(one)}{execution}"
    if locks["keptWaiting"]:
        first, *others = locks["keptWaiting"]
        yield "keeps waiting", f"{first} and {len(others)} more" if others else first


def _nodes(name: str, claims: list[dict[str, str]]) -> Pairs:
    for claim in claims[:SHOWN_NODES]:
        yield name, "the idempotency key" if claim["mode"] == LockMode.KEY else _claim(claim)
    if len(claims) > SHOWN_NODES:
        yield name, f"and {len(claims) - SHOWN_NODES} more; --output json has them all"


def _claim(claim: dict[str, Any]) -> str:
    return f"{LockMode(claim['mode']).name.lower()} {claim['node']}"


def _outcome(job: dict[str, Any]) -> Pairs:
    result, failure = job["result"], job["error"]
    if result:
        yield "result", f"{result['outcome']} at {moment(result['finishedAt'])}"
        if result["decidedAt"]:
            removed = result["replaced"]
            replaced = f", {many(removed, 'file')} of before removed" if removed else ""
            content = amount(result["files"], result["bytes"], result["rows"])
            yield "result", f"{content}{replaced}; decided {moment(result['decidedAt'])}"
    if failure:
        yield "reason", f"{failure['message']} [{failure['code']}]"
        if failure["code"] in CODES:
            yield "reason", job["advice"]["means"]


def _execution(job: dict[str, Any]) -> Pairs:
    if job["execution"]:
        status = f" ({job['executionStatus']})" if job["executionStatus"] else ""
        yield "execution", f"{job['execution']}{status}"
    if job["console"]:
        yield "console", job["console"]
    error = job["executionError"]
    if error:
        named = error["code"] in error["message"]
        yield "error", error["message"] if named else f"{error['message']} [{error['code']}]"
        yield "error", error["means"]
