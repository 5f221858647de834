"""The open uploads of a job, and how they end (I4, I5)."""

from __future__ import annotations

from collections.abc import Iterator

from s3commit.core.formats.layout import JobDirectory, belongs_to_job
from s3commit.core.job.locations import job_directories
from s3commit.core.model.job import Names
from s3commit.core.model.limits import ABORT_ROUNDS
from s3commit.core.model.record import JobRecord
from s3commit.core.ownership.named_uploads import named_uploads
from s3commit.core.ownership.other_jobs import OtherJobs
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.ports.objects import ObjectStore, OpenUpload


def abort_uploads(ports: Ports, directory: JobDirectory) -> bool:
    """Abort every open upload of the job, counted or not; True if none is left (I4, I5).

    The job's id in the file name, before the first dot, proves whose an upload is; manifests are
    not asked, since an attempt that was killed has none, save where names are exact. Listed again
    until nothing is left, since a task that nobody has stopped yet may open new ones faster than
    they are aborted; and each is aborted until ListParts does not know it: a part that was under
    way may have survived the abort
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html).
    """
    left: set[OpenUpload] = set()
    for _ in range(ABORT_ROUNDS):
        left.update(own_uploads(ports, directory))
        if not left:
            return True
        found = sorted(left, key=lambda upload: (upload.key, upload.upload_id))
        answers = ports.parallel(
            lambda one: (one, abort(ports.store, directory.bucket, one.key, one.upload_id)), found
        )
        left = {upload for upload, is_gone in answers if not is_gone}
    return False


def own_uploads(ports: Ports, directory: JobDirectory) -> Iterator[OpenUpload]:
    """Every open upload of the job, at each of its places; one may come twice.

    Raises `LostRaceError` if the ledger has lost the job meanwhile: nobody knows then how its files
    are named, and to find no uploads would mean that what names them may go.
    """
    record = ports.ledger.job(directory.ref)
    if record is None:
        raise LostRaceError(f"job {directory.job_id} is not in the ledger any more", None)
    for one in job_directories(ports, directory, record):
        yield from _uploads_at(ports, one, record)


def _uploads_at(ports: Ports, directory: JobDirectory, record: JobRecord) -> Iterator[OpenUpload]:
    """By name: what was begun before the job is another program's, whatever its name says (I12)."""
    other_jobs = OtherJobs(ports.store, directory)
    for upload in ports.store.list_uploads(directory.bucket, directory.destination.prefix):
        is_named_so = belongs_to_job(upload.key, directory.job_id)
        if is_named_so and upload.initiated >= record.opened_at and not other_jobs.own(upload.key):
            yield upload
    if record.names is Names.EXACT:
        yield from named_uploads(ports, directory)


def abort(store: ObjectStore, bucket: str, key: str, upload_id: str) -> bool:
    """Abort an upload; whether it is gone: S3 may keep parts that were in flight."""
    store.abort_upload(bucket, key, upload_id)
    return not store.upload_is_open(bucket, key, upload_id)
