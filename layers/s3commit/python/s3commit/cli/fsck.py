"""``s3commit fsck``."""

from typing import Any

import click

from s3commit.cli.options import DESTINATION, table_option, with_session
from s3commit.cli.render import fields
from s3commit.cli.session import Session
from s3commit.core.fsck import OpenJob, check
from s3commit.core.model.destination import Destination


@click.command()
@click.argument("destination", type=DESTINATION)
@table_option
@with_session
def fsck(session: Session, *, destination: Destination) -> None:
    """Compare a table with what was committed to it.

    Reports the files of commit manifests that are missing or changed, and the jobs without a
    result, each with its repair. Changes nothing.

    Exit code 1: something is missing, changed or unreadable.
    """
    document = fsck_document(session, destination)
    session.out.facts(document)
    if not document["sound"]:
        raise click.exceptions.Exit(1)


def fsck_document(session: Session, destination: Destination) -> dict[str, Any]:
    """The findings of `check`, and the command that repairs each."""
    ledger = session.trusted_ledger(session.named_table())
    report = check(session.store, ledger, session.parallel, destination)
    return {
        "destination": report.destination.uri,
        "sound": report.is_sound,
        **fields(report, "jobs", "files", "bytes"),
        "replacedFiles": report.replaced,
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
