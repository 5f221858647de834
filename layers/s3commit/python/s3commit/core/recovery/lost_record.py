"""A job that the ledger does not know: new, or forgotten there and remembered in S3 (I8)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.job.decision_record import read_decision
from s3commit.core.job.documents import read_result
from s3commit.core.job.record import new_record
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    NeedsOperatorError,
    NotFoundError,
)
from s3commit.core.model.job import Failure, JobResult, JobSpec, Outcome
from s3commit.core.model.record import JobRecord, PlanFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.ports.objects import listed_at

JOB_ENDED = "JOB_ENDED"


def record_from_s3(ports: Ports, directory: JobDirectory, spec: JobSpec) -> JobRecord:
    """The record of a job that the ledger does not know, as S3 remembers it.

    A job with a result has ended so, and stays so: a ledger forgets ended jobs, and neither a late
    manifest nor a repeated request may open them again (I3). One with a decision record goes on
    from there, or has ended.

    That a job was decided its decision record alone tells: all else a client can write. A job that
    has a list in ``_commits/`` and no decision record was forgotten long ago, and has ended.
    """
    decided = read_decision(ports, directory)
    if decided is not None:
        return decided
    record = new_record(spec, directory, ports.clock.now())
    result = _result(ports, directory)
    if result is not None:
        return replace(
            record,
            state=JobState(result.outcome.value),
            failure=result.error,
            plan=PlanFacts("", 0, result.files, result.bytes, result.rows),
            finished_at=result.finished_at,
        )
    if listed_at(ports.store, directory.bucket, directory.commits) is None:
        return record
    # It may have been decided since the first look, and the ledger lost since.
    return read_decision(ports, directory) or replace(
        record,
        state=JobState.ABORTED,
        failure=Failure(
            JOB_ENDED,
            f"{directory.commits} is there: a job of this id has ended here; write the data again"
            " under a new id",
        ),
        finished_at=record.created_at,
    )


def recorded_failure(ports: Ports, directory: JobDirectory, record: JobRecord) -> Failure | None:
    """Why the undecided job of ``record`` was refused before; None if it was not.

    The ledger was restored to a moment of before: decided anew, the job could replace what its
    client was told is still there (I3). Raises `NeedsOperatorError` (``LEDGER_SET_BACK``) if it was
    decided, and `LostRaceError` if another execution has gone on with the job since.
    """
    decided = read_decision(ports, directory)
    result = _result(ports, directory) if decided is None else None
    refused = result is not None and result.outcome is Outcome.ABORTED
    if decided is None and not refused:
        return None
    # What is seen is put after the ledger has it: it may be of a moment ago.
    found = ports.ledger.job(directory.ref)
    if found is None or (found.state, found.generation) != (record.state, record.generation):
        raise LostRaceError.over(directory.job_id, record.state, record.generation, found)
    if decided is not None and decided.state is not JobState.ROLLED_BACK:
        raise set_back(directory, "decide it again")
    return (result and result.error) or Failure(JOB_ENDED, "the job has ended before")


def stop_if_published(ports: Ports, directory: JobDirectory) -> None:
    """Raise `NeedsOperatorError` (``LEDGER_SET_BACK``) unless the job may still be undone.

    Asked before a decided job's visible files are deleted. If all of them were visible once, or the
    decision record is gone, the ledger was restored to a moment of before: they are committed.
    """
    decided = read_decision(ports, directory)
    if decided is None or decided.state not in {JobState.COMMITTING, JobState.ROLLED_BACK}:
        raise set_back(directory, "undo it")


def set_back(directory: JobDirectory, about_to: str) -> NeedsOperatorError:
    """The error with which a job stops whose ledger was restored to a moment of before."""
    return NeedsOperatorError(
        f"by {directory.decision} job {directory.job_id} is further than the ledger has it, which"
        f" is about to {about_to}: the table was restored to a moment of before; make it again in"
        " an empty one (s3commit fsck --rebuild-ledger)",
        code="LEDGER_SET_BACK",
    )


def _result(ports: Ports, directory: JobDirectory) -> JobResult | None:
    """The job's result; one that can't be read says nothing."""
    with suppress(NotFoundError, InvalidInputError, AccessError):
        return read_result(ports.store, directory)
    return None
