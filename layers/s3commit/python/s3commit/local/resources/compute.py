"""Lambda, Step Functions and their roles; and what nothing here depends on."""

from __future__ import annotations

import json
import re

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

# What the moto patches were measured with; another one may work otherwise than in AWS.
_INTEGRATIONS = frozenset({"lambda:invoke", "events:putEvents", "s3:getObject"})


def _check_code(properties: Properties) -> None:
    for name in ("Code", "Content"):
        pick(properties.get(name, {}), same("S3Bucket", "S3Key"), name)


def create_function(context: Context, place: Place, properties: Properties) -> Created:
    """The function, with its code from the published asset."""
    name = place.name(64)
    made = context.client("lambda").create_function(
        FunctionName=name, Tags=tag_map(properties), **without(properties, "Tags")
    )
    return Created(name, {"Arn": made["FunctionArn"]})


def create_layer(context: Context, place: Place, properties: Properties) -> Created:
    """A first version of the layer; ``Ref`` is the version's ARN."""
    made = context.client("lambda").publish_layer_version(LayerName=place.name(64), **properties)
    return Created(made["LayerVersionArn"])


def create_mapping(context: Context, _place: Place, properties: Properties) -> Created:
    """The event source mapping; the runtime polls for it from here on."""
    return Created(context.client("lambda").create_event_source_mapping(**properties)["UUID"])


def create_machine(context: Context, place: Place, properties: Properties) -> Created:
    """The state machine.

    Raises `UnsupportedTemplateError` for an integration that our machines do not use, and for a map
    that tolerates failures.
    """
    name, definition = place.name(80), properties["DefinitionString"]
    unknown = {*re.findall(r":states:::([\w:.-]+)", definition)} - _INTEGRATIONS
    unknown |= {*re.findall(r'"(ToleratedFailure\w+)', definition)}
    if unknown:
        raise UnsupportedTemplateError(
            f"{place.stack}/{place.logical_id}: the definition's {min(unknown)} is not known here"
        )
    arn = context.client("stepfunctions").create_state_machine(
        name=name,
        roleArn=properties["RoleArn"],
        definition=definition,
        type=properties["StateMachineType"],
        tags=[{"key": key, "value": value} for key, value in tag_map(properties).items()],
        tracingConfiguration={"enabled": properties["TracingConfiguration"]["Enabled"]},
    )["stateMachineArn"]
    return Created(arn, {"Name": name})


def create_role(context: Context, place: Place, properties: Properties) -> Created:
    """The role, which moto asks for; its rights are not checked here."""
    name = place.name(64)
    made = context.client("iam").create_role(
        RoleName=name,
        AssumeRolePolicyDocument=json.dumps(properties["AssumeRolePolicyDocument"]),
        **without(properties, "AssumeRolePolicyDocument"),
    )["Role"]
    return Created(name, {"Arn": made["Arn"]})


TYPES = {
    "AWS::Lambda::Function": ResourceType(
        create_function,
        frozenset(
            {"Code", "Runtime", "Handler", "Role", "Description", "Timeout", "MemorySize", "Tags"}
            | {"Environment", "Layers", "TracingConfig", "Architectures"}
        ),
        {"LoggingConfig": "no log is kept here; errors go to stderr"},
        check=_check_code,
    ),
    "AWS::Lambda::LayerVersion": ResourceType(
        create_layer,
        frozenset({"Content", "CompatibleRuntimes", "CompatibleArchitectures"}),
        check=_check_code,
    ),
    "AWS::Lambda::EventSourceMapping": ResourceType(
        create_mapping,
        frozenset(
            {"EventSourceArn", "FunctionName", "BatchSize", "FunctionResponseTypes"}
            | {"ScalingConfig"}
        ),
        {"Tags": "nothing looks at them here"},
    ),
    "AWS::StepFunctions::StateMachine": ResourceType(
        create_machine,
        frozenset(
            {"StateMachineType", "RoleArn", "DefinitionString", "TracingConfiguration", "Tags"}
        ),
        {"LoggingConfiguration": "the history of every execution is kept here instead"},
    ),
    "AWS::IAM::Role": ResourceType(
        create_role, frozenset({"AssumeRolePolicyDocument", "Tags", "Path"})
    ),
    "AWS::Logs::LogGroup": left_to_aws("no log is kept here; errors go to stderr"),
    "AWS::IAM::Policy": left_to_aws("rights are not checked here"),
    "AWS::Lambda::Permission": left_to_aws("rights are not checked here"),
    "AWS::CloudWatch::Alarm": left_to_aws("no metric is evaluated here"),
    "AWS::CloudWatch::Dashboard": left_to_aws("no metric is shown here"),
    "AWS::SNS::Topic": left_to_aws("only alarms send to it"),
    "AWS::SNS::TopicPolicy": left_to_aws("no topic is made here"),
    "AWS::SNS::Subscription": left_to_aws("no topic is made here"),
}
