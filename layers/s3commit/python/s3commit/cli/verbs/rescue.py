"""``s3commit rescue``."""

from __future__ import annotations

import click

from s3commit.cli.arguments import AGE, Parsed
from s3commit.cli.job.snapshot import require_data
from s3commit.cli.output.rescue import RescueReport, tell
from s3commit.cli.printer import Printer
from s3commit.cli.rescue.jobs import S3AJob, find_jobs, parse_target
from s3commit.cli.rescue.judgement import (
    Judgement,
    judge,
    refuse_if_alive,
    refuse_in_doubt,
    refuse_to_commit,
)
from s3commit.cli.rescue.requests import abort_job, await_end, commit_job, remove_shared
from s3commit.cli.session import Session
from s3commit.cli.verb import USAGE, Problem, dry_run_option, verb
from s3commit.core.model.errors import NotFoundError
from s3commit.core.model.job import Destination

COMMIT, ABORT = "commit", "abort"


@verb(changes=True)
@click.argument("target", metavar="JOBDIR|DESTINATION", type=Parsed("target", parse_target))
@click.option("--commit", "commit", is_flag=True, help="Finish the jobs.")
@click.option("--abort", "abort", is_flag=True, help="Give the jobs up.")
@click.option("--partial", is_flag=True, help="With --commit: also if tasks seem not to be done.")
@click.option(
    "--older-than",
    type=AGE,
    default="1h",
    show_default=True,
    help="Leave a job alone that was alive more lately: 15m, 12h, 2d.",
)
@click.option(
    "--timeout", type=AGE, default="15m", show_default=True, help="How long to wait for the end."
)
@click.option(
    "--reason", default="s3commit rescue", show_default=True, help="With --abort: for the result."
)
@dry_run_option
def rescue(
    session: Session,
    printer: Printer,
    *,
    target: tuple[Destination, str | None],
    commit: bool,
    abort: bool,
    partial: bool,
    older_than: int,
    timeout: int,
    reason: str,
    dry_run: bool,
) -> None:
    """Finish or abort S3A jobs whose driver died.

    Finds the jobs that Hadoop's magic committer has left at DESTINATION, or the one in JOBDIR,
    and says what can be done with them. Changes nothing without --commit or --abort.

    --commit hands them to the pipeline: all files of a job get visible, or none. --abort has
    their uploads aborted. Be sure that driver and tasks are dead; one that wakes up later finds
    its uploads gone. Refused (exit 3), with nothing changed, if one of the jobs can't be
    committed whole, or was alive lately; also --abort, if nobody can tell whether a file that is
    visible is the job's.
    """
    if commit and abort:
        raise Problem("--commit and --abort exclude each other", USAGE)
    word = COMMIT if commit else ABORT if abort else None
    destination, job_id = target
    jobs, strangers = find_jobs(session, destination, job_id)
    if job_id and not jobs:
        raise NotFoundError(
            f"no job {job_id} of S3A's is left behind at {destination.uri}: it has ended, has no"
            " finished task, or is none of S3A's",
            code="NO_JOB",
        )
    found = [judge(session, job) for job in jobs if not job.ended]
    report = RescueReport(destination, word, dry_run, found, strangers)
    for one in found if word else ():
        _refuse(one, word == COMMIT, partial, older_than)
    if report.changes:
        _act(session, report, jobs, reason, timeout)
    tell(printer, report)
    for result in report.results.values() if word == COMMIT else ():
        require_data(result)


def _refuse(one: Judgement, commit: bool, partial: bool, older_than: int) -> None:
    if one.job.requested:
        return  # its request decides
    refuse_if_alive(one, older_than)
    refuse_in_doubt(one)
    if commit:
        refuse_to_commit(one, partial=partial)


def _act(
    session: Session, report: RescueReport, jobs: list[S3AJob], reason: str, timeout: int
) -> None:
    for one in report.found:
        if report.word == COMMIT:
            commit_job(session, one)
        else:
            abort_job(session, one, reason)
    for job in jobs:
        if timeout and not job.ended:
            report.results[job.directory.job_id] = await_end(session, job, timeout)
        if timeout or job.ended:
            remove_shared(session, job)
