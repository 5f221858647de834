"""SQS: no message is lost or received twice at a time."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

import threading
import time
from typing import Any

from s3commit.local.moto_patches.registry import Patcher, patch

_LOOK_AGAIN = 0.25  # seconds; a message becomes visible again without telling anybody


@patch
def sqs_one_at_a_time(patcher: Patcher) -> None:
    """A message that was sent stays until it is deleted, and one receiver has it at a time.

    AWS: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/
    sqs-visibility-timeout.html. moto: a delete rebuilds the list of messages without a lock, so
    that a message sent meanwhile is lost, and two receivers may take one message.
    """
    from moto.sqs.models import Queue, SQSBackend

    lock = threading.RLock()

    def guarded(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            with lock:
                return original(self, *args, **kwargs)

        return call

    def make_receive(original: Any) -> Any:
        def receive_message(self: Any, *call: Any, **named: Any) -> Any:
            names = ("queue_name", "count", "wait_seconds_timeout", "visibility_timeout")
            request = {**dict(zip(names, call, strict=False)), **named}
            queue_name = request["queue_name"]
            wait = request["wait_seconds_timeout"] or 0
            queue = self.get_queue(queue_name)
            deadline = time.monotonic() + wait
            while True:
                with lock:
                    found = original(self, **{**request, "wait_seconds_timeout": 0})
                left = deadline - time.monotonic()
                if found or left <= 0:
                    return found
                with queue._messages_lock:
                    queue._messages_lock.wait_for(lambda: queue.messages, min(left, _LOOK_AGAIN))

        return receive_message

    patcher.replace(Queue, "add_message", guarded)
    patcher.replace(Queue, "delete_message", guarded)
    patcher.replace(SQSBackend, "change_message_visibility", guarded)
    patcher.replace(SQSBackend, "receive_message", make_receive)
