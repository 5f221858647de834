"""S3 buckets and DynamoDB tables."""

from __future__ import annotations

from typing import Any

from s3commit.local.intrinsics import Created
from s3commit.local.resources.model import (
    Context,
    Place,
    Properties,
    ResourceType,
    given,
    pick,
    same,
    tags,
)

_EVENTS = {"Event": "Events", "Filter": "Filter"}
_RULE = {
    "Id": "ID",
    **same("Status", "Prefix", "NoncurrentVersionExpiration"),
    **same("AbortIncompleteMultipartUpload", "ExpirationInDays", "ExpiredObjectDeleteMarker"),
}


def notification(value: Properties) -> dict[str, Any]:
    """A bucket's NotificationConfiguration as S3's API takes it."""
    kinds = {
        "QueueConfigurations": ("Queue", "QueueArn", "QueueConfigurations"),
        "LambdaConfigurations": ("Function", "LambdaFunctionArn", "LambdaFunctionConfigurations"),
        "TopicConfigurations": ("Topic", "TopicArn", "TopicConfigurations"),
    }
    where = "NotificationConfiguration"
    pick(value, same(*kinds, "EventBridgeConfiguration"), where)
    result: dict[str, Any] = {}
    for name, (key, arn, target) in kinds.items():
        for entry in value.get(name, []):
            one = pick(entry, _EVENTS | {key: arn}, f"{where}.{name}")
            one["Events"] = [one["Events"]]
            if "Filter" in one:
                rules = pick(one["Filter"], {"S3Key": "Key"}, f"{where}.{name}.Filter")["Key"]
                one["Filter"] = {"Key": {"FilterRules": rules["Rules"]}}
            result.setdefault(target, []).append(one)
    if value.get("EventBridgeConfiguration", {}).get("EventBridgeEnabled") in {True, "true"}:
        result["EventBridgeConfiguration"] = {}
    return result


def lifecycle(value: Properties) -> dict[str, Any]:
    """A bucket's LifecycleConfiguration as S3's API takes it."""
    rules = []
    pick(value, same("Rules"), "LifecycleConfiguration")
    for entry in value["Rules"]:
        rule = pick(entry, _RULE, "LifecycleConfiguration.Rules")
        rule["Filter"] = {"Prefix": rule.pop("Prefix", "")}
        expiration = {}
        if "ExpirationInDays" in rule:
            expiration["Days"] = rule.pop("ExpirationInDays")
        if "ExpiredObjectDeleteMarker" in rule:
            expiration["ExpiredObjectDeleteMarker"] = rule.pop("ExpiredObjectDeleteMarker")
        if expiration:
            rule["Expiration"] = expiration
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


def _check_bucket(properties: Properties) -> None:
    for name, convert in (
        ("NotificationConfiguration", notification),
        ("LifecycleConfiguration", lifecycle),
        ("BucketEncryption", encryption),
    ):
        if name in properties:
            convert(properties[name])


def create_bucket(context: Context, place: Place, properties: Properties) -> Created:
    """The bucket with its settings; notifications last, when the bucket is as it will be."""
    s3 = context.client("s3")
    name = context.bucket_names.get(place) or properties.get("BucketName")
    name = name or place.name(63, lower=True)
    if context.region == "us-east-1":
        s3.create_bucket(Bucket=name)
    else:
        where = {"LocationConstraint": context.region}
        s3.create_bucket(Bucket=name, CreateBucketConfiguration=where)
    if "VersioningConfiguration" in properties:
        s3.put_bucket_versioning(
            Bucket=name, VersioningConfiguration=properties["VersioningConfiguration"]
        )
    if "BucketEncryption" in properties:
        s3.put_bucket_encryption(
            Bucket=name,
            ServerSideEncryptionConfiguration=encryption(properties["BucketEncryption"]),
        )
    if "PublicAccessBlockConfiguration" in properties:
        s3.put_public_access_block(
            Bucket=name,
            PublicAccessBlockConfiguration=properties["PublicAccessBlockConfiguration"],
        )
    if "OwnershipControls" in properties:
        s3.put_bucket_ownership_controls(
            Bucket=name, OwnershipControls=properties["OwnershipControls"]
        )
    if "LifecycleConfiguration" in properties:
        s3.put_bucket_lifecycle_configuration(
            Bucket=name, LifecycleConfiguration=lifecycle(properties["LifecycleConfiguration"])
        )
    if tags(properties):
        s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tags(properties)})
    if "NotificationConfiguration" in properties:
        s3.put_bucket_notification_configuration(
            Bucket=name,
            NotificationConfiguration=notification(properties["NotificationConfiguration"]),
        )
    host = f"{name}.s3.{context.region}.amazonaws.com"
    domains = {"DomainName": f"{name}.s3.amazonaws.com", "RegionalDomainName": host}
    return Created(name, {"Arn": f"arn:aws:s3:::{name}", **domains})


def create_table(context: Context, place: Place, properties: Properties) -> Created:
    """The table, its indexes, its time to live and its point-in-time recovery."""
    dynamodb = context.client("dynamodb")
    name = properties.get("TableName") or place.name(255)
    request = given(
        properties,
        *("KeySchema", "AttributeDefinitions", "BillingMode", "ProvisionedThroughput"),
        *("GlobalSecondaryIndexes", "LocalSecondaryIndexes", "Tags", "TableClass"),
    )
    if "DeletionProtectionEnabled" in properties:
        request["DeletionProtectionEnabled"] = properties["DeletionProtectionEnabled"]
    if "SSESpecification" in properties:
        names = {"SSEEnabled": "Enabled", **same("SSEType", "KMSMasterKeyId")}
        request["SSESpecification"] = pick(
            properties["SSESpecification"], names, "SSESpecification"
        )
    if "StreamSpecification" in properties:
        stream = properties["StreamSpecification"]
        request["StreamSpecification"] = {"StreamEnabled": True, **stream}
    made = dynamodb.create_table(TableName=name, **request)["TableDescription"]
    if "TimeToLiveSpecification" in properties:
        dynamodb.update_time_to_live(
            TableName=name, TimeToLiveSpecification=properties["TimeToLiveSpecification"]
        )
    if "PointInTimeRecoverySpecification" in properties:
        dynamodb.update_continuous_backups(
            TableName=name,
            PointInTimeRecoverySpecification=properties["PointInTimeRecoverySpecification"],
        )
    attributes = {"Arn": made["TableArn"]}
    if "LatestStreamArn" in made:
        attributes["StreamArn"] = made["LatestStreamArn"]
    return Created(name, attributes)


def create_global_table(context: Context, place: Place, properties: Properties) -> Created:
    """A global table as the one table of its first replica."""
    replica = dict(properties["Replicas"][0])
    table = {k: v for k, v in properties.items() if k not in {"Replicas", *_GLOBAL_LEAVES}}
    names = ("PointInTimeRecoverySpecification", "DeletionProtectionEnabled", "Tags", "TableClass")
    for index in table.get("GlobalSecondaryIndexes", []):
        pick(index, same("IndexName", "KeySchema", "Projection"), "GlobalSecondaryIndexes")
    return create_table(context, place, table | given(replica, *names))


def _create_nothing(_context: Context, place: Place, _properties: Properties) -> Created:
    return Created(place.name(255))


_TABLE = frozenset(
    {"TableName", "KeySchema", "AttributeDefinitions", "BillingMode", "ProvisionedThroughput"}
    | {"GlobalSecondaryIndexes", "LocalSecondaryIndexes", "TimeToLiveSpecification", "Tags"}
    | {"PointInTimeRecoverySpecification", "StreamSpecification", "SSESpecification"}
    | {"DeletionProtectionEnabled", "TableClass"}
)
_TABLE_LEAVES = {
    "ContributorInsightsSpecification": "CloudWatch metrics, which nothing computes here",
    "ResourcePolicy": "permissions are not enforced here",
    "OnDemandThroughput": "nothing is throttled here",
    "WarmThroughput": "nothing is throttled here",
}
_GLOBAL_LEAVES = {
    "WriteOnDemandThroughputSettings": "nothing is throttled here",
    "WriteProvisionedThroughputSettings": "nothing is throttled here",
    "WarmThroughput": "nothing is throttled here",
}

TYPES = {
    "AWS::S3::Bucket": ResourceType(
        create_bucket,
        frozenset(
            {"BucketName", "VersioningConfiguration", "BucketEncryption", "LifecycleConfiguration"}
            | {"PublicAccessBlockConfiguration", "OwnershipControls", "NotificationConfiguration"}
            | {"Tags"}
        ),
        {"LoggingConfiguration": "access logs are not written here"},
        _check_bucket,
    ),
    "AWS::S3::BucketPolicy": ResourceType(
        _create_nothing,
        frozenset(),
        {
            "Bucket": "the policy is not applied",
            "PolicyDocument": "moto ignores the conditions of a Deny and would refuse every call",
        },
    ),
    "AWS::DynamoDB::Table": ResourceType(create_table, _TABLE, _TABLE_LEAVES),
    "AWS::DynamoDB::GlobalTable": ResourceType(
        create_global_table,
        _TABLE | {"Replicas"},
        _GLOBAL_LEAVES,
    ),
}
