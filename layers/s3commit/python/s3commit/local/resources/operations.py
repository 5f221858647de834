"""IAM, logs, alarms and dashboards: made, so that they can be looked at, but not enforced."""

from __future__ import annotations

import json
from typing import Any

from s3commit.local.intrinsics import Created
from s3commit.local.resources.model import Context, Place, Properties, ResourceType, given, tags

_ALARM = (
    *("ActionsEnabled", "AlarmActions", "AlarmDescription", "ComparisonOperator", "Threshold"),
    *("DatapointsToAlarm", "Dimensions", "EvaluateLowSampleCountPercentile", "EvaluationPeriods"),
    *("ExtendedStatistic", "InsufficientDataActions", "MetricName", "Metrics", "Namespace"),
    *("OKActions", "Period", "Statistic", "TreatMissingData", "Unit", "ThresholdMetricId"),
)


def create_role(context: Context, place: Place, properties: Properties) -> Created:
    """The role with its inline policies."""
    iam = context.client("iam")
    name = properties.get("RoleName") or place.name(64)
    made = iam.create_role(
        RoleName=name,
        AssumeRolePolicyDocument=json.dumps(properties["AssumeRolePolicyDocument"]),
        Tags=tags(properties),
        **given(properties, "Description", "MaxSessionDuration", "Path"),
    )["Role"]
    for policy in properties.get("Policies", []):
        iam.put_role_policy(
            RoleName=name,
            PolicyName=policy["PolicyName"],
            PolicyDocument=json.dumps(policy["PolicyDocument"]),
        )
    return Created(name, {"Arn": made["Arn"], "RoleId": made["RoleId"]})


def create_policy(context: Context, place: Place, properties: Properties) -> Created:
    """The policy in each of its roles."""
    for role in properties.get("Roles", []):
        context.client("iam").put_role_policy(
            RoleName=role,
            PolicyName=properties["PolicyName"],
            PolicyDocument=json.dumps(properties["PolicyDocument"]),
        )
    return Created(place.name(128))


def create_log_group(context: Context, place: Place, properties: Properties) -> Created:
    """The log group and its retention (nothing expires here)."""
    logs = context.client("logs")
    name = properties.get("LogGroupName") or place.name(512)
    logs.create_log_group(
        logGroupName=name, tags={tag["Key"]: tag["Value"] for tag in tags(properties)}
    )
    if "RetentionInDays" in properties:
        logs.put_retention_policy(
            logGroupName=name, retentionInDays=int(properties["RetentionInDays"])
        )
    arn = f"arn:aws:logs:{context.region}:{context.account}:log-group:{name}:*"
    return Created(name, {"Arn": arn})


def create_alarm(context: Context, place: Place, properties: Properties) -> Created:
    """The alarm; it is kept, and never evaluated."""
    name = properties.get("AlarmName") or place.name(255)
    context.client("cloudwatch").put_metric_alarm(
        AlarmName=name, Tags=tags(properties), **given(properties, *_ALARM)
    )
    arn = f"arn:aws:cloudwatch:{context.region}:{context.account}:alarm:{name}"
    return Created(name, {"Arn": arn})


def create_dashboard(context: Context, place: Place, properties: Properties) -> Created:
    """The dashboard's text."""
    name = properties.get("DashboardName") or place.name(255)
    body: Any = properties["DashboardBody"]
    context.client("cloudwatch").put_dashboard(DashboardName=name, DashboardBody=body)
    return Created(name)


TYPES = {
    "AWS::IAM::Role": ResourceType(
        create_role,
        frozenset(
            {"RoleName", "AssumeRolePolicyDocument", "Policies", "Description", "Tags", "Path"}
            | {"MaxSessionDuration"}
        ),
        {
            "ManagedPolicyArns": "AWS's own policies are not loaded, and nothing is enforced",
            "PermissionsBoundary": "nothing is enforced",
        },
    ),
    "AWS::IAM::Policy": ResourceType(
        create_policy, frozenset({"PolicyName", "PolicyDocument", "Roles"})
    ),
    "AWS::Logs::LogGroup": ResourceType(
        create_log_group,
        frozenset({"LogGroupName", "RetentionInDays", "Tags"}),
        {
            "KmsKeyId": "everything is in memory here",
            "LogGroupClass": "there is one class here",
        },
    ),
    "AWS::CloudWatch::Alarm": ResourceType(create_alarm, frozenset({"AlarmName", "Tags", *_ALARM})),
    "AWS::CloudWatch::Dashboard": ResourceType(
        create_dashboard,
        frozenset({"DashboardName", "DashboardBody"}),
        {"Tags": "nothing looks at them here"},
    ),
    "AWS::CDK::Metadata": ResourceType(
        lambda _context, place, _properties: Created(place.name(255)),
        frozenset(),
        {"Analytics": "says what CDK made"},
    ),
}
