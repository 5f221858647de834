"""A manifest was dropped: judge it and note it in the ledger, or abort it if it comes too late."""

from __future__ import annotations

from typing import Any

from s3commit.aws import env
from s3commit.aws.events import Announced, each_message, partial_failure
from s3commit.aws.telemetry import count, document_refused, logger
from s3commit.aws.wiring import make_ports
from s3commit.core.commit.ingest_pendingsets import judge_arrival, note_arrivals
from s3commit.core.model.errors import InvalidInputError

ports = make_ports()


def ingest(announced: list[Announced]) -> None:
    """Judge what one message announces, and note it before anything else is looked at."""
    for one in announced:
        try:
            arrival = judge_arrival(ports, one.bucket, one.key, size=one.size)
        except InvalidInputError as error:
            # Redelivery would not mend it; a request that counts it is refused for it.
            document_refused(one.key, error.code)
            continue
        count(env.MANIFESTS_RECORDED, note_arrivals(ports, [arrival]))
        count(env.UPLOADS_ABORTED, arrival.late)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Take a batch of SQS messages, in the stack one; answer with those to be redelivered."""
    return partial_failure(each_message(event, ingest))
