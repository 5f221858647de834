"""A job that the ledger does not know: new, or forgotten there and remembered in S3 (I8)."""

from __future__ import annotations

from dataclasses import replace

from s3commit.core.documents import MAX_RESULT_BYTES, decode_result
from s3commit.core.errors import InvalidInputError, NotFoundError, S3CommitError
from s3commit.core.layout import JobDirectory
from s3commit.core.ledger import LostRaceError
from s3commit.core.model import Failure, JobRecord, JobResult, JobSpec, Outcome, PlanFacts
from s3commit.core.protocol.pipeline import Pipeline, new_record, read_commit_manifest
from s3commit.core.protocol.places import known_locations
from s3commit.core.states import JobState


def open_unknown(pipeline: Pipeline, place: JobDirectory, spec: JobSpec) -> JobRecord:
    """The ledger's record of a job that it does not know, as S3 remembers it.

    A job with a result has ended so, and stays so: a ledger forgets ended jobs, and neither a late
    manifest nor a repeated request may open them again (I3). One with a commit manifest has all
    its files visible and goes on from there, whatever else is missing.

    Raises `InvalidInputError` if what S3 remembers can't be read, or is of another job: nobody can
    be told an outcome then, and a person has to look at it.
    """
    return pipeline.ledger.open_job(remembered(pipeline, place, spec))


def remembered(pipeline: Pipeline, place: JobDirectory, spec: JobSpec) -> JobRecord:
    """The record that `open_unknown` opens, unopened. Raises as that does."""
    record = new_record(spec, place, pipeline.clock.now())
    result = _result(pipeline, place)
    if result is not None:
        return replace(
            record,
            state=JobState(result.outcome.value),
            failure=result.error,
            plan=PlanFacts("", 0, result.files, result.bytes, result.rows),
            decided_at=result.decided_at,
            finished_at=result.finished_at,
        )
    if pipeline.store.head(place.bucket, place.commits) is None:
        return record
    header, _ = read_commit_manifest(pipeline, place)
    if (header.job_id, header.destination) != (place.job_id, place.destination.uri):
        raise InvalidInputError(
            f"{place.commits} is of job {header.job_id[:80]!r} at {header.destination[:200]!r}:"
            " find out who has put it there, remove it, and run the job again",
            code="WRONG_JOB",
        )
    replaced = header.replaced
    if replaced and pipeline.store.head(place.bucket, place.replaced(replaced.sha256)) is None:
        replaced = None  # tidied up, which comes after all of it has been deleted
    return replace(
        record,
        state=JobState.PUBLISHING,
        replaced=replaced,
        plan=PlanFacts(
            "", 0, header.files, header.bytes, header.rows, locations=_locations(pipeline, place)
        ),
        decided_at=header.decided_at,
    )


def stop_if_published(pipeline: Pipeline, place: JobDirectory) -> None:
    """Raise `S3CommitError` (``LEDGER_SET_BACK``) if the job has a list in ``_commits/``.

    Asked before a job's visible files are deleted: one that has a list was committed, and the
    ledger was restored to a moment of before, when it was not. Its manifests have been tidied up
    since, so it is refused now; but its files are somebody's data.
    """
    if pipeline.store.head(place.bucket, place.commits) is not None:
        raise _set_back(place, place.commits, "undo it")


def told_before(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> Failure | None:
    """Why the undecided job of ``record`` was refused by its result; None without one.

    The ledger was restored to a moment of before: decided anew, the job could replace what its
    client was told is still there (I3). Raises `S3CommitError` (``LEDGER_SET_BACK``) if it was
    committed, `InvalidInputError` if the result can't be read, and `LostRaceError` if another
    execution has gone on with the job since.
    """
    told = _result(pipeline, place)
    if told is None:
        return None
    # A result is put after the ledger has the end: the one seen may be of a moment ago.
    found = pipeline.ledger.job(place.job_id)
    if found is None or (found.state, found.generation) != (record.state, record.generation):
        raise LostRaceError.over(place.job_id, record.state, record.generation, found)
    if told.outcome is Outcome.COMMITTED:
        raise _set_back(place, place.result, "decide it again")
    return told.error or Failure(told.outcome.value, f"{place.result} says so")


def _set_back(place: JobDirectory, key: str, about_to: str) -> S3CommitError:
    return S3CommitError(
        f"{key} says that job {place.job_id} was committed, and the ledger is about to {about_to}:"
        " the table was restored to a moment of before; make it again in an empty one"
        " (s3commit fsck --rebuild-ledger)",
        code="LEDGER_SET_BACK",
    )


def _locations(pipeline: Pipeline, place: JobDirectory) -> dict[str, str]:
    # What is left to be removed may lie there. The header is not asked: it proves no more.
    return known_locations(pipeline, place, None)


def _result(pipeline: Pipeline, place: JobDirectory) -> JobResult | None:
    try:
        stored = pipeline.store.get(place.bucket, place.result, max_bytes=MAX_RESULT_BYTES)
    except NotFoundError:
        return None
    return decode_result(stored.body, place)
