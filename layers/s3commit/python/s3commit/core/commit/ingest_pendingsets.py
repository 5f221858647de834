"""Before the request: job.json and manifests arrive, in any order, several times, or never."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from s3commit.core.formats.layout import JobDirectory, parse_directory, parse_manifest_key
from s3commit.core.formats.manifest import MAX_MANIFEST_BYTES, decode_pendingset, digest
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.job.documents import read_spec
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.pending import PendingFile, PendingSet
from s3commit.core.model.record import AttemptRecord, JobRecord
from s3commit.core.model.states import ENDED, UNDER_COMMIT
from s3commit.core.ownership.open_uploads import is_older
from s3commit.core.ownership.other_jobs import is_further_up
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ObjectStore
from s3commit.core.recovery.lost_record import record_from_s3

# A late manifest of more files is left to the sweep, since each takes two requests, and a call has
# a minute.
MOST_ABORTED: Final = 2_000
# If a key has more uploads, which is never by accident, one behind these is left to the sweep or to
# the lifecycle rule.
LOOKED_AT: Final = 1_000


@dataclass(frozen=True, slots=True)
class Arrival:
    """What became of one announced manifest.

    ``attempt`` is to be noted in the ledger; ``late`` counts the uploads aborted because the job
    had ended, 0 where the sweep will do it; ``gone`` means that the manifest is there no more,
    which is fine.
    """

    key: str
    attempt: AttemptRecord | None = None
    late: int = 0
    gone: bool = False


def note_job(ports: Ports, bucket: str, key: str) -> None:
    """A ``job.json`` has been put: the ledger knows the job from now on.

    Raises `InvalidInputError` for one that is not acceptable.
    """
    directory = parse_directory(bucket, key)
    if key == directory.job and ports.store.head(bucket, key) is not None:
        _record(ports, directory)


def judge_arrival(ports: Ports, bucket: str, key: str, *, size: int = 0) -> Arrival:
    """Read and judge the manifest at ``key``; abort it on arrival if its job has ended (I3, I4).

    ``size`` is what its event says: one that is too large is not asked for. Repeating it is
    harmless. Raises `InvalidInputError` for a manifest that is not acceptable: a request that
    counts it will be refused for the same reason.
    """
    directory, task_id, attempt_id = parse_manifest_key(bucket, key)
    if size > MAX_MANIFEST_BYTES:
        raise InvalidInputError(
            f"{key[:200]!r} has {size} bytes; at most {MAX_MANIFEST_BYTES} are read",
            code=TOO_LARGE,
        )
    try:
        stored = ports.store.get(bucket, key, max_bytes=MAX_MANIFEST_BYTES)
    except NotFoundError:
        return Arrival(key, gone=True)
    record = _record(ports, directory)
    pending = decode_pendingset(stored.body, directory)
    if record.state in ENDED and len(pending.files) > MOST_ABORTED:
        return Arrival(key)
    if record.state in ENDED:
        late = _abort_late(ports, directory, record, pending)
        ports.store.delete(directory.bucket, key, if_match=stored.facts.etag)
        return Arrival(key, late=late)
    return Arrival(
        key,
        AttemptRecord(
            ref=record.ref,
            task_id=task_id,
            attempt_id=attempt_id,
            manifest=key,
            sha256=digest(stored.body),
            files=len(pending.files),
            bytes=pending.bytes,
            rows=pending.rows,
        ),
    )


def note_arrivals(ports: Ports, arrivals: Iterable[Arrival]) -> int:
    """Note the attempts in the ledger, all in one go; return how many there were."""
    attempts = [arrival.attempt for arrival in arrivals if arrival.attempt]
    ports.ledger.record_attempts(attempts)
    return len(attempts)


def _record(ports: Ports, directory: JobDirectory) -> JobRecord:
    record = ports.ledger.job(directory.ref)
    if record is not None:
        return record
    found = record_from_s3(ports, directory, read_spec(ports, directory))
    # A decided job whose record was lost: `--rebuild-ledger` puts its claims before the record, and
    # leaves alone one that is there (I6).
    return found if found.state in UNDER_COMMIT else ports.ledger.open_job(found)


def _abort_late(
    ports: Ports, directory: JobDirectory, record: JobRecord, pending: PendingSet
) -> int:
    # The codec has seen to it that each file lies in the destination, and is the job's by its name.
    # A committed file has no upload left.
    if not pending.files or is_further_up(ports.store, directory):
        return 0

    def abort(file: PendingFile) -> bool:
        if record.opened_at and not _is_open_and_own(ports.store, file, record.opened_at):
            return False
        ports.store.abort_upload(file.bucket, file.key, file.upload_id)
        return True

    return sum(ports.parallel(abort, pending.files))


def _is_open_and_own(store: ObjectStore, file: PendingFile, opened_at: str) -> bool:
    """Whether the file's upload is open, and the job's: only a listing says when it was begun."""
    first = islice(store.list_uploads(file.bucket, file.key), LOOKED_AT)
    return any(
        (one.key, one.upload_id) == (file.key, file.upload_id) and not is_older(one, opened_at)
        for one in first
    )
