"""The page's list of jobs: filtered, sorted, a page at a time."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from itertools import islice
from operator import itemgetter
from typing import Any

from s3commit.cli.alarms import watched
from s3commit.cli.job_lists import LOOKED_AT, jobs_at, lister
from s3commit.cli.log import by_of
from s3commit.cli.page.table_view import place_in
from s3commit.cli.session import Session
from s3commit.cli.status import jobs_document
from s3commit.core.documents.job_json import read_spec
from s3commit.core.formats.layout import JobDirectory, parse_destination
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.parallel import in_order, together

FILTERS = ("table", "state", "who", "note", "key", "since", "before", "sort")
# The columns by which the list can be sorted, and the members that they show.
SORTED = {
    **{"state": "state", "age": "ageSeconds", "table": "destination", "what": "kind"},
    **{"took": "tookSeconds", "files": "files", "rows": "rows", "who": "by"},
}
PAGE = 200  # jobs on one page
OLDEST = 50  # jobs of each state under way that are looked at as well: those may be in trouble
REMEMBERED = 10_000  # names that writers gave themselves: their documents do not change


class JobsView:
    """The list; its arguments are those behind the address's ``?``."""

    def __init__(self, session: Session) -> None:
        self._session = session

        @lru_cache(REMEMBERED)
        def writer(directory: JobDirectory) -> str:
            who = read_spec(session.s3, directory).who
            return by_of(who) if who else ""

        self._writer = writer  # by the job's ``_job.json``: a GET for each job, once

    def __call__(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """The jobs of all tables, or of one and below it; ``older`` is where the next page begins.

        The latest that have not changed since ``before``; empty: since now. On the first page also
        those under way that need attention, whatever their age. ``who`` and ``sort`` work on the
        page's own jobs. Requests: those of `lister` once or twice; for each job on the page a
        GET, and the requests of `status` for it.
        """
        filters = {name: asked.get(name, "").strip() for name in FILTERS}
        state, who, sort = filters["state"], filters["who"], filters["sort"]
        place = place_in(asked) if filters["table"] else None
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
        jobs_in, now = lister(session.ledger(table)), session.clock.now()
        before, since = (filters[name].replace(" ", "T") for name in ("before", "since"))
        only = {"since": since, "key": filters["key"], "note": filters["note"]}

        def latest(state: JobState) -> tuple[list[JobRecord], str]:
            return jobs_at(jobs_in, state, before or now, place, PAGE, latest_first=True, **only)

        def oldest(state: JobState) -> list[JobRecord]:
            known, stopped = whole[state]
            if not stopped:
                return known
            return jobs_at(jobs_in, state, now, place, OLDEST, latest_first=False, **only)[0]

        looks = (partial(latest, one) for one in states)
        seen, *listed = together(session.parallel, partial(watched, session, table), *looks)
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
        # Undos come after their jobs, so a list without gaps has them all. For another list the
        # ledger is read: S3 would take a listing for each table.
        later = list[JobRecord]()
        done = [one.updated_at for one in shown.values() if one.state is JobState.COMMITTED]
        if done and (before or only["key"] or only["note"]):
            found, _ = jobs_at(
                *(jobs_in, JobState.COMMITTED, now, place, LOOKED_AT),
                latest_first=True,
                since=min(done),
            )
            later = [one for one in found if one.undoes]
        document = jobs_document(session, table, [*records.values()], seen, later)
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
