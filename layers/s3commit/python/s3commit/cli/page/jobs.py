"""The page's list of jobs: `status`, of which page after page shows all, and who wrote them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from s3commit.cli.job_facts import jobs_at
from s3commit.cli.log import by_of
from s3commit.cli.session import Session
from s3commit.cli.status import jobs_document
from s3commit.core.documents.job_json import read_spec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.parallel import in_order

PAGE = 200  # jobs on one page
OLDEST = 50  # jobs of each state under way that are looked at as well: those may be in trouble
REMEMBERED = 10_000  # what writers said of themselves: their documents do not change

Whose = Callable[[JobDirectory], str]


def whose(session: Session) -> Whose:
    """The writer of a job, by its ``_job.json``, or nothing; a GET for each job, once."""

    @lru_cache(REMEMBERED)
    def read(directory: JobDirectory) -> str:
        who = read_spec(session.ports(None), directory).who
        return by_of(who) if who else ""

    def tell(directory: JobDirectory) -> str:
        try:
            return read(directory)
        except S3CommitError:  # it is asked again
            return ""

    return tell


def list_jobs(
    session: Session,
    tell: Whose,
    place: Destination | None,
    states: list[JobState],
    *,
    before: str,
    who: str,
) -> dict[str, Any]:
    """The latest jobs that have not changed since ``before``; empty: since now.

    On the first page also those under way that need attention, whatever their age. ``older`` is
    what the next page comes before. Requests: for each state one or two queries; for each job on
    the page a GET, and the requests of `status` for it.
    """
    table = session.table()
    ledger, now = session.ledger(table), session.clock.now()

    def latest(state: JobState) -> tuple[list[JobRecord], str]:
        return jobs_at(ledger, state, before or now, place, PAGE, latest_first=True)

    def oldest(state: JobState) -> list[JobRecord]:
        found, _ = jobs_at(ledger, state, now, place, OLDEST, latest_first=False)
        return found

    listed = in_order(session.parallel, latest, states)
    found = sorted(
        (one for of_state, _ in listed for one in of_state),
        key=lambda one: one.updated_at,
        reverse=True,
    )
    # Nothing older than where a state's listing stopped: of that state more may come in between.
    older = max((stopped for _, stopped in listed), default="")
    if len(found) > PAGE:
        older = max(older, found[PAGE - 1].updated_at)
    shown = [one for one in found if one.updated_at >= older][:PAGE]
    under_way = [one for one in states if one not in ENDED and not before]
    refs = {one.ref for one in shown}
    old = [one for some in in_order(session.parallel, oldest, under_way) for one in some]
    old = [one for one in old if one.ref not in refs]
    document = jobs_document(session, table, [*shown, *old], complete=not older)
    known = {(one.job_id, one.destination.uri) for one in shown}
    there = [
        job
        for job in document["jobs"]
        if job["attention"] or (job["jobId"], job["destination"]) in known
    ]
    jobs = [job for job in _by(session, tell, there) if who.lower() in job["by"].lower()]
    counts = Counter(job["state"] for job in jobs)
    return {**document, "jobs": jobs, "counts": counts, "older": older}


def _by(session: Session, tell: Whose, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The jobs with their directories and writers."""
    session.store  # noqa: B018 - made here, since the workers would make one each

    def add(job: dict[str, Any]) -> dict[str, Any]:
        bucket, _, prefix = job["destination"].removeprefix("s3://").partition("/")
        directory = JobDirectory(Destination(bucket, prefix), job["jobId"])
        return {**job, "directory": directory.uri, "by": tell(directory)}

    return in_order(session.parallel, add, jobs)
