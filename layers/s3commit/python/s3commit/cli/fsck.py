"""``s3commit fsck``."""

import re
from collections.abc import Iterable
from typing import Any

import click

from s3commit.cli.options import DESTINATION, Parsed, table_option, with_session
from s3commit.cli.render import fields
from s3commit.cli.session import Session
from s3commit.core.fsck import check
from s3commit.core.fsck_report import OpenJob
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import NotFoundError
from s3commit.core.model.moments import shifted


def parse_rule(text: str) -> tuple[str, int]:
    """``sales/=400``: a prefix below the bucket, and days from 1 on. Raises `ValueError`."""
    prefix, _, days = text.rpartition("=")
    if not prefix.endswith("/") or "://" in prefix or not re.fullmatch("[1-9][0-9]{0,4}", days):
        raise ValueError(f"invalid rule {text!r}: use a prefix with its / and days: sales/=400")
    return prefix, int(days)


@click.command()
@click.argument("destination", type=DESTINATION)
@click.option(
    "--expired",
    multiple=True,
    type=Parsed("rule", parse_rule),
    metavar="PREFIX=DAYS",
    help="Files below s3://BUCKET/PREFIX may be missing DAYS after their commit.",
)
@table_option
@with_session
def fsck(
    session: Session, *, destination: Destination, expired: tuple[tuple[str, int], ...]
) -> None:
    """Compare a table with what was committed to it.

    Reports the files of commit manifests that are missing or changed, those that jobs have removed
    and that are there again, and the jobs without a result, each with its repair. Changes nothing.

    Exit code 1: something is missing, changed, unreadable, or there again.
    """
    document = fsck_document(session, destination, expired)
    session.out.facts(document)
    if not document["sound"]:
        raise click.exceptions.Exit(1)


def fsck_document(
    session: Session, destination: Destination, expired: Iterable[tuple[str, int]] = ()
) -> dict[str, Any]:
    """The findings of `check`, and the command that repairs each."""
    ledger = session.trusted_ledger(session.named_table())
    now = session.clock.now()
    rules = tuple((prefix, shifted(now, -86_400 * days)) for prefix, days in expired)
    report = check(session.store, ledger, session.parallel, destination, rules)
    if not (report.is_table or any(destination.prefix.startswith(prefix) for prefix, _ in rules)):
        raise NotFoundError(
            f"{destination.uri} has no job, so nothing was checked: is it the name of a table? If"
            " its jobs have expired, add --expired PREFIX=DAYS"
        )
    return {
        "destination": report.destination.uri,
        "sound": report.is_sound,
        **fields(report, "jobs", "files", "bytes"),
        "replacedFiles": report.replaced,
        "expiredFiles": report.expired,
        "foreignFiles": report.foreign,
        "foreignExamples": report.examples,
        "findings": [fields(one, "what", "key", "job_id", "fix") for one in report.findings],
        "openJobs": [
            {
                "jobId": one.directory.job_id,
                **fields(one, "state", "requested"),
                "fix": _fix(one, f"{one.directory.typed}{session.where}"),
            }
            for one in report.open_jobs
        ],
    }


def _fix(job: OpenJob, typed: str) -> str:
    if job.requested:
        return f"if no execution works on it: s3commit commit {typed}"
    return f"if its driver died: s3commit commit {typed}, or s3commit abort {typed}"
