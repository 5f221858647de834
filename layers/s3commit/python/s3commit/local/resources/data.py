"""S3 buckets, DynamoDB tables, SQS queues, and EventBridge rules."""

from __future__ import annotations

import json
from typing import Any

from s3commit.local import UnsupportedTemplateError
from s3commit.local.resources import (
    Context,
    Created,
    Place,
    Properties,
    ResourceType,
    left_to_aws,
    pick,
    same,
    tag_map,
    without,
)
from s3commit.local.triggers import rate


def notification(value: Properties) -> dict[str, Any]:
    """A bucket's NotificationConfiguration as S3's API takes it."""
    where = "NotificationConfiguration"
    given = pick(value, same("QueueConfigurations", "EventBridgeConfiguration"), where)
    if given.pop("EventBridgeConfiguration", {}).get("EventBridgeEnabled"):
        given["EventBridgeConfiguration"] = {}
    where += ".QueueConfigurations"
    queues = []
    for entry in given.get("QueueConfigurations", []):
        queue = pick(entry, {"Event": "Events", "Queue": "QueueArn", "Filter": "Filter"}, where)
        rules = pick(queue["Filter"], same("S3Key"), f"{where}.Filter")["S3Key"]["Rules"]
        queue["Events"] = [queue["Events"]]
        queue["Filter"] = {"Key": {"FilterRules": rules}}
        queues.append(queue)
    return {**given, "QueueConfigurations": queues}


def lifecycle(value: Properties) -> dict[str, Any]:
    """A bucket's LifecycleConfiguration as S3's API takes it."""
    names = {
        "Id": "ID",
        **same("Status", "NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload"),
        **same("ExpiredObjectDeleteMarker"),
    }
    rules = []
    pick(value, same("Rules"), "LifecycleConfiguration")
    for entry in value["Rules"]:
        rule = pick(entry, names, "LifecycleConfiguration.Rules") | {"Filter": {"Prefix": ""}}
        if "ExpiredObjectDeleteMarker" in rule:
            marker = rule.pop("ExpiredObjectDeleteMarker")
            rule["Expiration"] = {"ExpiredObjectDeleteMarker": marker}
        rules.append(rule)
    return {"Rules": rules}


def encryption(value: Properties) -> dict[str, Any]:
    """A bucket's BucketEncryption as S3's API takes it."""
    names = {
        "ServerSideEncryptionByDefault": "ApplyServerSideEncryptionByDefault",
        "BucketKeyEnabled": "BucketKeyEnabled",
    }
    where = "BucketEncryption.ServerSideEncryptionConfiguration"
    return {"Rules": [pick(r, names, where) for r in value["ServerSideEncryptionConfiguration"]]}


def _as_it_is(value: Any) -> Any:
    return value


# Property → the operation that sets it, its parameter there, and the value in the API's form.
# Notifications are last: the bucket is as it will be then.
_SETTINGS: dict[str, tuple[str, str, Any]] = {
    "VersioningConfiguration": ("bucket_versioning", "VersioningConfiguration", _as_it_is),
    "BucketEncryption": ("bucket_encryption", "ServerSideEncryptionConfiguration", encryption),
    "PublicAccessBlockConfiguration": (
        "public_access_block",
        "PublicAccessBlockConfiguration",
        _as_it_is,
    ),
    "OwnershipControls": ("bucket_ownership_controls", "OwnershipControls", _as_it_is),
    "LifecycleConfiguration": (
        "bucket_lifecycle_configuration",
        "LifecycleConfiguration",
        lifecycle,
    ),
    "Tags": ("bucket_tagging", "Tagging", lambda tags: {"TagSet": tags}),
    "NotificationConfiguration": (
        "bucket_notification_configuration",
        "NotificationConfiguration",
        notification,
    ),
}


def _check_bucket(properties: Properties) -> None:
    for name, (_, _, convert) in _SETTINGS.items():
        if name in properties:
            convert(properties[name])


def create_bucket(context: Context, place: Place, properties: Properties) -> Created:
    """The bucket with its settings."""
    s3 = context.client("s3")
    name = context.bucket_names.get(place) or properties.get("BucketName")
    name = name or place.name(63).lower()
    s3.create_bucket(Bucket=name)
    for setting, (operation, parameter, convert) in _SETTINGS.items():
        if setting in properties:
            put = getattr(s3, f"put_{operation}")
            put(Bucket=name, **{parameter: convert(properties[setting])})
    return Created(name, {"Arn": f"arn:aws:s3:::{name}"})


def create_table(context: Context, place: Place, properties: Properties) -> Created:
    """The table, its indexes, its time to live and its point-in-time recovery."""
    dynamodb = context.client("dynamodb")
    name = place.name(255)
    later = ("TimeToLiveSpecification", "PointInTimeRecoverySpecification")
    made = dynamodb.create_table(TableName=name, **without(properties, *later))["TableDescription"]
    dynamodb.update_time_to_live(
        TableName=name, TimeToLiveSpecification=properties["TimeToLiveSpecification"]
    )
    dynamodb.update_continuous_backups(
        TableName=name,
        PointInTimeRecoverySpecification=properties["PointInTimeRecoverySpecification"],
    )
    return Created(name, {"Arn": made["TableArn"]})


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
    if "EventPattern" not in properties:
        rate(properties["ScheduleExpression"])
    for target in properties["Targets"]:
        pick(target, same("Id", "Arn", "Input"), "Targets")


def create_rule(context: Context, place: Place, properties: Properties) -> Created:
    """The rule: of a schedule, whose functions the ticker calls, or of a pattern, for queues.

    Raises `UnsupportedTemplateError` for another target.
    """
    service = "sqs" if "EventPattern" in properties else "lambda"
    for target in properties["Targets"]:
        if not target["Arn"].startswith(f"arn:aws:{service}:"):
            raise UnsupportedTemplateError(f"a target at {target['Arn']!r} is not known here")
    events = context.client("events")
    name = place.name(64)
    given = without(properties, "Targets", "EventPattern")
    if "EventPattern" in properties:
        given["EventPattern"] = json.dumps(properties["EventPattern"])
    arn = events.put_rule(Name=name, **given)["RuleArn"]
    events.put_targets(Rule=name, Targets=properties["Targets"])
    return Created(name, {"Arn": arn})


TYPES = {
    "AWS::S3::Bucket": ResourceType(
        create_bucket,
        frozenset({"BucketName", *_SETTINGS}),
        {"LoggingConfiguration": "access logs are not written here"},
        _check_bucket,
    ),
    "AWS::S3::BucketPolicy": left_to_aws(
        "moto ignores the conditions of a Deny and would refuse every call"
    ),
    "AWS::DynamoDB::Table": ResourceType(
        create_table,
        frozenset(
            {"KeySchema", "AttributeDefinitions", "BillingMode", "GlobalSecondaryIndexes", "Tags"}
            | {"TimeToLiveSpecification", "PointInTimeRecoverySpecification"}
            | {"DeletionProtectionEnabled"}
        ),
    ),
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
        frozenset(
            {"Description", "ScheduleExpression", "EventPattern", "State", "Targets", "Tags"}
        ),
        check=_check_rule,
    ),
}
