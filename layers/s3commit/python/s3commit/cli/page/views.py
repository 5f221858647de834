"""The content of each of the page's views, from the commands' documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from s3commit.aws import env
from s3commit.aws.function_logs import read_logs
from s3commit.cli.fsck import fsck_document
from s3commit.cli.history import history_document
from s3commit.cli.job_facts import locate, read_job
from s3commit.cli.log import log_document, visible_at
from s3commit.cli.options import parse_job
from s3commit.cli.page.jobs import list_jobs, whose
from s3commit.cli.page.machine import draw
from s3commit.cli.render import epoch_of, rows
from s3commit.cli.session import Session
from s3commit.cli.show import UNCOUNTED, job_document
from s3commit.core.formats.layout import JobDirectory, parse_destination, partition_of
from s3commit.core.model.destination import Destination
from s3commit.core.model.states import JobState
from s3commit.core.ports.objects import ListedObject, listed_at

LISTED = 5_000  # objects of a table: five requests
COMMITS = 50  # jobs of a table
CLOCKS = 60.0  # seconds by which S3's and CloudWatch's may differ
SCANNED_UPLOADS = 3_000  # of the destination: three requests
# Words as a shell has them, up to what the sentence says of the command.
_WORD = r"(?:'[^']*'|\"'\"|[^\s'\"()])+"
_COMMAND = re.compile(rf"s3commit [a-z]+(?: (?!starts |ends |says ){_WORD})*")
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


class Views:
    """A method for each view; its arguments are those behind the address's ``?``.

    ``ended`` says that nothing will change any more.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._whose = whose(session)

    def jobs(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """The jobs of all tables, or of one and below it."""
        named, state, who = (asked.get(name, "").strip() for name in ("table", "state", "who"))
        states = [one for one in JobState if state in {"", one.value}]
        found = list_jobs(
            self._session,
            self._whose,
            _place(named),
            states,
            before=asked.get("before", ""),
            who=who,
        )
        alarming = sum(job["attention"] for job in found["jobs"])
        filters = {"table": named, "state": state, "who": who}
        found["trouble"] = found.pop("problems")
        return {
            **found,
            "alarming": alarming,
            "filters": filters,
            "states": [*JobState],
            "ended": False,
        }

    def job(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """One job, by its id or directory. Requests: as `show`, and some for its history."""
        session = self._session
        directory, table, typed = locate(session, parse_job(asked.get("job", "").strip()), None)
        job = read_job(session, directory, table, typed)
        document = job_document(session, job, SCANNED_UPLOADS)
        history = history_document(session, job.execution)
        facts = {name: value for name, value in document.items() if name not in _DRAWN}
        return {
            **{"title": f"Job {job.job_id}", "job_name": typed, "job": document},
            "next": [(line, command_in(line)) for line in document["next"]],
            "progress": _progress(document),
            "history": history,
            "machine": draw({one["state"]: one["did"] for one in history["states"]}),
            "facts": rows(facts),
            "documents": _documents(session, directory),
            "insights": (document["console"] or "").partition("/states/")[0],
            "logs": f'fields @timestamp, step, @message | filter job_id = "{job.job_id}"',
            "ended": job.result is not None,
        }

    def log(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """The log lines of the functions about one job. Requests: as `read_logs`, once."""
        session = self._session
        directory, table, _ = locate(session, parse_job(asked.get("job", "").strip()), None)
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

    def table(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """One table; with ``fsck`` also what is wrong there, which takes a listing of it all.

        Requests: as `log`, for 50 jobs, and two for each 1,000 objects, ten at most.
        """
        session, place = self._session, parse_destination(asked.get("table", "").strip())
        listed = visible_at(session, place, LISTED)
        document = log_document(session, place, listed, limit=COMMITS)
        jobs = [
            {**job, "directory": JobDirectory(place, job["jobId"]).uri}
            for job in reversed(document["jobs"])
        ]
        return {
            **{"title": f"Table {place.uri}", "table_name": place.uri, "place": place.uri},
            **{"jobs": jobs, "complete": document["complete"]},
            "partitions": None if listed is None else _partitions(place, listed),
            "fsck": rows(fsck_document(session, place)) if asked.get("fsck") else None,
            "ended": bool(asked.get("fsck")),  # it is asked once
        }


def _partitions(place: Destination, listed: list[ListedObject]) -> list[tuple[str, int, int]]:
    """Each partition's files and bytes; the root's name is empty."""
    found: dict[str, tuple[int, int]] = {}
    for one in listed:
        name = partition_of(one.key[len(place.prefix) :])
        files, size = found.get(name, (0, 0))
        found[name] = files + 1, size + one.length
    return [(name, *counts) for name, counts in sorted(found.items())]


def command_in(line: str) -> str | None:
    """The command that a line of `show`'s next step has, to be copied."""
    found = _COMMAND.search(line)
    return found[0] if found else None


def _progress(document: dict[str, Any]) -> dict[str, Any]:
    """How many files there are to be, and how many are visible; what is not known is None."""
    sources = (document[name] for name in ("result", "plan", "request", "noted"))
    counts: dict[str, Any] = next((one for one in sources if one and one.get("files")), {})
    files, state = counts.get("files"), document["state"]
    visible: int | None = None if state == JobState.ROLLING_BACK else 0
    uncounted = UNCOUNTED in document["problems"]
    if state in {JobState.COMMITTED, JobState.PUBLISHING}:
        visible = files
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


def _place(text: str) -> Destination | None:
    return parse_destination(text) if text else None
