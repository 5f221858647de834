"""The content of each of the page's views, from the commands' documents."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from itertools import islice, pairwise, takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any

from markupsafe import Markup

from s3commit.aws import env
from s3commit.aws.function_logs import read_logs
from s3commit.cli.fsck import fsck_document
from s3commit.cli.job_facts import JobFacts, jobs_at, locate, read_job
from s3commit.cli.log import by_of, log_document, visible_at
from s3commit.cli.options import NamedJob, parse_job
from s3commit.cli.render import epoch_of, rows, took
from s3commit.cli.session import Session
from s3commit.cli.show import job_document
from s3commit.cli.show_history import history_document
from s3commit.cli.status import jobs_document
from s3commit.core.documents.commit_manifest import CommittedFile, read_commit_manifest
from s3commit.core.documents.job_json import read_spec
from s3commit.core.formats.layout import JobDirectory, parse_destination, partition_of
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.objects import ListedObject, listed_at
from s3commit.core.ports.parallel import in_order

FILTERS = ("table", "state", "who", "key", "since", "before", "sort")
# The columns by which the list can be sorted, and the members that they show.
SORTED = {
    **{"state": "state", "age": "ageSeconds", "table": "destination", "what": "kind"},
    **{"took": "tookSeconds", "files": "files", "rows": "rows", "who": "by"},
}
PAGE = 200  # jobs on one page
OLDEST = 50  # jobs of each state under way that are looked at as well: those may be in trouble
REMEMBERED = 10_000  # what writers said of themselves: their documents do not change
LISTED = 5_000  # objects of a table: five requests
COMMITS = 50  # jobs of a table
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


class Views:
    """A method for each view; its arguments are those behind the address's ``?``.

    ``ended`` says that nothing will change any more.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

        @lru_cache(REMEMBERED)
        def writer(directory: JobDirectory) -> str:
            who = read_spec(session.s3, directory).who
            return by_of(who) if who else ""

        self._writer = writer  # by the job's ``_job.json``: a GET for each job, once

    def jobs(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """The jobs of all tables, or of one and below it; ``older`` is where the next page begins.

        The latest that have not changed since ``before``; empty: since now. On the first page also
        those under way that need attention, whatever their age. ``who`` and ``sort`` work on the
        page's own jobs. Requests: for each state one or two queries; for each job on the page a
        GET, and the requests of `status` for it.
        """
        filters = {name: asked.get(name, "").strip() for name in FILTERS}
        state, who, sort = filters["state"], filters["who"], filters["sort"]
        place = _place_in(asked) if filters["table"] else None
        states = [one for one in JobState if state in {"", one.value}]
        document, older = self._listed(place, states, filters)
        document["trouble"] = document.pop("problems")
        known = in_order(self._session.parallel, self._with_writer, document["jobs"])
        jobs = [job for job in known if who.lower() in job["by"].lower()]
        if (member := SORTED.get(sort.removeprefix("-"))) is not None:
            unknown = [job for job in jobs if job[member] in {None, ""}]
            found = [job for job in jobs if job[member] not in {None, ""}]
            jobs = sorted(found, key=itemgetter(member), reverse=sort.startswith("-")) + unknown
        buckets = {job["destination"].split("/")[2] for job in jobs}
        return {
            **{**document, "jobs": jobs, "counts": Counter(job["state"] for job in jobs)},
            "older": older,
            "left_out": f"s3://{buckets.pop()}/" if len(buckets) == 1 else "s3://",
            "alarming": sum(job["attention"] for job in jobs),
            "filters": filters,
            "states": [*JobState],
            "sorted": SORTED,
            "ended": False,
        }

    def _listed(
        self, place: Destination | None, states: list[JobState], filters: Mapping[str, str]
    ) -> tuple[dict[str, Any], str]:
        """The document of `status` for one page, and what the next one comes before."""
        session, table = self._session, self._session.table()
        ledger, now = session.ledger(table), session.clock.now()
        before, since = (filters[name].replace(" ", "T") for name in ("before", "since"))
        only = {"since": since, "key": filters["key"]}

        def latest(state: JobState) -> tuple[list[JobRecord], str]:
            return jobs_at(ledger, state, before or now, place, PAGE, latest_first=True, **only)

        def oldest(state: JobState) -> list[JobRecord]:
            known, stopped = whole[state]
            if not stopped:
                return known
            return jobs_at(ledger, state, now, place, OLDEST, latest_first=False, **only)[0]

        listed = in_order(session.parallel, latest, states)
        whole: dict[JobState, tuple[list[JobRecord], str]]
        whole = dict(zip(states, listed, strict=True))
        found = [one for of_state, _ in listed for one in of_state]
        found.sort(key=lambda one: one.updated_at, reverse=True)
        # Nothing older than where a state's listing stopped: of that state more may come between.
        older = max((stopped for _, stopped in listed), default="")
        if len(found) > PAGE:
            older = max(older, found[PAGE - 1].updated_at)
        shown: dict[str, JobRecord] = {}
        for one in found:
            if one.updated_at >= older:  # one that has just changed its state may be there twice
                shown.setdefault(one.ref, one)
        shown = dict(islice(shown.items(), PAGE))
        under_way = [one for one in states if one not in ENDED and not before]
        old = [one for some in in_order(session.parallel, oldest, under_way) for one in some]
        records = {one.ref: one for one in old} | shown
        document = jobs_document(session, table, [*records.values()])
        known = {(one.job_id, one.destination.uri) for one in shown.values()}
        document["jobs"] = [
            job
            for job in document["jobs"]
            if job["attention"] or (job["jobId"], job["destination"]) in known
        ]
        return document, older

    def _with_writer(self, job: dict[str, Any]) -> dict[str, Any]:
        directory, by = "", ""
        with suppress(S3CommitError):  # it is asked again
            place = JobDirectory(parse_destination(job["destination"]), job["jobId"])
            directory = place.uri
            by = self._writer(place)
        return {**job, "directory": directory, "by": by}

    def job(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """One job, by its id or directory. Requests: as `show`, and some for its history."""
        session = self._session
        directory, table, typed = locate(session, _job_in(asked))
        job = read_job(session, directory, table, typed)
        document = job_document(session, job, SCANNED_UPLOADS, LISTED_MANIFESTS)
        history = history_document(session, job.execution)
        facts = {name: value for name, value in document.items() if name not in _DRAWN}
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

    def log(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """The log lines of the functions about one job. Requests: as `read_logs`, once."""
        session = self._session
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

    def table(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """One table; with ``fsck`` also what is wrong there, which takes a listing of it all.

        Requests: as `log`, for 50 jobs, and two for each 1,000 objects, ten at most.
        """
        session, place = self._session, _place_in(asked)
        listed = visible_at(session, place, LISTED)
        document = log_document(session, place, listed, limit=COMMITS)
        jobs = [
            {**job, "directory": JobDirectory(place, job["jobId"]).uri}
            for job in reversed(document["jobs"])
        ]
        return {
            **{"title": f"Table {place.uri}", "place": place.uri},
            **{"jobs": jobs, "complete": document["complete"]},
            "partitions": None if listed is None else _partitions(place, listed),
            "fsck": rows(fsck_document(session, place)) if asked.get("fsck") else None,
            "ended": bool(asked.get("fsck")),  # it is asked once
        }


def _partitions(
    place: Destination, listed: Iterable[ListedObject | CommittedFile]
) -> list[tuple[str, int, int]]:
    """Each partition's files and bytes; the root's name is empty."""
    found: dict[str, tuple[int, int]] = {}
    for one in listed:
        name = partition_of(one.key[len(place.prefix) :])
        files, size = found.get(name, (0, 0))
        found[name] = files + 1, size + one.length
    return [(name, *counts) for name, counts in sorted(found.items())]


def _written(session: Session, job: JobFacts) -> list[tuple[str, int, int]] | None:
    """The same of the files that the job has committed, unless they are too many to be read."""
    with suppress(S3CommitError):
        if job.header and job.header.files <= LISTED:
            _, files = read_commit_manifest(session.store, job.directory)
            return _partitions(job.directory.destination, files)
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


def _place_in(asked: Mapping[str, str]) -> Destination:
    """With a scheme or without one, as the page's tables show it."""
    typed = asked.get("table", "").strip()
    return parse_destination(typed if "://" in typed else f"s3://{typed}")


def _progress(document: dict[str, Any]) -> dict[str, Any]:
    """How many files there are to be, and how many are visible; what is not known is None."""
    sources = (document[name] for name in ("result", "plan", "request", "noted"))
    counts: dict[str, Any] = next((one for one in sources if one and one.get("files")), {})
    files, state = counts.get("files"), document["state"]
    visible: int | None = None if state == JobState.ROLLING_BACK else 0
    uncounted = not document["uploadsComplete"]
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
