"""SQS, and EventBridge rules with a schedule."""

from __future__ import annotations

import json
from typing import Any

from s3commit.local.errors import UnsupportedTemplateError
from s3commit.local.intrinsics import Created
from s3commit.local.resources.model import (
    Context,
    Place,
    Properties,
    ResourceType,
    pick,
    same,
    tag_map,
    without,
)
from s3commit.local.schedule import rate


def _text(value: Any) -> str:
    """A property as SQS wants its attributes: JSON for objects, lower-case booleans."""
    return json.dumps(value) if isinstance(value, dict | bool) else str(value)


def create_queue(context: Context, place: Place, properties: Properties) -> Created:
    """The queue with its attributes; ``Ref`` is its URL at this server."""
    name = place.name(80)
    attributes = without(properties, "Tags")
    url = context.client("sqs").create_queue(
        QueueName=name,
        Attributes={key: _text(value) for key, value in attributes.items()},
        tags=tag_map(properties),
    )["QueueUrl"]
    arn = f"arn:aws:sqs:{context.region}:{context.account}:{name}"
    return Created(url, {"Arn": arn, "QueueName": name})


def create_queue_policy(context: Context, place: Place, properties: Properties) -> Created:
    """The policy on each of its queues."""
    for url in properties["Queues"]:
        context.client("sqs").set_queue_attributes(
            QueueUrl=url, Attributes={"Policy": json.dumps(properties["PolicyDocument"])}
        )
    return Created(place.logical_id)


def _check_rule(properties: Properties) -> None:
    rate(properties["ScheduleExpression"])
    for target in properties["Targets"]:
        pick(target, same("Id", "Arn", "Input"), "Targets")


def create_rule(context: Context, place: Place, properties: Properties) -> Created:
    """The rule and its targets; the runtime's ticker keeps its schedule.

    Raises `UnsupportedTemplateError` for a target that is no function.
    """
    for target in properties["Targets"]:
        if not target["Arn"].startswith("arn:aws:lambda:"):
            raise UnsupportedTemplateError(f"a target at {target['Arn']!r} is not known here")
    events = context.client("events")
    name = place.name(64)
    events.put_rule(Name=name, **without(properties, "Targets"))
    events.put_targets(Rule=name, Targets=properties["Targets"])
    return Created(name)


TYPES = {
    "AWS::SQS::Queue": ResourceType(
        create_queue,
        frozenset(
            {"MessageRetentionPeriod", "RedrivePolicy", "SqsManagedSseEnabled", "Tags"}
            | {"VisibilityTimeout"}
        ),
    ),
    "AWS::SQS::QueuePolicy": ResourceType(
        create_queue_policy, frozenset({"Queues", "PolicyDocument"})
    ),
    "AWS::Events::Rule": ResourceType(
        create_rule,
        frozenset({"Description", "ScheduleExpression", "State", "Targets", "Tags"}),
        check=_check_rule,
    ),
}
