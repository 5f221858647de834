"""What happens to SQS messages on their way: S3's notifications, and the pollers' deletes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote_plus

from s3commit.local.moto_patches import Patcher
from tests.engines.chaos.adversary import Adversary

LOST, TWICE, LATE, KEPT = 0.10, 0.11, 0.13, 0.05
LATEST = 8  # seconds
VISIBILITY = 4  # seconds; the template's are minutes: a message that failed comes back sooner


def meddle_with_mail(patcher: Patcher, adversary: Adversary) -> None:
    """Lose, repeat and delay messages; let a poller's delete be lost, so that one comes back."""
    from moto.sqs.models import Message, SQSBackend

    def send_message(
        original: Any, self: Any, queue_name: str, message_body: str, **more: Any
    ) -> Any:
        what = ", ".join(_keys_of(message_body))
        delays = _fate(adversary, what)
        sent = [Message("lost", message_body)]
        for delay in delays:
            wait = {"delay_seconds": delay} if delay else {}
            sent.append(original(self, queue_name, message_body, **{**more, **wait}))
        return sent[-1]

    def delete_message(original: Any, self: Any, queue_name: str, receipt_handle: str) -> None:
        if adversary.strikes("delete lost", KEPT):
            adversary.does("message redelivered though it was handled", queue_name[:40])
            return
        original(self, queue_name, receipt_handle)

    patcher.wrap(SQSBackend, "send_message", send_message)
    patcher.wrap(SQSBackend, "delete_message", delete_message)


def _fate(adversary: Adversary, what: str) -> list[int]:
    """The delay, in seconds, of each copy that arrives."""
    if adversary.strikes("mail lost", LOST):
        adversary.does("message lost", what)
        return []
    delays = [0]
    if adversary.strikes("mail twice", TWICE):
        adversary.does("message twice", what)
        delays = [0, 0]
    if adversary.strikes("mail late", LATE):
        delays[0] = adversary.pick("mail how late", 1, LATEST)
        adversary.does("message late", f"{what} by {delays[0]} s")
    return delays


def _keys_of(body: str) -> list[str]:
    """The keys that an S3 notification announces."""
    records = json.loads(body).get("Records", [])
    return [unquote_plus(record["s3"]["object"]["key"]) for record in records]


def queues() -> dict[str, Any]:
    """Moto's queues of this process by name."""
    from moto.sqs.models import sqs_backends

    from s3commit.local.server import ACCOUNT, REGION

    return dict(sqs_backends[ACCOUNT][REGION].queues)


def hurry() -> None:
    """Let messages that nobody deleted come back in seconds."""
    for queue in queues().values():
        queue.visibility_timeout = VISIBILITY


def waiting() -> int:
    """Messages that are still to be handled."""
    return sum(len(queue._messages) for queue in queues().values() if not is_dead_letters(queue))


def dead_letters() -> int:
    """Messages that were given up."""
    return sum(len(queue._messages) for queue in queues().values() if is_dead_letters(queue))


def is_dead_letters(queue: Any) -> bool:
    """It is where another queue's failures go."""
    return not queue.redrive_policy
