"""S3's events in batches of SQS messages, answered message by message."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote_plus

from s3commit.aws.telemetry import logger
from s3commit.core.formats.strict_json import one_line
from s3commit.core.model.errors import InvalidInputError

_PRINCIPAL = 256  # characters; "AWS:", a role's id of 21 and a session's name of 64 are the longest


@dataclass(frozen=True, slots=True)
class Announced:
    """An object whose creation S3 has announced; it may be deleted or replaced since.

    ``size`` in bytes; 0 where the event does not say it. A ``guessed`` key need not exist: act on
    it only after reading the object. ``principal`` is the one that put it, as S3 names it.
    """

    bucket: str
    key: str
    size: int = 0
    guessed: bool = False
    principal: str = ""


def announced_objects(body: str) -> list[Announced]:
    """The objects in an SQS message's body.

    S3 sends a test event without records when a notification is configured. In a notification keys
    are URL-encoded, with ``+`` for a space:
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html An
    event that came by EventBridge has one object. Its page does not say whether keys are encoded
    there; Powertools' data class decodes them, its parser does not. They are used as they are,
    which was seen on moto only, and decoded as well, which is a guess: the job gets into the ledger
    in any case, and at the latest the sweep starts it.
    A notification names the user or the role's session (``principalId``), EventBridge the account
    alone (``requester``):
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html Raises `InvalidInputError`
    for a body of another shape.
    """
    try:
        message = json.loads(body)
        if message.get("Event") == "s3:TestEvent":
            return []
        if message.get("source") == "aws.s3":
            detail = message["detail"]
            said = _announced(detail, detail["object"]["key"], detail.get("requester"))
            guess = replace(said, key=unquote_plus(said.key), guessed=True)
            return [said, guess] if guess.key != said.key else [said]
        return [
            _announced(
                record["s3"],
                unquote_plus(record["s3"]["object"]["key"]),
                (record.get("userIdentity") or {}).get("principalId"),
            )
            for record in message["Records"]
        ]
    except Exception as error:
        raise InvalidInputError(
            f"message is not an event of S3: {type(error).__name__} {error}", code="BAD_EVENT"
        ) from error


def _announced(record: dict[str, Any], key: str, principal: object) -> Announced:
    size = int(record["object"].get("size", 0))
    return Announced(
        record["bucket"]["name"], key, size, principal=one_line(str(principal or ""), _PRINCIPAL)
    )


def each_message(
    event: dict[str, Any], handle: Callable[[Announced], None], *, bucket: str
) -> dict[str, Any]:
    """Call ``handle`` for each object in each message of an SQS batch; answer with the failed ones.

    SQS redelivers these messages alone: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
    Objects of other buckets than ``bucket`` are ignored: any bucket of the account may notify the
    queue, and the pipeline has no rights there. One bad message never fails the others. A message
    that keeps failing goes to the dead-letter queue, by the queue's redrive policy.
    """
    failed: list[dict[str, str]] = []
    for record in event["Records"]:
        try:
            for announced in announced_objects(record["body"]):
                if announced.bucket == bucket:
                    handle(announced)
        except Exception:
            logger.exception("message failed", message_id=record["messageId"])
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}
