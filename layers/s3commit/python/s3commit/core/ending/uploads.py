"""The open uploads of a job, and how they end (I4, I5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.job.documents import opened_at
from s3commit.core.job.listings import list_uploads
from s3commit.core.model.limits import ABORT_ROUNDS
from s3commit.core.model.pending import PendingFile
from s3commit.core.ownership.named_uploads import uploads_of_job
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.clock import CallTime
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.ports.objects import ObjectStore, OpenUpload


def abort_uploads(ports: Ports, directory: JobDirectory, time: CallTime | None = None) -> bool:
    """Abort every open upload of the job, counted or not; True if none is left (I4, I5).

    Each as it is listed: a call that ends before, by ``time`` or by a crash, leaves less to the
    next one.

    The job's id in the file name, before the first dot, proves whose an upload is; manifests are
    not asked, since an attempt that was killed has none. Listed again until nothing is left, since
    a task that nobody has stopped yet may open new ones faster than they are aborted; and each is
    aborted until ListParts does not know it: a part that was under way may have survived the abort
    (https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html).
    """
    left: list[OpenUpload] = []
    listed: Iterable[OpenUpload]
    for _ in range(ABORT_ROUNDS):
        known, is_cut = set(left), time is not None and time.is_cut
        listed = () if is_cut else own_uploads(ports, directory)
        new = (one for one in (time.take(listed) if time else listed) if one not in known)
        found, left = _abort_each(ports, directory, chain(left, new))
        if not found:
            return not is_cut
    return False


def abort_planned(ports: Ports, directory: JobDirectory, files: Iterable[PendingFile]) -> bool:
    """Abort the uploads of these files; True if none is left.

    They are known by their manifests, so no listing has to show them.
    """
    left = [OpenUpload(file.key, file.upload_id, "") for file in files]
    for _ in range(ABORT_ROUNDS):
        _, left = _abort_each(ports, directory, left)
        if not left:
            return True
    return False


def _abort_each(
    ports: Ports, directory: JobDirectory, uploads: Iterable[OpenUpload]
) -> tuple[int, list[OpenUpload]]:
    """Abort each; how many they were, and those of which S3 still holds parts."""
    found = 0
    left = []
    for upload, is_gone in ports.parallel(
        lambda one: (one, abort(ports.store, directory.bucket, one.key, one.upload_id)), uploads
    ):
        found += 1
        if not is_gone:
            left.append(upload)
    return found, left


def own_uploads(ports: Ports, directory: JobDirectory) -> Iterator[OpenUpload]:
    """Every open upload of the job. Raises `LostRaceError` if the ledger has lost it meanwhile."""
    record = ports.ledger.job(directory.ref)
    if record is None:
        raise LostRaceError(f"job {directory.job_id} is not in the ledger any more", None)
    listed = list_uploads(ports, directory.bucket, directory.destination.prefix)
    yield from uploads_of_job(ports, directory, opened_at(ports.store, record), listed)


def abort(store: ObjectStore, bucket: str, key: str, upload_id: str) -> bool:
    """Abort an upload; whether it is gone: S3 may keep parts that were in flight."""
    store.abort_upload(bucket, key, upload_id)
    return not store.upload_is_open(bucket, key, upload_id)
