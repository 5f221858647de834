"""The uploads of a job: whose an upload is, and how the job's own end (I4, I5, I12).

The id in a file's name says whose the upload is. A job above wins: of directories inside each other
with one id, the outer one is the job: a client with rights below the inner one alone can't have
made it.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from s3commit.core.documents.job_json import opened_at
from s3commit.core.formats.layout import JobDirectory, directories_above, owner_of
from s3commit.core.jobs.listings import list_uploads
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import AccessError, InvalidInputError
from s3commit.core.model.limits import ABORT_ROUNDS, S3_CLOCKS
from s3commit.core.model.moments import seconds
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.clock import CallTime
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.ports.objects import ObjectStore, OpenUpload


def has_owner_above(ports: S3Ports, directory: JobDirectory) -> bool:
    """True if a directory above has a job of this id, which then owns the uploads (I12).

    Two listings for each directory above that has jobs: a HEAD takes more rights.
    """
    traces: list[str] = []
    for above in filter(ports.serves, directories_above(directory.destination.prefix)):
        job = JobDirectory(Destination(directory.bucket, above), directory.job_id)
        traces += job.prefix, job.commits
    first = ports.parallel(lambda one: next(ports.store.list(directory.bucket, one), None), traces)
    return any(first)


def is_older(upload: OpenUpload, opened_at: str) -> bool:
    """True if the upload was begun before the job's ``_job.json``: it is another program's (I12).

    Its name, or a manifest, proves nothing: anyone who sees an open upload can open a job with the
    id in its name. ``opened_at`` is when S3 got that document; another of its hosts says when the
    upload was begun, by a clock that may be late (A7).
    """
    is_before = upload.initiated < opened_at  # most are not, and a million are asked about
    return is_before and seconds(upload.initiated, opened_at) > S3_CLOCKS


def uploads_of_job(
    ports: S3Ports, directory: JobDirectory, opened_at: str, uploads: Iterable[OpenUpload]
) -> Iterator[OpenUpload]:
    """The job's of these uploads at its destination, and none that `is_older` (I12).

    ``opened_at`` is when S3 got the ``_job.json``. Without one a name proves nothing: anyone may
    choose it. Nor does it where a directory above has a job of the same id.
    """
    if not opened_at:
        return
    of_outer: bool | None = None
    for upload in uploads:
        if owner_of(upload.key) != directory.job_id or is_older(upload, opened_at):
            continue
        if of_outer is None:
            of_outer = has_owner_above(ports, directory)
        if of_outer:
            return
        yield upload


def abort_uploads(ports: Ports, directory: JobDirectory, time: CallTime) -> bool:
    """Abort every open upload of the job, counted or not; True if none is left (I4, I5).

    Each as it is listed: a call that ends before, by ``time`` or by a crash, leaves less to the
    next one.

    The job's id in the file name, before the first dot, proves whose an upload is; manifests are
    not asked, since an attempt that was killed has none. Listed again until nothing is left, since
    a task that still runs may open new ones faster than they are aborted; and each is
    aborted until ListParts does not know it: a part that was under way may have survived the abort
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html). Those
    outside the deployment's prefixes are left to a lifecycle rule.
    """
    if not ports.serves(directory.prefix):
        return True
    left: list[OpenUpload] = []
    listed: Iterable[OpenUpload]
    for _ in range(ABORT_ROUNDS):
        known, is_cut = set(left), time.is_cut
        listed = () if is_cut else time.take(own_uploads(ports, directory))
        new = (one for one in listed if one not in known)
        again, left, found = left, [], False
        for upload, is_gone in ports.parallel(
            lambda one: (one, abort(ports.store, directory.bucket, one.key, one.upload_id)),
            chain(again, new),
        ):
            found = True
            if not is_gone:  # S3 still holds parts of it
                left.append(upload)
        if not found:
            return not is_cut
    return False


def own_uploads(ports: Ports, directory: JobDirectory) -> Iterator[OpenUpload]:
    """Every open upload of the job. Raises `LostRaceError` if the ledger has lost it since."""
    record = ports.ledger.job(directory.ref)
    if record is None:
        raise LostRaceError(f"job {directory.job_id} is not in the ledger any more", None)
    listed = list_uploads(ports, directory.bucket, directory.destination.prefix)
    yield from uploads_of_job(ports, directory, opened_at(ports.store, record), listed)


def abort(store: ObjectStore, bucket: str, key: str, upload_id: str) -> bool:
    """Abort an upload; True if S3 has none of it left: it may keep parts that were in flight.

    A listing finds an upload with checksums under another account's key, whose parts can't be
    listed: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListParts.html
    """
    store.abort_upload(bucket, key, upload_id)
    try:
        return not store.upload_is_open(bucket, key, upload_id)
    except (AccessError, InvalidInputError):
        return all(one.upload_id != upload_id for one in store.list_uploads(bucket, key))
