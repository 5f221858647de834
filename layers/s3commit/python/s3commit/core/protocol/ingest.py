"""Before the request: manifests arrive, in any order, any number of times, or never."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from s3commit.core.errors import InvalidInputError, NotFoundError
from s3commit.core.layout import JobDirectory, parse_manifest_key
from s3commit.core.manifest import MAX_MANIFEST_BYTES, decode_pendingset, digest
from s3commit.core.model import AttemptRecord, JobRecord, PendingSet
from s3commit.core.protocol.neighbours import Neighbours
from s3commit.core.protocol.pipeline import Pipeline, read_spec
from s3commit.core.protocol.remembered import open_unknown
from s3commit.core.states import ENDED


@dataclass(frozen=True, slots=True)
class Arrival:
    """What became of one announced manifest.

    ``attempt`` is to be noted in the ledger; ``late`` counts the uploads aborted because the job
    had ended; ``gone`` means that the manifest is there no more, which is fine.
    """

    key: str
    attempt: AttemptRecord | None = None
    late: int = 0
    gone: bool = False


def judge_arrival(pipeline: Pipeline, bucket: str, key: str) -> Arrival:
    """Read and judge the manifest at ``key``; abort it on arrival if its job has ended (I3, I4).

    Repeating it is harmless. Raises `InvalidInputError` for a manifest that is not acceptable:
    a request that counts it will be refused for the same reason.
    """
    place, task_id, attempt_id = parse_manifest_key(bucket, key)
    try:
        stored = pipeline.store.get(bucket, key, max_bytes=MAX_MANIFEST_BYTES)
    except NotFoundError:
        return Arrival(key, gone=True)
    record = _record(pipeline, place)
    pending = decode_pendingset(stored.body, place, names=record.names)
    if record.state in ENDED:
        return Arrival(key, late=_abort_late(pipeline, place, key, stored.facts.etag, pending))
    return Arrival(
        key,
        AttemptRecord(
            job_id=place.job_id,
            task_id=task_id,
            attempt_id=attempt_id,
            manifest=key,
            sha256=digest(stored.body),
            files=len(pending.files),
            bytes=pending.bytes,
            rows=pending.rows,
        ),
    )


def note_arrivals(pipeline: Pipeline, arrivals: Iterable[Arrival]) -> int:
    """Note the attempts in the ledger, all in one go; return how many there were."""
    attempts = [arrival.attempt for arrival in arrivals if arrival.attempt]
    pipeline.ledger.record_attempts(attempts)
    return len(attempts)


def _record(pipeline: Pipeline, place: JobDirectory) -> JobRecord:
    record = pipeline.ledger.job(place.job_id)
    if record is None:
        record = open_unknown(pipeline, place, read_spec(pipeline, place))
    if record.directory != place.prefix:
        raise InvalidInputError(
            f"job {place.job_id} is already at {record.destination.uri}", code="JOB_ID_TAKEN"
        )
    return record


def _abort_late(
    pipeline: Pipeline, place: JobDirectory, key: str, etag: str, pending: PendingSet
) -> int:
    # The codec has seen to it that each file lies in the destination, and under a unique name is
    # the job's; an exact one must not be another job's (I5). A committed file has no upload left,
    # so aborting a counted one's is a no-op.
    neighbours = Neighbours(pipeline.store, place)
    files = [file for file in pending.files if not neighbours.own(file.key)]
    for file in files:
        pipeline.store.abort_upload(file.bucket, file.key, file.upload_id)
    pipeline.store.delete(place.bucket, key, if_match=etag)
    return len(files)
