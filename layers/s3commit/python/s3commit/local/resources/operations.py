"""IAM, logs, alarms and dashboards: made, so that they can be looked at, but not enforced."""

from __future__ import annotations

import json

from s3commit.local.intrinsics import Created
from s3commit.local.resources.model import (
    Context,
    Place,
    Properties,
    ResourceType,
    tag_map,
    without,
)


def create_role(context: Context, place: Place, properties: Properties) -> Created:
    """The role; its policies follow as resources of their own."""
    name = place.name(64)
    made = context.client("iam").create_role(
        RoleName=name,
        AssumeRolePolicyDocument=json.dumps(properties["AssumeRolePolicyDocument"]),
        **without(properties, "AssumeRolePolicyDocument"),
    )["Role"]
    return Created(name, {"Arn": made["Arn"]})


def create_policy(context: Context, place: Place, properties: Properties) -> Created:
    """The policy in each of its roles."""
    for role in properties["Roles"]:
        context.client("iam").put_role_policy(
            RoleName=role,
            PolicyName=properties["PolicyName"],
            PolicyDocument=json.dumps(properties["PolicyDocument"]),
        )
    return Created(place.logical_id)


def create_log_group(context: Context, place: Place, properties: Properties) -> Created:
    """The log group and its retention (nothing expires here)."""
    logs = context.client("logs")
    name = properties.get("LogGroupName") or place.name(512)
    logs.create_log_group(logGroupName=name, tags=tag_map(properties))
    logs.put_retention_policy(logGroupName=name, retentionInDays=properties["RetentionInDays"])
    arn = f"arn:aws:logs:{context.region}:{context.account}:log-group:{name}:*"
    return Created(name, {"Arn": arn})


def create_alarm(context: Context, place: Place, properties: Properties) -> Created:
    """The alarm; it is kept, and never evaluated."""
    name = place.name(255)
    context.client("cloudwatch").put_metric_alarm(AlarmName=name, **properties)
    arn = f"arn:aws:cloudwatch:{context.region}:{context.account}:alarm:{name}"
    return Created(name, {"Arn": arn})


def create_dashboard(context: Context, place: Place, properties: Properties) -> Created:
    """The dashboard's text."""
    name = place.name(255)
    context.client("cloudwatch").put_dashboard(DashboardName=name, **properties)
    return Created(name)


TYPES = {
    "AWS::IAM::Role": ResourceType(
        create_role, frozenset({"AssumeRolePolicyDocument", "Tags", "Path"})
    ),
    "AWS::IAM::Policy": ResourceType(
        create_policy, frozenset({"PolicyName", "PolicyDocument", "Roles"})
    ),
    "AWS::Logs::LogGroup": ResourceType(
        create_log_group, frozenset({"LogGroupName", "RetentionInDays", "Tags"})
    ),
    "AWS::CloudWatch::Alarm": ResourceType(
        create_alarm,
        frozenset(
            {"AlarmActions", "AlarmDescription", "ComparisonOperator", "Threshold", "Dimensions"}
            | {"EvaluationPeriods", "MetricName", "Metrics", "Namespace", "Period", "Statistic"}
            | {"TreatMissingData", "Tags"}
        ),
    ),
    "AWS::CloudWatch::Dashboard": ResourceType(
        create_dashboard, frozenset({"DashboardBody"}), {"Tags": "nothing looks at them here"}
    ),
}
