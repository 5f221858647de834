"""Sends events to the targets of rules and schedules."""

# ruff: noqa: PLC0415 - moto takes half a second: who only reads this module does not pay
from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

from s3commit.local.errors import UnsupportedTemplateError
from s3commit.local.schedule import Timer, parse

InvokeAsync = Callable[[Any, bytes], None]

SERVICES = frozenset({"lambda", "states", "sqs", "sns"})


def check_target(arn: str) -> None:
    """Raise `UnsupportedTemplateError` if nothing can be sent there."""
    service = arn.split(":")[2] if arn.startswith("arn:") and arn.count(":") >= 5 else ""
    if service not in SERVICES:
        known = ", ".join(sorted(SERVICES))
        raise UnsupportedTemplateError(f"a target at {arn!r} is not known here; known are {known}")


class Targets:
    """Delivers to functions, state machines, queues and topics of one account and region."""

    def __init__(self, account: str, region: str, invoke_async: InvokeAsync) -> None:
        self._account = account
        self._region = region
        self._invoke_async = invoke_async

    def deliver(self, target: dict[str, Any], event: dict[str, Any]) -> None:
        """Send a rule's event, transformed as the target says; a failure is said on stderr."""
        self._send(target, _payload(target, event))

    def timers(self) -> Iterator[Timer]:
        """A timer for each enabled rule with a schedule and each enabled schedule."""
        from moto.events.models import events_backends
        from moto.scheduler.models import scheduler_backends

        for bus in list(events_backends[self._account][self._region].event_buses.values()):
            for rule in list(bus.rules.values()):
                if rule.scheduled_expression and rule.state == "ENABLED":
                    schedule = parse(rule.scheduled_expression)
                    yield Timer(rule.arn, schedule, partial(self._tick, rule))
        groups = scheduler_backends[self._account][self._region].schedule_groups
        for group in list(groups.values()):
            for entry in list(group.schedules.values()):
                if entry.state == "ENABLED":
                    schedule = parse(entry.schedule_expression, entry.schedule_expression_timezone)
                    yield Timer(entry.arn, schedule, partial(self._fire, entry.target))

    def _tick(self, rule: Any, when: datetime) -> None:
        event = {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "account": self._account,
            "time": when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": self._region,
            "resources": [rule.arn],
            "detail": {},
        }
        for target in rule.targets:
            self.deliver(target, event)

    def _fire(self, target: dict[str, Any], _when: datetime) -> None:
        self._send(target, target.get("Input", "{}"))

    def _send(self, target: dict[str, Any], payload: str) -> None:
        arn = str(target["Arn"])
        try:
            self._send_to(arn, payload)
        except Exception as error:
            # AWS retries and then drops (or uses a dead-letter queue); the sender is never told.
            print(f"event for {arn} was not delivered: {error}", file=sys.stderr)  # noqa: T201

    def _send_to(self, arn: str, payload: str) -> None:
        service, name = arn.split(":")[2], arn.rsplit(":", maxsplit=1)[-1]
        account, region = self._account, self._region
        if service == "lambda":
            from moto.awslambda.models import lambda_backends

            function = lambda_backends[account][region].get_function(arn)
            self._invoke_async(function, payload.encode())
        elif service == "states":
            from moto.stepfunctions.parser.models import stepfunctions_parser_backends

            machines = stepfunctions_parser_backends[account][region]
            machines.start_execution(arn, str(uuid.uuid4()), payload)
        elif service == "sqs":
            from moto.sqs.models import sqs_backends

            sqs_backends[account][region].send_message(queue_name=name, message_body=payload)
        elif service == "sns":
            from moto.sns.models import sns_backends

            sns_backends[account][region].publish(arn=arn, message=payload)
        else:
            check_target(arn)


def _payload(target: dict[str, Any], event: dict[str, Any]) -> str:
    from moto.events.utils import EventTemplateParser

    event = {key: value for key, value in event.items() if key != "ingestion-time"}
    if isinstance(event.get("time"), int | float):
        moment = datetime.fromtimestamp(float(event["time"]), UTC)
        event["time"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    if "Input" in target:
        return str(target["Input"])
    if "InputPath" in target:
        value: Any = event
        for name in target["InputPath"].removeprefix("$").strip(".").split("."):
            value = value[name] if name else value
        return json.dumps(value)
    transformer = target.get("InputTransformer")
    if transformer:
        return json.dumps(
            EventTemplateParser.parse(
                input_template=transformer.get("InputTemplate"),
                input_paths_map=transformer.get("InputPathsMap", {}),
                event=cast("Any", event),
            )
        )
    return json.dumps(event)
