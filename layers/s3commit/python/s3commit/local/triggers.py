"""The callers of functions: the pollers of SQS queues, and the ticker of ``rate()`` rules.

https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html,
https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html and
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html
"""

import json
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from s3commit.local import ACCOUNT, REGION, UnsupportedTemplateError
from s3commit.local.worker import THROTTLED, CallOutcome

MAX_THREADS = 4  # a mapping; Lambda starts with five pollers
_WAIT = 0.25  # seconds until it looks again; a message that is sent ends the wait
_TICK = 1.0  # seconds
Call = Callable[[bytes], CallOutcome]
Now = Callable[[], datetime]  # the present, in UTC


class Poller:
    """Polls one queue for one function until `stop`, while its mapping is enabled.

    ``mapping`` is moto's EventSourceMapping, ``backend`` moto's SQSBackend, ``call`` invokes the
    function. A batch whose call failed stays invisible until its visibility timeout is over, and
    goes to the dead-letter queue by the queue's redrive policy. A call that is throttled is
    repeated until then.
    """

    def __init__(self, mapping: Any, backend: Any, call: Call) -> None:
        self.mapping = mapping
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
            if not self.mapping.enabled:
                self._stopping.wait(_WAIT)
                continue
            # Without moto's long poll, which keeps the visibility timeout that it began with.
            messages = self._backend.receive_message(
                self._queue.name, self.mapping.batch_size, 0, int(self._queue.visibility_timeout)
            )
            if messages and not self._stopping.is_set():
                self._handle(messages)
            elif not messages:
                with self._queue._messages_lock:
                    self._queue._messages_lock.wait_for(lambda: self._queue.messages, _WAIT)

    def _handle(self, messages: list[Any]) -> None:
        event = {"Records": [self._record(message) for message in messages]}
        payload, waiting = json.dumps(event).encode(), float(self._queue.visibility_timeout)
        outcome = self._call(payload)
        while outcome is THROTTLED and waiting > 0 and not self._stopping.wait(_WAIT):
            outcome, waiting = self._call(payload), waiting - _WAIT
        failed = self._failed(outcome, {message.id for message in messages})
        for message in messages:
            if message.id not in failed:
                self._backend.delete_message(self._queue.name, message.receipt_handle)

    def _failed(self, outcome: CallOutcome, ids: set[str]) -> set[str]:
        """The ids that stay in the queue: none, those reported, or all of them."""
        if outcome.failed:
            return ids
        if "ReportBatchItemFailures" not in (self.mapping.function_response_types or []):
            return set()
        answer = json.loads(outcome.payload) or {}
        return {item["itemIdentifier"] for item in answer.get("batchItemFailures", ())}

    def _record(self, message: Any) -> dict[str, Any]:
        return {
            "messageId": message.id,
            "receiptHandle": message.receipt_handle,
            "body": message.body,
            "attributes": {
                "ApproximateReceiveCount": str(message.approximate_receive_count),
                "SentTimestamp": str(int(message.sent_timestamp)),
            },
            "messageAttributes": {},
            "md5OfBody": message.body_md5,
            "eventSource": "aws:sqs",
            "eventSourceARN": self._queue.queue_arn,
            "awsRegion": self._queue.region,
        }


def rate(expression: str) -> timedelta:
    """The period of ``rate(5 minutes)``.

    Raises `UnsupportedTemplateError` for what AWS refuses, and for ``cron()``.
    """
    found = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression)
    if not found or int(found[1]) < 1:
        raise UnsupportedTemplateError(f"the schedule {expression!r} is not a rate()")
    return timedelta(**{f"{found[2]}s": int(found[1])})


class Ticker:
    """Checks each second which enabled rules of moto's EventBridge are due, and fires them.

    Rules may come and go. A rule's first period begins with the first check that sees it, and it
    fires at most once in a check: missed times are not made up for.
    """

    def __init__(self, now: Now) -> None:
        self._now = now
        self._due: dict[str, datetime] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)

    def start(self) -> None:
        """Look in a thread of its own from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._stopping.set()
        self._thread.join()

    def look(self) -> None:
        """Fire what is due."""
        from moto.events.models import events_backends

        now = self._now()
        due: dict[str, datetime] = {}
        for rule in list(events_backends[ACCOUNT][REGION].event_buses["default"].rules.values()):
            if not rule.scheduled_expression or rule.state != "ENABLED":
                continue
            every = rate(rule.scheduled_expression)
            due[rule.arn] = self._due.get(rule.arn, now + every)
            if due[rule.arn] <= now:
                self._fire(rule.targets)
                due[rule.arn] = now + every
        self._due = due

    def _fire(self, targets: list[dict[str, Any]]) -> None:
        """Call each function in a thread of its own: the ticker does not wait."""
        from moto.awslambda.models import lambda_backends
        from moto.core.exceptions import JsonRESTError

        def call(target: dict[str, Any]) -> None:
            function = lambda_backends[ACCOUNT][REGION].get_function(target["Arn"])
            with suppress(JsonRESTError):  # it is throttled
                function.invoke(target["Input"], {}, {})

        for target in targets:
            threading.Thread(target=call, args=(target,), daemon=True).start()

    def _run(self) -> None:
        while not self._stopping.wait(_TICK):
            self.look()
