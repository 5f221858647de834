"""S3 buckets, DynamoDB tables, SQS queues, and EventBridge rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from s3commit.local import ACCOUNT, REGION, UnsupportedTemplateError
from s3commit.local.assembly import Stack
from s3commit.local.resources import Context, Created, Place, Properties, ResourceType, without
from s3commit.local.triggers import rate

_RULES = "LifecycleConfiguration.Rules"
_QUEUES = "NotificationConfiguration.QueueConfigurations"


def create_bucket(context: Context, place: Place, properties: Properties) -> Created:
    """The bucket with its settings."""
    s3 = context.client("s3")
    name = properties.get("BucketName") or place.name(63).lower()
    s3.create_bucket(Bucket=name)
    if given := properties.get("VersioningConfiguration"):
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=given)
    if given := properties.get("OwnershipControls"):
        s3.put_bucket_ownership_controls(Bucket=name, OwnershipControls=given)
    if given := properties.get("LifecycleConfiguration"):
        rules = [_lifecycle_rule(rule) for rule in given["Rules"]]
        s3.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration={"Rules": rules})
    if given := properties.get("NotificationConfiguration"):
        s3.put_bucket_notification_configuration(
            Bucket=name, NotificationConfiguration=_notification(given)
        )
    return Created(name, {"Arn": f"arn:aws:s3:::{name}"})


def _lifecycle_rule(rule: Properties) -> dict[str, Any]:
    given = without(rule, "Id", "ExpiredObjectDeleteMarker")
    if marker := rule.get("ExpiredObjectDeleteMarker"):
        given["Expiration"] = {"ExpiredObjectDeleteMarker": marker}
    return {**given, "ID": rule["Id"], "Filter": {"Prefix": ""}}


def _notification(given: Properties) -> dict[str, Any]:
    queues = [
        {
            "Events": [entry["Event"]],
            "QueueArn": entry["Queue"],
            "Filter": {"Key": {"FilterRules": entry["Filter"]["S3Key"]["Rules"]}},
        }
        for entry in given.get("QueueConfigurations", ())
    ]
    to_bus = given.get("EventBridgeConfiguration", {}).get("EventBridgeEnabled")
    return {"QueueConfigurations": queues} | ({"EventBridgeConfiguration": {}} if to_bus else {})


def create_table(context: Context, place: Place, properties: Properties) -> Created:
    """The table and its indexes."""
    name = place.name(255)
    made = context.client("dynamodb").create_table(TableName=name, **properties)
    return Created(name, {"Arn": made["TableDescription"]["TableArn"]})


def create_queue(context: Context, place: Place, properties: Properties) -> Created:
    """The queue with its attributes; ``Ref`` is its URL at this server."""
    name = place.name(80)
    attributes = {  # texts: JSON of objects, lower-case booleans
        key: json.dumps(value) if isinstance(value, dict | bool) else str(value)
        for key, value in properties.items()
    }
    made = context.client("sqs").create_queue(QueueName=name, Attributes=attributes)
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}"
    return Created(made["QueueUrl"], {"Arn": arn, "QueueName": name})


def _check_rule(stack: Stack, properties: Properties) -> None:
    """Refuse what no one would call: the ticker calls functions, and events go to queues."""
    wanted = "AWS::SQS::Queue"
    if "EventPattern" not in properties:
        rate(properties.get("ScheduleExpression", ""))
        wanted = "AWS::Lambda::Function"
    for target in properties["Targets"]:
        match target["Arn"]:
            case {"Fn::GetAtt": [name, "Arn"]} if stack.resources[name]["Type"] == wanted:
                pass
            case other:
                raise UnsupportedTemplateError(f"a target at {other} is not known here")


def create_rule(context: Context, place: Place, properties: Properties) -> Created:
    """The rule, of a schedule or of a pattern."""
    events = context.client("events")
    name = properties.get("Name") or place.name(64)
    given: Mapping[str, Any] = without(properties, "Targets", "Name")
    if "EventPattern" in given:
        given = {**given, "EventPattern": json.dumps(given["EventPattern"])}
    arn = events.put_rule(Name=name, **given)["RuleArn"]
    events.put_targets(Rule=name, Targets=properties["Targets"])
    return Created(name, {"Arn": arn})


TYPES = {
    "AWS::S3::Bucket": ResourceType(
        create_bucket,
        "BucketName VersioningConfiguration OwnershipControls"
        f" {_RULES}.Id {_RULES}.Status {_RULES}.NoncurrentVersionExpiration"
        f" {_RULES}.AbortIncompleteMultipartUpload {_RULES}.ExpiredObjectDeleteMarker"
        f" {_QUEUES}.Event {_QUEUES}.Queue {_QUEUES}.Filter.S3Key.Rules"
        " NotificationConfiguration.EventBridgeConfiguration",
        # Nothing is encrypted, public or logged here.
        "BucketEncryption PublicAccessBlockConfiguration LoggingConfiguration",
    ),
    "AWS::DynamoDB::Table": ResourceType(
        create_table,
        "KeySchema AttributeDefinitions BillingMode GlobalSecondaryIndexes"
        " DeletionProtectionEnabled",
        # No item expires here, and nothing outlives the runtime.
        "TimeToLiveSpecification PointInTimeRecoverySpecification",
    ),
    "AWS::SQS::Queue": ResourceType(
        create_queue, "MessageRetentionPeriod RedrivePolicy SqsManagedSseEnabled VisibilityTimeout"
    ),
    "AWS::Events::Rule": ResourceType(
        create_rule,
        "Name Description ScheduleExpression EventPattern State Targets.Id Targets.Arn"
        " Targets.Input",
        check=_check_rule,
    ),
}
