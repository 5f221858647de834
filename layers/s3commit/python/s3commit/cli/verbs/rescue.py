"""``s3commit rescue``."""

from __future__ import annotations

from typing import Any

import click

from s3commit.cli.arguments import Parsed, age_option
from s3commit.cli.job.snapshot import await_outcome
from s3commit.cli.printer import Column, Printer
from s3commit.cli.rescue.jobs import S3AJob, find_jobs, parse_target
from s3commit.cli.rescue.judgement import UNFINISHED, Judgement, judge, refuse
from s3commit.cli.rescue.requests import abort_job, commit_job, remove_shared
from s3commit.cli.session import Session
from s3commit.cli.text import age, amount, fields, many, size
from s3commit.cli.verb import USAGE, Problem, dry_run_option, verb
from s3commit.core.model.errors import NotFoundError
from s3commit.core.model.job import Destination, JobResult
from s3commit.writer.requests import require_committed


@verb(changes=True)
@click.argument("target", metavar="JOBDIR|DESTINATION", type=Parsed("target", parse_target))
@click.option("--commit", "commit", is_flag=True, help="Finish the jobs.")
@click.option("--abort", "abort", is_flag=True, help="Give the jobs up.")
@click.option("--partial", is_flag=True, help="With --commit: also if tasks seem not to be done.")
@age_option(
    "--older-than", default="1h", told="Leave a job alone that was alive more lately: 15m, 12h, 2d."
)
@age_option("--timeout", default="15m", told="How long to wait for the end.")
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
    word = "commit" if commit else "abort" if abort else None
    destination, job_id = target
    jobs, strangers = find_jobs(session, destination, job_id)
    if job_id and not jobs:
        raise NotFoundError(
            f"no job {job_id} of S3A's is left behind at {destination.uri}: it has ended, has no"
            " finished task, or is none of S3A's",
            code="NO_JOB",
        )
    found = [judge(session, job) for job in jobs if not job.ended]
    for one in found if word else ():
        if not one.job.requested:  # else its request decides
            refuse(one, commit=commit, partial=partial, older_than=older_than)
    changes = word is not None and not dry_run
    for one in found if changes else ():
        commit_job(session, one) if commit else abort_job(session, one, reason)
    results = _await_all(session, jobs, timeout) if changes else {}
    if changes and not printer.json:
        for one in found:
            printer.line(_outcome(one, results.get(one.job.job_id), str(word)))
    else:
        about = {"destination": destination.uri, "action": word, "dryRun": not changes}
        jobs_found = [_document(one, results.get(one.job.job_id), changes) for one in found]
        printer.listing({**about, "leftOut": strangers}, "jobs", jobs_found, _COLUMNS)
    _sum_up(printer, destination, found, strangers, word=word, changes=changes)
    for result in results.values() if commit else ():
        require_committed(result)


def _await_all(session: Session, jobs: list[S3AJob], timeout: int) -> dict[str, JobResult]:
    """How each job ends, by its id, if there is time for that; what it has shared goes then."""
    results = {}
    for job in jobs:
        if timeout and not job.ended:
            results[job.job_id] = await_outcome(session, job.directory, timeout)
        if timeout or job.ended:
            remove_shared(session, job)
    return results


def _document(one: Judgement, result: JobResult | None, changes: bool) -> dict[str, Any]:
    return {
        "jobId": one.job.job_id,
        "directory": one.job.uri,
        "requested": one.job.requested or changes,
        "quietSeconds": one.quiet,
        "tasksWithoutPendingset": one.began,
        **fields(one, "tasks", "files", "bytes"),
        "visibleFiles": len(one.visible),
        "unfinishedUploads": [fields(upload, "key", "upload_id") for upload in one.unfinished],
        "problems": [fields(problem, "code", "message") for problem in one.reasons],
        "outcome": result.outcome if result else None,
    }


def _can_commit(job: dict[str, Any]) -> str:
    if job["requested"]:
        return "requested"
    code = next((problem["code"] for problem in job["problems"]), None)
    if code is None:
        return "yes"
    return "with --partial" if code == UNFINISHED else f"no: {code}"


_COLUMNS = (
    Column("JOB", "jobId"),
    Column("QUIET", "quietSeconds", age),
    Column("TASKS", "tasks", right=True),
    Column("FILES", "files", right=True),
    Column("SIZE", "bytes", size, right=True),
    Column("VISIBLE", "visibleFiles", right=True),
    Column("UNFINISHED", "unfinishedUploads", lambda uploads: str(len(uploads)), right=True),
    Column("COMMIT", text=_can_commit),
)


def _outcome(one: Judgement, result: JobResult | None, word: str) -> str:
    job = f"job {one.job.job_id}"
    if result is None:
        return f"{job}: {word} requested; follow it: s3commit watch {one.job.directory.uri}"
    content = amount(result.files, result.bytes, result.rows)
    return f"{job}: {result.outcome}{f', {content}' if result.files else ''}"


def _sum_up(
    printer: Printer,
    destination: Destination,
    found: list[Judgement],
    strangers: list[str],
    *,
    word: str | None,
    changes: bool,
) -> None:
    for one in () if changes else found:
        for problem in one.reasons:
            printer.summary(f"{one.job.job_id}: {problem.message} [{problem.code}]")
    for directory in strangers:
        printer.summary(
            f"s3://{destination.bucket}/{directory} is left out: its id is no UUID; see:"
            f" s3commit uploads {destination.uri}"
        )
    left = f"left behind at {destination.uri}"
    if not found:
        printer.summary(f"no job of S3A's is {left}")
    elif not changes:
        where = found[0].job.uri if len(found) == 1 else destination.uri
        hint = f"dry run: would {word}" if word else "to finish or to give up"
        options = f"--{word}" if word else "--commit|--abort"
        printer.summary(
            f"{many(len(found), 'job')} of S3A's {left}; nothing was changed; {hint}: s3commit"
            f" rescue {where} {options}"
        )
