"""How a job ends for its client: the result, put once."""

from __future__ import annotations

from contextlib import suppress

from s3commit.core.documents import encode_result
from s3commit.core.errors import PreconditionError
from s3commit.core.jsontext import one_line
from s3commit.core.layout import JobDirectory
from s3commit.core.model import Failure, JobRecord, JobResult, Outcome
from s3commit.core.protocol.pipeline import Pipeline
from s3commit.core.ticket import OUTCOMES


def write_result(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> None:
    """Put ``result.json`` of an ended job; one that is there stays."""
    committed = OUTCOMES[record.state] is Outcome.COMMITTED
    plan = record.plan if committed else None
    result = JobResult(
        job_id=record.job_id,
        outcome=OUTCOMES[record.state],
        error=_short(record.failure),
        files=plan.files if plan else 0,
        bytes=plan.bytes if plan else 0,
        rows=plan.rows if plan else None,
        decided_at=record.decided_at,
        finished_at=record.finished_at or pipeline.clock.now(),
        execution=record.execution,
        replaced=record.replaced.files if committed and record.replaced else 0,
    )
    # If it is there, this step ran before; a job ends once, so that result says the same.
    with suppress(PreconditionError):
        pipeline.store.put(place.bucket, place.result, encode_result(result), if_absent=True)


def _short(failure: Failure | None) -> Failure | None:
    return failure and Failure(one_line(failure.code, 100), one_line(failure.message))
