"""``s3commit log``."""

from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from textwrap import shorten
from typing import Any

import click

from s3commit.cli.job_facts import kind_of, read_job
from s3commit.cli.job_lists import LOOKED_AT, job_documents, jobs_at, lister
from s3commit.cli.options import DESTINATION, label_option, table_option, with_session
from s3commit.cli.render import KEY_DIGITS, LONGEST, fields, shortened, took
from s3commit.cli.session import Session
from s3commit.core.documents.job_json import Who
from s3commit.core.formats.layout import JobDirectory, is_data, owner_of
from s3commit.core.jobs.past_commits import manifests_at, undone_by
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import NotFoundError
from s3commit.core.model.locks import key_digest
from s3commit.core.model.moments import read_moment
from s3commit.core.model.states import JobState
from s3commit.core.ports.objects import ListedObject

LONGEST_WHY = 100  # characters
MOST_LISTED = 20_000  # objects at the destination: twenty requests
_NOT_COMMITTED = (JobState.ABORTED, JobState.ROLLED_BACK)
_COLUMNS = "endedAt, kind, state, files, rows, replaced, gone, jobId as JOB"
_BELOW = (
    "by as WHO, note, labels, why as WHY NOT, problems as PROBLEM, undoes, undoneBy, key,"
    " bytes as SIZE, tookSeconds"
)


@click.command()
@click.argument("destination", type=DESTINATION)
@click.option("--limit", type=click.IntRange(1, 10**6), default=20, show_default=True, help="Jobs.")
@click.option("--key", metavar="KEY", help="Only jobs with this idempotency key.")
@label_option("Only jobs with this label; may be repeated.")
@click.option("--note", metavar="TEXT", help="Only jobs with it in a note or label.")
@table_option
@with_session
def log(
    session: Session,
    *,
    destination: Destination,
    limit: int,
    key: str | None,
    labels: tuple[str, ...],
    note: str | None,
) -> None:
    """Show a table's jobs, by the time of their effect.

    The newest is last; behind it are the jobs that have not ended. Times are UTC. REPLACED are the
    earlier files that the job has removed, GONE those of its own that no longer exist: an undo or a
    later job has removed them, or someone deleted them. "who" is the writer as it names itself: its
    application, user and host, and its Airflow run. "undoes" is the job that an undo has undone,
    "undone by" the undo that reverted this job: their ids' first digits. "key" has those of the
    idempotency key's SHA-256. Needs S3 alone; with a table it also has the aborted and rolled back
    jobs of which S3 has nothing any more. STATE is empty if it is not known. Run
    `s3commit show JOB` for all about one.
    """
    listed = visible_at(session, destination, MOST_LISTED)
    document = log_document(
        session, destination, listed, limit=limit, key=key, labels=labels, note=note
    )
    session.out.table(document, "jobs", _COLUMNS, _BELOW)
    if not document["jobs"]:
        asked = [("idempotency key", key), *(("label", one) for one in labels), ("note", note)]
        wanted = " and ".join(f"the {name} {one!r}" for name, one in asked if one is not None)
        session.out.note(f"no jobs at {destination.uri}{wanted and ' with '}{wanted}")
    if not document["complete"]:
        session.out.note("there are older ones: raise --limit")
    if listed is None:
        session.out.note(f"GONE is unknown: there are more than {MOST_LISTED} objects")


def log_document(
    session: Session,
    destination: Destination,
    listed: list[ListedObject] | None,
    *,
    limit: int,
    key: str | None = None,
    labels: Iterable[str] = (),
    note: str | None = None,
) -> dict[str, Any]:
    """The last jobs, the last one last; ``listed`` is what `visible_at` has found."""
    digest = None if key is None else key_digest(key)

    def is_wanted(job: dict[str, Any]) -> bool:
        said = job["labels"] or ()
        keyed = digest in {None, job["idempotencyKey"]} and {*labels} <= {*said}
        return keyed and (note or "").lower() in "\n".join((job["note"] or "", *said)).lower()

    found = sorted(_begun(session, destination).items(), key=itemgetter(1), reverse=True)
    left = None if listed is None else Counter(owner_of(one.key) or "" for one in listed)
    leaving = set[str]()
    read, rest = partial(_document, session, destination, left, leaving), iter(found)
    seen: list[dict[str, Any]] = []
    jobs: list[dict[str, Any]] = []
    while len(jobs) < limit and (some := list(islice(rest, limit))):
        documents = [one for one in session.parallel(read, some) if one]
        seen += documents
        jobs += filter(is_wanted, documents)
    for each in (seen, jobs):
        each.sort(key=lambda job: (job["endedAt"] or "9", job["startedAt"]))
    more = len(jobs) > limit or next(rest, None) is not None
    undos = (one for one in seen if one["undoes"] and one["state"] == JobState.COMMITTED)
    undone = undone_by(((one["jobId"], one["undoes"]) for one in undos), leaving)
    shown = [{**one, "undoneBy": undone.get(one["jobId"])} for one in jobs[-limit:]]
    return {"destination": destination.uri, "complete": not more, "jobs": shown}


def visible_at(session: Session, destination: Destination, most: int) -> list[ListedObject] | None:
    """The files at the destination; None if it has more than ``most`` objects.

    One request for each 1,000 objects.
    """
    listing = session.store.list(destination.bucket, destination.prefix)
    some = list(islice(listing, most + 1))
    if len(some) > most:
        return None
    root = len(destination.prefix)
    return [one for one in some if is_data(one.key[root:])]


def _begun(session: Session, destination: Destination) -> dict[str, str]:
    """About when something happened to each job at the destination for the last time, by its id.

    One request for some hundred jobs, and with a table those of `lister`.
    """
    found: dict[str, str] = {}
    if table := session.named_table():
        jobs_in = lister(session.ledger(table))
        for state in _NOT_COMMITTED:
            now = session.clock.now()
            latest, _ = jobs_at(jobs_in, state, now, destination, LOOKED_AT, latest_first=True)
            here = (record for record in latest if record.destination == destination)
            found |= {record.job_id: record.updated_at for record in here}
    manifests = manifests_at(session.store, destination)
    put = [(one.job_id, listed.modified) for one, listed in manifests]
    for job_id, moment in chain(put, job_documents(session, destination)):
        found[job_id] = max(moment, found.get(job_id, ""))
    return found


def _document(
    session: Session,
    destination: Destination,
    left: Counter[str] | None,
    leaving: set[str],
    begun: tuple[str, str],
) -> dict[str, Any] | None:
    """The row of a job; None if it was deleted since it was listed, as by the jar.

    The ids of undos that leave removed what their jobs had replaced are added to ``leaving``.
    """
    job_id, listed = begun
    directory = JobDirectory(destination, job_id)
    try:
        job = read_job(session, directory, session.named_table(), with_request=False)
    except NotFoundError:
        return None
    said, result, header = job.spec or job.record, job.result, job.header
    leaving.update([job_id] * bool(header and header.leaves_removed))
    began = read_moment(said.created_at) if said else ""
    ended = result.finished_at if result else job.record and job.record.finished_at
    ended = read_moment(ended or "") or (header and read_moment(header.decided_at)) or None
    # Of a job whose documents are past their time the manifest in _commits/ is left.
    state = JobState.COMMITTED.value if header and said is None else job.state
    is_known = said or result or header or job.request_stands
    keyed = said or header
    key = keyed.idempotency_key if keyed else None
    who, failure = job.spec.who if job.spec else None, job.failure
    short = partial(shorten, width=LONGEST_WHY, placeholder="…")
    return {
        "jobId": job_id,
        "startedAt": began or listed,
        "endedAt": ended,
        "tookSeconds": took(began, ended),
        "state": state if is_known else None,
        **fields(header or result, "files", "bytes", "rows"),
        "kind": kind_of(said, header),
        "replaced": result.replaced
        if result
        else header and header.replaced and header.replaced_files,
        "gone": max(0, header.files - left[job_id]) if header and left is not None else None,
        "undoes": job.undoes or None,
        "idempotencyKey": key,
        "key": key and key[:KEY_DIGITS],
        "who": who and fields(who, *Who.__slots__),
        "by": who and by_of(who),
        **fields(keyed, "note", "labels"),
        "error": failure and fields(failure, "code", "message"),
        "why": failure and short(f"{failure.code}: {failure.message}"),
        "problems": [*map(short, job.problems.values())],
    }


def by_of(who: Who) -> str:
    """``sales (application_1_7), ops@node-7, dag/run/task``, of those that are known."""
    number = who.application_id and f"({who.application_id})"
    application = " ".join(filter(None, (who.application, number)))
    place = "@".join(filter(None, (who.user, who.host)))
    said = ", ".join(filter(None, (application, place, who.airflow)))
    return shortened(said, LONGEST)
