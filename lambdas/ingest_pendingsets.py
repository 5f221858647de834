"""A manifest was dropped: judge it and note it in the ledger, or abort it if it comes too late."""

from __future__ import annotations

from typing import Any

from s3commit.aws import env
from s3commit.aws.events import Announced, each_message, partial_failure
from s3commit.aws.telemetry import count, logger
from s3commit.aws.wiring import make_pipeline
from s3commit.core.errors import InvalidInputError
from s3commit.core.protocol.ingest import Arrival, judge_arrival, note_arrivals

pipeline = make_pipeline()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Take a batch of SQS messages; answer with those to be redelivered."""
    arrivals: list[Arrival] = []

    def judge(announced: list[Announced]) -> None:
        for one in announced:
            try:
                arrivals.append(judge_arrival(pipeline, one.bucket, one.key))
            except InvalidInputError as error:
                # Redelivery would not mend it; a request that counts it is refused for it.
                logger.warning("manifest refused", code=error.code, key=one.key)
                count(env.MANIFESTS_REFUSED)

    failed = each_message(event, judge)
    # One write for the batch; if it fails, so does the call, and SQS redelivers it whole.
    count(env.MANIFESTS_RECORDED, note_arrivals(pipeline, arrivals))
    count(env.UPLOADS_ABORTED, sum(arrival.late for arrival in arrivals))
    return partial_failure(failed)
