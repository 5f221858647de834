"""A job id of which a person types the first digits."""

from collections.abc import Iterator
from itertools import islice

import click

from s3commit.cli.job_lists import LOOKED_AT, job_documents, lister
from s3commit.cli.render import some
from s3commit.cli.session import Session
from s3commit.core.formats.layout import JOB_ID
from s3commit.core.jobs.past_commits import manifests_at
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import NotFoundError
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import Ledger


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


def _in_ledger(ledger: Ledger, typed: str) -> Iterator[str]:
    jobs_in = lister(ledger)
    for state in JobState:
        listed = jobs_in(state, before="9", latest_first=True)
        yield from (one.job_id for one in islice(listed, LOOKED_AT) if one.job_id.startswith(typed))
        if next(listed, None) is not None:
            raise click.UsageError(
                f"more than {LOOKED_AT} jobs are {state}: type the whole id, or add --destination"
            )
