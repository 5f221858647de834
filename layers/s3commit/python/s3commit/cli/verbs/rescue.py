"""``s3commit rescue``."""

from __future__ import annotations

from contextlib import suppress

import click

from s3commit.cli.arguments import Parsed, age_option
from s3commit.cli.job.snapshot import await_outcome, require_data
from s3commit.cli.output.rescue import RescueReport, tell
from s3commit.cli.printer import Printer
from s3commit.cli.rescue.jobs import S3AJob, find_jobs, parse_target
from s3commit.cli.rescue.judgement import Judgement, judge, refuse
from s3commit.cli.session import Session
from s3commit.cli.verb import USAGE, Problem, dry_run_option, verb
from s3commit.core.formats.manifest import MAX_MANIFEST_BYTES
from s3commit.core.model.errors import (
    NotFoundError,
    PreconditionError,
)
from s3commit.core.model.job import CommitRequest, Destination
from s3commit.core.model.pending import PendingFile
from s3commit.core.ownership.identity import is_provably_ours
from s3commit.writer.conditional_put import put_own
from s3commit.writer.requests import Patience, request_abort, request_commit

COMMIT, ABORT = "commit", "abort"


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
        if not one.job.requested:  # else its request decides
            refuse(one, commit=commit, partial=partial, older_than=older_than)
    if report.changes:
        _act(session, report, jobs, reason, timeout)
    tell(printer, report)
    for result in report.results.values() if word == COMMIT else ():
        require_data(result)


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
            report.results[job.directory.job_id] = await_outcome(session, job.directory, timeout)
        if timeout or job.ended:
            remove_shared(session, job)


ASKING = 60.0  # seconds to get a request through


def commit_job(session: Session, found: Judgement) -> None:
    """Hand the job to the pipeline, to be committed. Raises as `request_commit` does."""
    _make_ready(session, found)
    directory = found.job.directory
    patience = Patience(session.environment, ASKING)
    request_commit(session.store, directory, CommitRequest(directory.job_id, None), patience)


def abort_job(session: Session, found: Judgement, reason: str) -> None:
    """Have the job aborted. Raises `PreconditionError` if its commit was requested before.

    What its driver had made visible the pipeline does not delete, since it has completed nothing of
    the job: that is done here, by the rights of the person who gives the job up.
    """
    _make_ready(session, found)
    answer = request_abort(session.store, found.job.directory, reason)
    if not answer.accepted:
        raise PreconditionError(answer.message, code="OTHER_REQUEST")
    for _done in session.parallel(lambda file: _delete(session, file), found.visible):
        pass


def _delete(session: Session, file: PendingFile) -> None:
    facts = session.store.head(file.bucket, file.key)
    if facts is not None and is_provably_ours(file, facts):
        with suppress(PreconditionError):  # another one by now
            session.store.delete(file.bucket, file.key, if_match=facts.etag)


def remove_shared(session: Session, job: S3AJob) -> None:
    """Delete what an ended job has left in ``__magic/``, as it was seen."""
    if not job.shared:
        return
    for listed in job.objects:
        with suppress(PreconditionError):  # written anew, by something that is alive
            session.store.delete(job.directory.bucket, listed.key, if_match=listed.etag)


def _make_ready(session: Session, found: Judgement) -> None:
    """Before the request, so that nothing which still runs can add to the job.

    Uploads that no pendingset names are aborted, and the manifests of a shared directory are put
    into one of the job's own. Repeating it is harmless; once there is a request it is done.
    """
    job, directory = found.job, found.job.directory
    if job.requested:
        return
    for _done in session.parallel(
        lambda upload: session.store.abort_upload(directory.bucket, upload.key, upload.upload_id),
        found.unfinished,
    ):
        pass
    if job.shared:
        for key in (*job.manifests, *job.pending):
            _adopt(session, job, key)


def _adopt(session: Session, job: S3AJob, key: str) -> None:
    """Copy a manifest, byte for byte, to where it lies from Hadoop 3.4 on."""
    bucket = job.directory.bucket
    with suppress(NotFoundError):
        stored = session.store.get(bucket, key, max_bytes=MAX_MANIFEST_BYTES)
        put_own(session.store, bucket, job.adopted(key), stored.body)
