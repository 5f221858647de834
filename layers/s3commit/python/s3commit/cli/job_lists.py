"""The jobs of a ledger, and of a destination, listed."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

from s3commit.cli.render import KEY_DIGITS
from s3commit.cli.session import Session
from s3commit.core.formats.layout import JOB_ID, MAGIC_PREFIX, TASKS, JobDirectory
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import AccessError
from s3commit.core.model.locks import key_digest
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import Ledger

LOOKED_AT = 10_000  # records of the ledger in one state: about 10 MB
FEW = 500  # records that one request reads: about 0.5 MB
JobsIn = Callable[..., Iterator[JobRecord]]


def lister(ledger: Ledger) -> JobsIn:
    """`Ledger.jobs_in`, which of a ledger with few jobs makes no request: one now reads them all.

    Without the right to scan the index it makes its own requests, 16 for each state.
    """
    known = None
    with suppress(AccessError):
        known = ledger.all_jobs(most=FEW)
    if known is None:
        return ledger.jobs_in
    jobs = sorted(known, key=lambda one: one.updated_at)

    def jobs_in(
        state: JobState, *, before: str, since: str = "", latest_first: bool = False
    ) -> Iterator[JobRecord]:
        for one in reversed(jobs) if latest_first else jobs:
            if one.state is state and since <= one.updated_at < before:
                yield one

    return jobs_in


def jobs_at(
    jobs_in: JobsIn,
    state: JobState,
    now: str,
    place: Destination | None,
    most: int,
    *,
    latest_first: bool,
    since: str = "",
    key: str = "",
    note: str = "",
) -> tuple[list[JobRecord], str]:
    """The jobs in the state, at the place and below it, and when the last one seen changed.

    That is empty if there are no more. ``most`` bounds them; `LOOKED_AT` bounds how many jobs of
    all places are looked at. ``key`` is their idempotency key, or its digest's first digits,
    ``note`` a part of their note or of a label. ``jobs_in`` is `Ledger.jobs_in`, or `lister`'s.
    """
    listed = jobs_in(state, before=now, since=since, latest_first=latest_first)
    digest = key_digest(key)
    found: list[JobRecord] = []
    record: JobRecord
    for record in islice(listed, LOOKED_AT):
        known = record.idempotency_key or ""
        keyed = known == digest or (len(key) >= KEY_DIGITS and known.startswith(key))
        at_place = place is None or record.destination.uri.startswith(place.uri)
        noted = any(note.lower() in text.lower() for text in (record.note, *record.labels))
        if at_place and noted and (keyed or not key):
            if len(found) == most:
                return found, found[-1].updated_at
            found.append(record)
    return found, record.updated_at if next(listed, None) is not None else ""


def job_documents(
    session: Session, destination: Destination, start: str = ""
) -> Iterator[tuple[str, str]]:
    """Each job with a ``_job.json``, and when its documents were put; tasks' are skipped.

    ``start`` is what the ids begin with.
    """
    bucket, prefix, after = destination.bucket, destination.prefix + MAGIC_PREFIX, ""
    while True:
        for one in session.store.list(bucket, prefix + start, after=after):
            job_id, _, document = one.key[len(prefix) :].partition("/")
            directory = JobDirectory(destination, job_id)
            if JOB_ID.fullmatch(job_id) and one.key in {directory.job, directory.result}:
                yield job_id, one.modified
            elif document.startswith(TASKS):
                after = directory.tasks[:-1] + "0"  # the character after "/"
                break
        else:
            return
