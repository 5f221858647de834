"""``s3commit ls``."""

from os.path import commonprefix
from typing import Any

import click

from s3commit.cli.job_facts import unreadable
from s3commit.cli.options import DESTINATION, JOB, NamedJob, with_session
from s3commit.cli.render import fields
from s3commit.cli.session import Session
from s3commit.cli.short_ids import whole_id
from s3commit.cli.undone import fate_of
from s3commit.core.documents.commit_manifest import (
    CommitHeader,
    not_committed,
    read_commit_header,
    stream_commit_manifest,
)
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs.past_commits import manifests_at, undone_by
from s3commit.core.model.amounts import amount, many
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import NOT_READABLE, InvalidInputError, NotFoundError

_JOBS = (
    "decidedAt, fileCount as FILES, bytes as SIZE, rows, jobId as JOB, undoes,"
    " undoneBy as UNDONE BY, problem"
)
_FILES = "bytes as SIZE, rows, gone, path as FILE"


@click.command()
@click.argument("destination", type=DESTINATION)
@click.option("--files", "job", type=JOB, metavar="JOB", help="The files of one committed job.")
@with_session
def ls(session: Session, *, destination: Destination, job: NamedJob | None) -> None:
    """List the committed jobs of a destination.

    The oldest job comes first. Times are UTC. FILES are those that it made visible; UNDONE BY has
    the first digits of the id of the undo that has removed them. The list comes from _commits/,
    whose manifests never change: readers that need a snapshot read them too. One that can't be
    read, or that came with a copy of another table, is a row that says so. With a job, lists its
    files, and marks those that no longer exist: an undo or a later job has removed them, or someone
    deleted them.
    """
    if job is None:
        _list_jobs(session, destination)
    else:
        job_id = whole_id(session, job, destination) if isinstance(job, str) else job.job_id
        _list_files(session, JobDirectory(destination, job_id))


def _list_jobs(session: Session, destination: Destination) -> None:
    leaving = set[str]()

    def read(directory: JobDirectory) -> dict[str, Any]:
        try:
            header = read_commit_header(session.store, directory)
            leaving.update([header.job_id] * header.leaves_removed)
            return _job_document(header)
        except NOT_READABLE as error:
            problem = unreadable(directory.commits[len(destination.prefix) :], error)
            return {**_job_document(None, problem), "jobId": directory.job_id}

    manifests = manifests_at(session.store, destination)
    found = session.parallel(read, [directory for directory, _ in manifests])
    jobs = sorted(found, key=lambda job: (job["decidedAt"] or "", job["jobId"]))
    undone = undone_by(((job["jobId"], job["undoes"]) for job in jobs if job["undoes"]), leaving)
    jobs = [{**job, "undoneBy": undone.get(job["jobId"])} for job in jobs]
    session.out.table({"destination": destination.uri, "jobs": jobs}, "jobs", _JOBS)
    known = [job for job in jobs if job["problem"] is None]
    files, total = sum(job["fileCount"] for job in known), sum(job["bytes"] for job in known)
    each = f": {amount(files, total, None)} made visible, counting removed ones" if known else ""
    without = f", {len(undone)} undone" if undone else ""
    session.out.note(f"{many(len(known), 'committed job')} at {destination.uri}{without}{each}")
    if len(known) < len(jobs):
        lists = many(len(jobs) - len(known), "list")
        session.out.note(f"{lists} cannot be read, or came with a copy of another table")


def _list_files(session: Session, directory: JobDirectory) -> None:
    job_id, place = directory.job_id, directory.destination
    try:
        header, files = stream_commit_manifest(session.store, directory)
        documents = [
            {
                **fields(file, "key", "rows", "etag"),
                "path": file.key.removeprefix(place.prefix),
                "bytes": file.length,
                "gone": False,
            }
            for file in files
        ]
    except NotFoundError as error:
        if error.code != NotFoundError.code:
            raise
        raise NotFoundError(not_committed(directory), code="NOT_COMMITTED") from error
    except InvalidInputError as error:
        line = unreadable(f"s3://{directory.bucket}/{directory.commits}", error)
        raise InvalidInputError(line, code=error.code) from error
    gone = _gone(session, place, [one["key"] for one in documents])
    for one in documents:
        one["gone"] = one["key"] in gone
    session.out.table({**_job_document(header), "files": documents}, "files", _FILES)
    session.out.note(f"{many(len(documents), 'file')} of job {job_id} at {header.destination}")
    if gone:
        which = "all of them" if len(gone) == len(documents) else f"{len(gone)} of them"
        why = fate_of(session, directory).means.removeprefix("ended: ")
        session.out.note(f"{which} missing: {why or 'replaced by a later job, or deleted'}")


def _job_document(job: CommitHeader | None, problem: str | None = None) -> dict[str, Any]:
    members = fields(
        job, "job_id", "decided_at", "bytes", "rows", "partition_by", "idempotency_key"
    )
    more = {"fileCount": job.files, "undoes": job.undoes or None} if job else {}
    return {**members, "fileCount": None, "undoes": None, **more, "problem": problem}


def _gone(session: Session, destination: Destination, keys: list[str]) -> set[str]:
    """The keys of a job's files that no longer exist; fsck reports those that changed.

    A job that replaces removes the files of those before it; so do people. Requests: one for each
    1,000 objects below what the files' keys have in common.
    """
    gone = set(keys)
    if gone:
        prefix = commonprefix(list(gone))  # noqa: RUF071 - keys, not paths
        gone.difference_update(one.key for one in session.store.list(destination.bucket, prefix))
    return gone
