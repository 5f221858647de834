"""Event source mappings of SQS queues: what Lambda's pollers do.

https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html and
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from s3commit.local.worker import CallOutcome

MAX_THREADS = 4  # a mapping; Lambda starts with five pollers
_WAIT = 0.25  # seconds until it looks again; a message that is sent ends the wait
Call = Callable[[bytes], CallOutcome]


class Poller:
    """Polls one queue for one function until `stop`.

    ``mapping`` is moto's EventSourceMapping, ``backend`` moto's SQSBackend, ``call`` invokes the
    function. A batch whose call failed stays invisible until its visibility timeout is over, and
    goes to the dead-letter queue by the queue's redrive policy.
    """

    def __init__(self, mapping: Any, backend: Any, call: Call) -> None:
        self._mapping = mapping
        self._backend = backend
        self._call = call
        self._queue = backend.queues[mapping.event_source_arn.split(":")[-1]]
        self._stopping = threading.Event()
        scaling = mapping.scaling_config or {}
        count = min(MAX_THREADS, int(scaling.get("MaximumConcurrency", MAX_THREADS)))
        self._threads = [
            threading.Thread(target=self._run, name=f"poll-{self._queue.name}", daemon=True)
            for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Take no further batch; `join` waits for those that are being handled."""
        self._stopping.set()

    def join(self) -> None:
        """Wait for the threads to end, after `stop`."""
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            # Without moto's long poll, which keeps the visibility timeout that it began with.
            messages = self._backend.receive_message(
                self._queue.name,
                self._mapping.batch_size,
                0,
                int(self._queue.visibility_timeout),
            )
            if messages and not self._stopping.is_set():
                self._handle(messages)
            elif not messages:
                with self._queue._messages_lock:
                    self._queue._messages_lock.wait_for(lambda: self._queue.messages, _WAIT)

    def _handle(self, messages: list[Any]) -> None:
        event = {"Records": [self._record(message) for message in messages]}
        outcome = self._call(json.dumps(event).encode())
        failed = self._failed(outcome, {message.id for message in messages})
        for message in messages:
            if message.id not in failed:
                self._backend.delete_message(self._queue.name, message.receipt_handle)

    def _failed(self, outcome: CallOutcome, ids: set[str]) -> set[str]:
        """The ids that stay in the queue: none, those reported, or all of them."""
        if outcome.failed:
            return ids
        if "ReportBatchItemFailures" not in (self._mapping.function_response_types or []):
            return set()
        try:
            answer = json.loads(outcome.payload or b"null") or {}
            failed = {item["itemIdentifier"] for item in answer.get("batchItemFailures") or ()}
        except (ValueError, AttributeError, TypeError, KeyError):
            return ids
        return failed if failed <= ids else ids

    def _record(self, message: Any) -> dict[str, Any]:
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
            "eventSourceARN": self._queue.queue_arn,
            "awsRegion": self._queue.region,
        }
