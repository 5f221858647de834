"""What happens to SQS messages on their way: S3's notifications, and the pollers' deletes."""

from __future__ import annotations

from typing import Any

from s3commit.local import ACCOUNT, REGION
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
        sent = [Message("lost", message_body)]
        for wait in _fate(adversary, message_body):
            sent.append(original(self, queue_name, message_body, **{**more, **wait}))
        return sent[-1]

    def delete_message(original: Any, self: Any, queue_name: str, receipt_handle: str) -> None:
        if not adversary.strikes("message redelivered", KEPT, queue_name[:40]):
            original(self, queue_name, receipt_handle)

    patcher.wrap(SQSBackend, "send_message", send_message)
    patcher.wrap(SQSBackend, "delete_message", delete_message)


def _fate(adversary: Adversary, body: str) -> list[dict[str, int]]:
    """Of each copy that arrives how it is delayed."""
    if adversary.strikes("message lost", LOST, body):
        return []
    copies: list[dict[str, int]] = [{}]
    if adversary.strikes("message twice", TWICE, body):
        copies.append({})
    if adversary.strikes("message late", LATE, body):
        copies[0] = {"delay_seconds": LATEST}
    return copies


def queues() -> list[Any]:
    """Moto's queues of this process, without those that take what was given up."""
    from moto.sqs.models import sqs_backends

    return [one for one in sqs_backends[ACCOUNT][REGION].queues.values() if one.redrive_policy]


def hurry() -> None:
    """Let messages that nobody deleted come back in seconds."""
    for queue in queues():
        queue.visibility_timeout = VISIBILITY


def waiting() -> int:
    """Messages that are still to be handled."""
    return sum(len(queue._messages) for queue in queues())
