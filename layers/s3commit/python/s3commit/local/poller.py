"""Event source mappings of SQS queues: what Lambda's pollers do.

https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html and
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from s3commit.local.lambda_executor import ThrottledError
from s3commit.local.worker import Outcome

MAX_THREADS = 4  # a mapping; Lambda starts with five pollers
_WAIT = 20  # seconds of long polling
_THROTTLE_PAUSE = 0.2
Call = Callable[[bytes], Outcome]


class Poller:
    """Polls one queue for one function until `stop`.

    ``mapping`` is moto's EventSourceMapping (its ``enabled`` is obeyed), ``backend`` moto's
    SQSBackend, ``call`` invokes the function. A batch whose call failed stays invisible until its
    visibility timeout is over, and goes to the dead-letter queue by the queue's redrive policy.
    """

    def __init__(self, mapping: Any, backend: Any, call: Call) -> None:
        self._mapping = mapping
        self._backend = backend
        self._call = call
        self._queue_name = mapping.event_source_arn.split(":")[-1]
        self._stopping = threading.Event()
        scaling = mapping.scaling_config or {}
        count = min(MAX_THREADS, int(scaling.get("MaximumConcurrency", MAX_THREADS)))
        self._threads = [
            threading.Thread(target=self._run, name=f"poll-{self._queue_name}", daemon=True)
            for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Take no further batch; `join` waits for those that are being handled."""
        self._stopping.set()
        queue = self._queue()
        if queue is not None:
            with queue._messages_lock:
                queue._messages_lock.notify_all()

    def join(self) -> None:
        """Wait for the threads to end, after `stop`."""
        for thread in self._threads:
            thread.join()

    def _queue(self) -> Any:
        return self._backend.queues.get(self._queue_name)

    def _run(self) -> None:
        while not self._stopping.is_set():
            queue = self._queue()
            if queue is None or not self._mapping.enabled:
                self._stopping.wait(0.5)
                continue
            messages = self._receive(queue)
            if messages and not self._stopping.is_set():
                self._handle(queue, messages)

    def _receive(self, queue: Any) -> list[Any]:
        size = self._mapping.batch_size
        messages = self._wait(queue, size)
        window = float(self._mapping.max_batch_window or 0)
        deadline = time.monotonic() + window
        while messages and len(messages) < size and time.monotonic() < deadline:
            if self._stopping.wait(min(0.05, window)):
                break
            messages += self._look(queue, size - len(messages))
        return messages

    def _wait(self, queue: Any, size: int) -> list[Any]:
        deadline = time.monotonic() + _WAIT
        while not self._stopping.is_set() and time.monotonic() < deadline:
            messages = self._look(queue, size)
            if messages:
                return messages
            with queue._messages_lock:
                queue._messages_lock.wait(0.25)
        return []

    def _look(self, queue: Any, size: int) -> list[Any]:
        visibility = int(queue.visibility_timeout)
        found: list[Any] = self._backend.receive_message(self._queue_name, size, 0, visibility)
        return found

    def _handle(self, queue: Any, messages: list[Any]) -> None:
        event = {"Records": [self._record(queue, message) for message in messages]}
        payload = json.dumps(event).encode()
        deadline = time.monotonic() + int(queue.visibility_timeout)
        while not self._stopping.is_set():
            try:
                outcome = self._call(payload)
                break
            except ThrottledError:
                if time.monotonic() > deadline or self._stopping.wait(_THROTTLE_PAUSE):
                    return
        else:
            return
        failed = self._failed(outcome, {message.id for message in messages})
        for message in messages:
            if message.id not in failed:
                self._backend.delete_message(self._queue_name, message.receipt_handle)

    def _failed(self, outcome: Outcome, ids: set[str]) -> set[str]:
        """The ids that stay in the queue: none, those reported, or all of them."""
        if outcome.failed:
            return ids
        if "ReportBatchItemFailures" not in (self._mapping.function_response_types or []):
            return set()
        try:
            answer = json.loads(outcome.payload or b"null")
        except json.JSONDecodeError:
            return ids
        if not answer:
            return set()
        if not isinstance(answer, dict):
            return ids
        reported = answer.get("batchItemFailures")
        if not reported:
            return set()
        try:
            failed = {item["itemIdentifier"] for item in reported}
        except (TypeError, KeyError):
            return ids
        return failed if failed <= ids else ids

    def _record(self, queue: Any, message: Any) -> dict[str, Any]:
        return {
            "messageId": message.id,
            "receiptHandle": message.receipt_handle,
            "body": message.body,
            "attributes": {
                "ApproximateReceiveCount": str(message.approximate_receive_count),
                "SentTimestamp": str(int(message.sent_timestamp)),
                "SenderId": message.sender_id,
                "ApproximateFirstReceiveTimestamp": str(
                    int(message.approximate_first_receive_timestamp)
                ),
            },
            "messageAttributes": {},
            "md5OfBody": message.body_md5,
            "eventSource": "aws:sqs",
            "eventSourceARN": queue.queue_arn,
            "awsRegion": queue.region,
        }
