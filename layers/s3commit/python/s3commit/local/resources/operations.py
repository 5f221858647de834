"""Roles, logs, and what watches and guards a deployment, which nothing here depends on."""

from __future__ import annotations

import json

from s3commit.local.intrinsics import Created
from s3commit.local.resources.model import (
    Context,
    Place,
    Properties,
    ResourceType,
    left_to_aws,
    without,
)


def create_role(context: Context, place: Place, properties: Properties) -> Created:
    """The role, which moto asks for; nobody looks at what it may do."""
    name = place.name(64)
    made = context.client("iam").create_role(
        RoleName=name,
        AssumeRolePolicyDocument=json.dumps(properties["AssumeRolePolicyDocument"]),
        **without(properties, "AssumeRolePolicyDocument"),
    )["Role"]
    return Created(name, {"Arn": made["Arn"]})


TYPES = {
    "AWS::IAM::Role": ResourceType(
        create_role, frozenset({"AssumeRolePolicyDocument", "Tags", "Path"})
    ),
    "AWS::Logs::LogGroup": left_to_aws("no log is kept here; errors go to stderr"),
    "AWS::IAM::Policy": left_to_aws("nobody is refused anything here"),
    "AWS::Lambda::Permission": left_to_aws("nobody is refused anything here"),
    "AWS::CloudWatch::Alarm": left_to_aws("no metric is evaluated here"),
    "AWS::CloudWatch::Dashboard": left_to_aws("no metric is shown here"),
    "AWS::SNS::Topic": left_to_aws("only alarms send to it"),
    "AWS::SNS::TopicPolicy": left_to_aws("no topic is made here"),
    "AWS::SNS::Subscription": left_to_aws("no topic is made here"),
}
