"""The job's record in the ledger: made, and found."""

from s3commit.core.documents.job_json import JobSpec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.locks import key_digest
from s3commit.core.model.record import JobRecord, first_generation
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import Ledger, LostRaceError


def new_record(spec: JobSpec, directory: JobDirectory, now: str) -> JobRecord:
    """The ledger's first record of a job."""
    return JobRecord(
        job_id=directory.job_id,
        destination=directory.destination,
        state=JobState.OPEN,
        generation=first_generation(now),
        created_at=now,
        updated_at=now,
        conflict=spec.conflict,
        scope=spec.scope,
        partition_by=spec.partition_by,
        idempotency_key=spec.idempotency_key,
        job_sha256=spec.sha256,
        opened_at=spec.put_at,
        undoes=spec.undoes,
        note=spec.note,
        labels=spec.labels,
    )


def record_of(ports: Ports, directory: JobDirectory) -> JobRecord | None:
    """The job's record, if the ledger has one.

    Raises `LostRaceError` for a record of another directory, should two refs ever be the same.
    """
    record = ports.ledger.job(directory.ref)
    if record is not None and JobDirectory.of(record) != directory:
        raise LostRaceError(f"ref {directory.ref} is of {JobDirectory.of(record).uri}", record)
    return record


def committed_holder(ledger: Ledger, record: JobRecord) -> str:
    """The id of another job that is committed with the job's key, by the ledger; empty if none is.

    The job can't be committed any more.
    """
    key = record.idempotency_key
    holder = ledger.key_holder(record.destination, key_digest(key)) if key else None
    if holder is None or holder.job_id == record.job_id:
        return ""
    other = ledger.job(JobDirectory(record.destination, holder.job_id).ref)
    return holder.job_id if other is None or other.state is JobState.COMMITTED else ""
