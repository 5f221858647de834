"""One job on the page, and the log lines of the functions about it."""

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

from markupsafe import Markup

from s3commit.aws import env
from s3commit.aws.function_logs import read_logs
from s3commit.cli.job_facts import JobFacts, locate, read_job
from s3commit.cli.options import NamedJob, parse_job
from s3commit.cli.page.table_view import LISTED, partitions_of
from s3commit.cli.render import epoch_of, rows, took
from s3commit.cli.session import Session
from s3commit.cli.show import for_people, job_document
from s3commit.cli.show_history import history_document
from s3commit.core.documents.commit_manifest import read_commit_manifest
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.objects import listed_at

CLOCKS = 60.0  # seconds by which S3's and CloudWatch's may differ
SCANNED_UPLOADS = 3_000  # of the destination: three requests
LISTED_MANIFESTS = 5_000  # of the job: five requests, and some megabytes of the ledger
# `make pictures` draws it, from the definition that is deployed.
DRAWING = Path(__file__).with_name("workflow.svg")
_NODE = re.compile(r'class="node">\n<title>(\w+)</title>')
_DRAWN = {
    "jobId",
    "destination",
    "directory",
    "state",
    "means",
    "next",
    "error",
    "problems",
    "console",
}


def job_view(session: Session, asked: Mapping[str, str]) -> dict[str, Any]:
    """One job, by its id or directory. Requests: as `show`, and some for its history."""
    directory, table, typed = locate(session, _job_in(asked))
    job = read_job(session, directory, table, typed)
    document = job_document(session, job, SCANNED_UPLOADS, LISTED_MANIFESTS)
    history = history_document(session, job.execution)
    facts = {name: one for name, one in for_people(document).items() if name not in _DRAWN}
    return {
        **{"title": f"Job {job.job_id}", "job": document},
        "next": document["next"],
        "progress": _progress(document),
        "history": history,
        "spans": _spans(job, history["states"], session.clock.now()),
        "partitions": _written(session, job),
        "machine": _draw({one["state"]: one["did"] for one in history["states"]}),
        "facts": rows(facts),
        "documents": _documents(session, directory),
        "listed_manifests": LISTED_MANIFESTS,
        "insights": (document["console"] or "").partition("/states/")[0],
        "logs": f'fields @timestamp, step, @message | filter job_id = "{job.job_id}"',
        "ended": job.result is not None,
    }


def log_view(session: Session, asked: Mapping[str, str]) -> dict[str, Any]:
    """The log lines of the functions about one job. Requests: as `read_logs`, once."""
    directory, table, _ = locate(session, _job_in(asked))
    record = session.ledger(table).job(directory.ref) if table else None
    since = epoch_of(record.opened_at) - CLOCKS if record and record.opened_at else 0
    around, job_id = session.deployment, directory.job_id
    prefix = f"{around.stack(env.PIPELINE_STACK)}-"
    lines, complete = read_logs(around.connect("logs"), prefix, job_id, since)
    return {
        **{"title": f"Log of job {job_id}", "directory": directory.uri, "job_id": job_id},
        **{"prefix": prefix, "lines": lines, "complete": complete},
        "ended": True,  # it is asked once
    }


def _written(session: Session, job: JobFacts) -> list[tuple[str, int, int]] | None:
    """The same of the files that the job has committed, unless they are too many to be read."""
    with suppress(S3CommitError):
        if job.header and job.header.files <= LISTED:
            _, files = read_commit_manifest(session.store, job.directory)
            return partitions_of(job.directory.destination, files)
    return None


def _spans(job: JobFacts, states: list[dict[str, Any]], now: str) -> dict[str, int]:
    """Where the job's time went, in seconds, up to now if it runs; the ledger alone knows."""
    if (record := job.record) is None:
        return {}
    ended = job.result or record
    decided, began = ended.decided_at or ended.finished_at, record.opened_at or record.created_at
    moments = [began, record.requested_at, decided, ended.finished_at]
    if record.state not in ENDED:
        moments = [*takewhile(bool, moments), now]
    spans = {
        name: seconds
        for name, both in zip(("tasks", "decision", "completing"), pairwise(moments), strict=False)
        if (seconds := took(*both)) is not None
    }
    queue = sum(one["tookSeconds"] for one in states if one["state"] == "WaitForDestination")
    if queue and "decision" in spans:
        spans |= {"queue": queue, "decision": max(0, spans["decision"] - queue)}
    return spans


def _job_in(asked: Mapping[str, str]) -> NamedJob:
    return parse_job(asked.get("job", "").strip())


def _progress(document: dict[str, Any]) -> dict[str, Any]:
    """How many files there are to be, and how many are visible; what is not known is None."""
    sources = (document[name] for name in ("result", "plan", "request", "noted"))
    counts: dict[str, Any] = next((one for one in sources if one and one.get("files")), {})
    files, state = counts.get("files"), document["state"]
    visible: int | None = None if state == JobState.ROLLING_BACK else 0
    uncounted = not document["uploadsComplete"]
    if state in {JobState.COMMITTED, JobState.PUBLISHING}:
        visible = 0 if document["undoneBy"] else files
    elif state == JobState.COMMITTING and files is not None:
        visible = None if uncounted else max(0, files - document["openUploads"])
    size = counts.get("bytes")
    return {"files": files, "visible": visible, "uncounted": uncounted, "bytes": size}


def _documents(session: Session, directory: JobDirectory) -> list[dict[str, Any]]:
    """The job's own documents, and its list of files; its manifests are counted elsewhere.

    Two requests, however many tasks there are.
    """
    below = session.store.list(directory.bucket, directory.prefix)
    found = list(takewhile(lambda one: not one.key.startswith(directory.tasks), below))
    listed = listed_at(session.store, directory.bucket, directory.commits)
    return [
        {"key": one.key, "bytes": one.length, "putAt": one.modified}
        for one in filter(None, [*found, listed])
    ]


@cache
def _drawing() -> str:
    """The picture as a part of a page. Its colours are attributes, and give way to a style's."""
    _, _, picture = DRAWING.read_text().partition("<svg ")
    sized = re.sub(r'width="\d+pt" height="\d+pt"', 'role="img" class="machine"', picture, count=1)
    return f"<svg {sized}"


def _draw(did: Mapping[str, str]) -> Markup:
    """The state machine; ``did`` has a word for each state that is to be marked, no other."""

    def mark(found: re.Match[str]) -> str:
        word = did.get(found[1])
        if word not in {"done", "now", "failed", "tried"}:
            return found[0]
        return f'class="node {word}">\n<title>{found[1]}: {word}</title>'

    return Markup(_NODE.sub(mark, _drawing()))  # noqa: S704 - the drawing's text and our words
