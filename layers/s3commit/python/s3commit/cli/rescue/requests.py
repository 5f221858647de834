"""Asking for the end of an S3A job in the place of its driver, and what goes with it."""

from __future__ import annotations

from contextlib import suppress

from s3commit.cli.rescue.jobs import S3AJob
from s3commit.cli.rescue.judgement import Judgement
from s3commit.cli.session import Session
from s3commit.core.formats.manifest import MAX_MANIFEST_BYTES
from s3commit.core.model.errors import NotFoundError, PreconditionError
from s3commit.core.model.job import CommitRequest
from s3commit.core.model.pending import PendingFile
from s3commit.core.ownership.identity import is_provably_ours
from s3commit.writer.conditional_put import put_own
from s3commit.writer.requests import Patience, request_abort, request_commit

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
