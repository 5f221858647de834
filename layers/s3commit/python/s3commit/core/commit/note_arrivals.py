"""Before the request: _job.json and manifests arrive, in any order, several times, or never."""

from datetime import datetime

from s3commit.core.documents.job_json import read_spec
from s3commit.core.documents.pendingset import MAX_MANIFEST_BYTES, decode_pendingset
from s3commit.core.formats.layout import JobDirectory, parse_directory, parse_manifest_key
from s3commit.core.formats.strict_json import TOO_LARGE, digest
from s3commit.core.jobs.healing import heal, record_from_s3
from s3commit.core.jobs.rounds import start_execution
from s3commit.core.model.errors import InvalidInputError, NotFoundError, TransientError
from s3commit.core.model.record import AttemptRecord, JobRecord
from s3commit.core.model.states import ENDED
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.executions import Executions
from s3commit.core.ports.objects import listed_at

EVENT_SECONDS = 20  # for which a call heals a ledger; Lambda gives it a minute


def note_job(ports: Ports, bucket: str, key: str) -> None:
    """Open the job in the ledger, whose ``_job.json`` has been put.

    Raises `InvalidInputError` for one that is not acceptable.
    """
    directory = parse_directory(bucket, key)
    if key == directory.job and listed_at(ports.store, bucket, key) is not None:
        _record(ports, directory)


def note_manifest(
    ports: Ports, executions: Executions, bucket: str, key: str, *, size: int = 0
) -> bool:
    """Note the counts of the manifest at ``key``, for people who watch the job; False if none are.

    If its job has ended, an execution tidies up after it (I4): one an hour at most, however many
    manifests come late. ``size`` is the event's: a manifest that is too large is not read.
    Repeating it is harmless. Raises `InvalidInputError` for a manifest that is not acceptable: a
    request that counts it will be refused for the same reason.
    """
    directory, task_id, attempt_id = parse_manifest_key(bucket, key)
    if size > MAX_MANIFEST_BYTES:
        raise InvalidInputError(
            f"{key[:200]!r} has {size} bytes; at most {MAX_MANIFEST_BYTES} are read", code=TOO_LARGE
        )
    try:
        stored = ports.store.get(bucket, key, max_bytes=MAX_MANIFEST_BYTES)
    except NotFoundError:
        return False
    record = _record(ports, directory)
    if record.state in ENDED:
        this_hour = datetime.fromisoformat(ports.clock.now()).replace(minute=0, second=0)
        start_execution(executions, directory, this_hour.isoformat())
        return False
    pending = decode_pendingset(stored.body, directory, key[len(directory.prefix) :])
    attempt = AttemptRecord(
        ref=record.ref,
        task_id=task_id,
        attempt_id=attempt_id,
        manifest=key,
        sha256=digest(stored.body),
        files=len(pending.files),
        bytes=pending.bytes,
        rows=pending.rows,
    )
    ports.ledger.record_attempt(attempt)
    return True


def _record(ports: Ports, directory: JobDirectory) -> JobRecord:
    record = ports.ledger.job(directory.ref)
    if record is not None:
        return record
    if heal(ports, directory.bucket, directory, most=EVENT_SECONDS):
        raise TransientError("the ledger is empty and is being healed; the event comes again")
    return ports.ledger.open_job(record_from_s3(ports, directory, read_spec(ports, directory)))
