"""``s3commit rescue``."""

from typing import Any

import click

from s3commit.cli import s3a
from s3commit.cli.options import Parsed, age_option, with_session
from s3commit.cli.render import CommandError, age
from s3commit.cli.session import Session
from s3commit.core.model.amounts import many
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import JobRefusedError, NotFoundError


@click.command()
@click.argument("target", metavar="JOBDIR|DESTINATION", type=Parsed("target", s3a.parse_target))
@click.option("--commit", is_flag=True, help="Complete the uploads of the job in JOBDIR.")
@click.option("--abort", metavar="SHOWN", help="Abort the job's open uploads, as they were shown.")
@click.option("--partial", is_flag=True, help="With --commit: even if something is missing.")
@age_option("--older-than", default="1h", about="Refuse a job that was active since: 15m, 12h, 2d.")
@with_session
def rescue(
    session: Session,
    *,
    target: tuple[Destination, str],
    commit: bool,
    abort: str | None,
    partial: bool,
    older_than: int,
) -> None:
    """Finish or abort an S3A job whose driver died.

    Lists the jobs that Hadoop's magic committer left at DESTINATION, or the uploads of the one in
    JOBDIR. --commit completes the job's uploads, one by one, and overwrites nothing. --abort
    aborts the open ones; SHOWN is the code that was printed with them. Nothing visible is deleted.

    This works in S3 alone, with your own rights, without the pipeline. Be sure that driver and
    tasks are dead. Refused (exit 3), with nothing changed: a job that was active recently, and a
    commit of a job that can't be committed whole.
    """
    destination, root = target
    acts = commit or abort is not None
    if acts and not root:
        raise click.UsageError("--commit and --abort need the directory of one job")
    if commit and abort is not None:
        raise click.UsageError("--commit and --abort exclude each other")
    session.typed["dry_run"] = not acts
    found = s3a.find_jobs(session, destination, root)
    if root and not found:
        raise NotFoundError(f"no S3A job is at s3://{destination.bucket}/{root}", code="NO_JOB")
    if acts:
        _refuse(found[0], shown=abort, partial=partial, older_than=older_than)
        session.begun = (
            "the command stopped partway; changes so far remain. Run it again without --commit or"
            " --abort to check"
        )
        (s3a.complete if commit else s3a.abort)(session, found[0])
        found = s3a.find_jobs(session, destination, root) or found
    documents = [_document(job) for job in found]
    if root and not session.out.json:
        session.out.table(documents[0], "uploads", _UPLOADS)
    else:
        session.out.table({"destination": destination.uri, "jobs": documents}, "jobs", _JOBS)
    _sum_up(session, destination, found, root)
    if commit and (left := sum(found[0].counts[one] for one in (s3a.OPEN, s3a.TAKEN, s3a.GONE))):
        raise CommandError(f"{many(left, 'file')} of the job did not become visible", 3)


def _refuse(job: s3a.S3AJob, *, shown: str | None, partial: bool, older_than: int) -> None:
    if job.quiet < older_than:
        raise JobRefusedError(
            f"the job was active {age(job.quiet)} ago; make sure that its driver is dead, then"
            f" wait until it has been inactive for {age(older_than)}, or shorten that with"
            " --older-than",
            code="ALIVE",
        )
    if shown is not None:
        if shown != job.shown:
            line = f"the open uploads have changed since they were shown; look again: {job.command}"
            raise JobRefusedError(line, code="SHOWN")
    elif job.problems:
        raise JobRefusedError(job.problems[0], code="CANNOT_COMMIT")
    elif job.doubts and not partial:
        doubts = ", ".join(job.doubts)
        raise JobRefusedError(f"{doubts}; to commit the rest, add --partial", code="INCOMPLETE")


def _document(job: s3a.S3AJob) -> dict[str, Any]:
    uploads = [
        {"key": key, "uploadId": upload_id, "bytes": file and file.length, "state": state}
        for (key, upload_id), (file, state) in sorted(job.uploads.items())
    ]
    return {
        "jobId": job.job_id,
        "directory": job.uri,
        "quietSeconds": job.quiet,
        "tasks": len(job.manifests),
        "missingTasks": job.missing_tasks,
        "bytes": sum(file.length for file, _ in job.uploads.values() if file),
        **{state: job.counts[state] for state in s3a.STATES},
        "problems": job.problems,
        "shown": job.shown,
        "uploads": uploads,
    }


_UPLOADS = "key as FILE, bytes as SIZE, state"
_JOBS = f"jobId as JOB, quietSeconds, tasks, bytes as SIZE, {', '.join(s3a.STATES)}"


def _sum_up(session: Session, destination: Destination, found: list[s3a.S3AJob], root: str) -> None:
    for job in found:
        session.out.note(*(f"{job.job_id}: {text}" for text in (*job.problems, *job.doubts)))
    if not found:
        session.out.note(f"no unfinished S3A job at {destination.uri}")
    elif not root:
        session.out.note(f"see the uploads of a job: {found[0].command}")
    elif uploads := found[0].still_open:
        command, count = found[0].command, many(len(uploads), "upload")
        if not found[0].problems and found[0].counts[s3a.OPEN]:
            session.out.note(f"to complete its files: {command} --commit")
        session.out.note(f"to abort its {count}: {command} --abort {found[0].shown}")
    else:
        session.out.note(f"none of its uploads is open; its directory remains: {found[0].uri}")
