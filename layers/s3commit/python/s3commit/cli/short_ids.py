"""A job id of which a person types the first digits."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

import click

from s3commit.cli.render import some
from s3commit.cli.session import Session
from s3commit.core.formats.layout import JOB_ID, MAGIC_PREFIX, TASKS, JobDirectory
from s3commit.core.jobs.past_commits import manifests_at
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import AccessError, NotFoundError
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import Ledger

LOOKED_AT = 10_000  # records of the ledger in one state: about 10 MB
FEW = 500  # records that one request reads: about 0.5 MB
JobsIn = Callable[..., Iterator[JobRecord]]


def whole_id(session: Session, typed: str, where: Destination | str) -> str:
    """The id that begins so, of the jobs at a destination, or in the ledger of that table.

    Requests: two listings of S3, or those of `lister`; none for a whole id. Raises
    `NotFoundError` (``NO_JOB``), and a usage error unless the only such job is known.
    """
    if JOB_ID.fullmatch(typed):
        return typed
    if isinstance(where, Destination):
        put = manifests_at(session.store, where, typed)
        begun = job_documents(session, where, typed)
        found, named = {*(job.job_id for job, _ in put), *(job for job, _ in begun)}, where.uri
    else:
        found, named = set(_in_ledger(session.ledger(where), typed)), f"table {where}"
    if not found:
        other = "" if isinstance(where, Destination) else ", or look in S3 with --destination"
        raise NotFoundError(
            f"no job whose id begins with {typed} in {named}: check the digits{other}",
            code="NO_JOB",
        )
    if len(found) > 1:
        raise click.UsageError(f"{len(found)} ids begin with {typed}: {some(found)}")
    return found.pop()


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


def _in_ledger(ledger: Ledger, typed: str) -> Iterator[str]:
    jobs_in = lister(ledger)
    for state in JobState:
        listed = jobs_in(state, before="9", latest_first=True)
        yield from (one.job_id for one in islice(listed, LOOKED_AT) if one.job_id.startswith(typed))
        if next(listed, None) is not None:
            raise click.UsageError(
                f"more than {LOOKED_AT} jobs are {state}: type the whole id, or add --destination"
            )


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
