"""SQS, SNS, EventBridge rules and schedules."""

from __future__ import annotations

import json
from typing import Any

from s3commit.local.intrinsics import Created
from s3commit.local.resources.model import Context, Place, Properties, ResourceType, given, tags
from s3commit.local.targets import check_target

_QUEUE_ATTRIBUTES = (
    *("DelaySeconds", "MaximumMessageSize", "MessageRetentionPeriod", "VisibilityTimeout"),
    *("ReceiveMessageWaitTimeSeconds", "RedrivePolicy", "RedriveAllowPolicy", "FifoQueue"),
    *("ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"),
    *("KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled"),
)


def text(value: Any) -> str:
    """A property as SQS and SNS want their attributes: JSON for objects, lower-case booleans."""
    if isinstance(value, dict | list | bool):
        return json.dumps(value)
    return str(value)


def create_queue(context: Context, place: Place, properties: Properties) -> Created:
    """The queue with its attributes; ``Ref`` is its URL at this server."""
    suffix = ".fifo" if properties.get("FifoQueue") in {True, "true"} else ""
    name = properties.get("QueueName") or place.name(80, suffix=suffix)
    # moto does not know RedriveAllowPolicy, which only forbids: it is left out.
    wanted = {k: v for k, v in properties.items() if k != "RedriveAllowPolicy"}
    attributes = {key: text(value) for key, value in given(wanted, *_QUEUE_ATTRIBUTES).items()}
    sqs = context.client("sqs")
    url = sqs.create_queue(
        QueueName=name,
        Attributes=attributes,
        tags={tag["Key"]: tag["Value"] for tag in tags(properties)},
    )["QueueUrl"]
    arn = f"arn:aws:sqs:{context.region}:{context.account}:{name}"
    return Created(url, {"Arn": arn, "QueueName": name, "QueueUrl": url})


def create_queue_policy(context: Context, place: Place, properties: Properties) -> Created:
    """The policy on each of its queues."""
    for url in properties["Queues"]:
        context.client("sqs").set_queue_attributes(
            QueueUrl=url, Attributes={"Policy": text(properties["PolicyDocument"])}
        )
    return Created(place.name(255))


def create_topic(context: Context, place: Place, properties: Properties) -> Created:
    """The topic and the subscriptions that stand in it."""
    sns = context.client("sns")
    name = properties.get("TopicName") or place.name(256)
    attributes = given(properties, "DisplayName", "KmsMasterKeyId")
    arn = sns.create_topic(
        Name=name,
        Attributes={key: text(value) for key, value in attributes.items()},
        Tags=tags(properties),
    )["TopicArn"]
    for entry in properties.get("Subscription", []):
        sns.subscribe(TopicArn=arn, Protocol=entry["Protocol"], Endpoint=entry["Endpoint"])
    return Created(arn, {"TopicArn": arn, "TopicName": name})


def create_topic_policy(context: Context, place: Place, properties: Properties) -> Created:
    """The policy on each of its topics."""
    for arn in properties["Topics"]:
        context.client("sns").set_topic_attributes(
            TopicArn=arn,
            AttributeName="Policy",
            AttributeValue=text(properties["PolicyDocument"]),
        )
    return Created(place.name(255))


def create_subscription(context: Context, _place: Place, properties: Properties) -> Created:
    """The subscription."""
    made = context.client("sns").subscribe(
        TopicArn=properties["TopicArn"],
        Protocol=properties["Protocol"],
        Endpoint=properties["Endpoint"],
        Attributes={
            key: text(value)
            for key, value in given(properties, "FilterPolicy", "RawMessageDelivery").items()
        },
        ReturnSubscriptionArn=True,
    )
    return Created(made["SubscriptionArn"])


def create_rule(context: Context, place: Place, properties: Properties) -> Created:
    """The rule and its targets; a schedule is kept by the runtime's ticker."""
    for target in properties.get("Targets", []):
        check_target(target["Arn"])
    events = context.client("events")
    name = properties.get("Name") or place.name(64)
    request = given(properties, "ScheduleExpression", "State", "Description", "RoleArn")
    if "EventPattern" in properties:
        request["EventPattern"] = json.dumps(properties["EventPattern"])
    bus = given(properties, "EventBusName")
    arn = events.put_rule(Name=name, Tags=tags(properties), **request, **bus)["RuleArn"]
    if properties.get("Targets"):
        events.put_targets(Rule=name, Targets=properties["Targets"], **bus)
    return Created(name, {"Arn": arn})


def create_schedule(context: Context, place: Place, properties: Properties) -> Created:
    """The schedule; it is kept by the runtime's ticker."""
    check_target(properties["Target"]["Arn"])
    name = properties.get("Name") or place.name(64)
    request = given(
        properties,
        *("GroupName", "ScheduleExpression", "ScheduleExpressionTimezone", "State", "Description"),
        *("FlexibleTimeWindow", "Target", "StartDate", "EndDate"),
    )
    made = context.client("scheduler").create_schedule(Name=name, **request)
    return Created(name, {"Arn": made["ScheduleArn"]})


_NO_POLICY = "permissions are not enforced here"

TYPES = {
    "AWS::SQS::Queue": ResourceType(
        create_queue,
        frozenset({"QueueName", "Tags", *_QUEUE_ATTRIBUTES} - {"RedriveAllowPolicy"}),
        {"RedriveAllowPolicy": "it only forbids, and moto does not know it"},
    ),
    "AWS::SQS::QueuePolicy": ResourceType(
        create_queue_policy, frozenset({"Queues", "PolicyDocument"})
    ),
    "AWS::SNS::Topic": ResourceType(
        create_topic,
        frozenset({"TopicName", "DisplayName", "KmsMasterKeyId", "Subscription", "Tags"}),
        {"TracingConfig": "no traces are kept here"},
    ),
    "AWS::SNS::TopicPolicy": ResourceType(
        create_topic_policy, frozenset({"Topics", "PolicyDocument"})
    ),
    "AWS::SNS::Subscription": ResourceType(
        create_subscription,
        frozenset({"TopicArn", "Protocol", "Endpoint", "FilterPolicy", "RawMessageDelivery"}),
    ),
    "AWS::Events::Rule": ResourceType(
        create_rule,
        frozenset(
            {"Name", "Description", "EventPattern", "ScheduleExpression", "State", "Targets"}
            | {"EventBusName", "RoleArn", "Tags"}
        ),
    ),
    "AWS::Scheduler::Schedule": ResourceType(
        create_schedule,
        frozenset(
            {"Name", "GroupName", "ScheduleExpression", "ScheduleExpressionTimezone", "State"}
            | {"FlexibleTimeWindow", "Target", "Description", "StartDate", "EndDate"}
        ),
        {"KmsKeyArn": _NO_POLICY},
    ),
}
