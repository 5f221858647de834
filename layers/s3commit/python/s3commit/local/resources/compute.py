"""Lambda, Step Functions, their roles, and the alarms that watch them."""

from __future__ import annotations

import json
import os
import re
import shutil
from functools import partial

from s3commit.local import UnsupportedTemplateError
from s3commit.local.assembly import Stack
from s3commit.local.metrics import COMPARED, SUM
from s3commit.local.resources import Context, Created, Place, Properties, ResourceType, without

# What the moto patches were measured with; another one may work otherwise than in AWS.
_INTEGRATIONS = frozenset({"lambda:invoke", "events:putEvents", "s3:getObject"})


def _check_asset(name: str, stack: Stack, properties: Properties) -> None:
    folder = stack.folder(properties[name]["S3Key"])
    if not folder.is_dir():
        raise UnsupportedTemplateError(f"the asset {folder.name} is not a folder")


def _folder(context: Context, place: Place, asset: Properties) -> dict[str, bytes]:
    """The zip that moto keeps and does not look into: the path of a copy of the asset's folder.

    A copy, because another process may synthesize again while the functions run.
    """
    source = place.stack.folder(asset["S3Key"])
    copy = context.directory / source.name
    if not copy.exists():
        shutil.copytree(source, copy)
    return {"ZipFile": os.fsencode(copy)}


def create_function(context: Context, place: Place, properties: Properties) -> Created:
    """The function, with its code from the assembly."""
    name = place.name(64)
    code = _folder(context, place, properties["Code"])
    made = context.client("lambda").create_function(
        FunctionName=name, Code=code, **without(properties, "Code")
    )
    return Created(name, {"Arn": made["FunctionArn"]})


def create_layer(context: Context, place: Place, properties: Properties) -> Created:
    """A first version of the layer; ``Ref`` is the version's ARN."""
    content = _folder(context, place, properties["Content"])
    made = context.client("lambda").publish_layer_version(
        LayerName=place.name(64), Content=content, **without(properties, "Content")
    )
    return Created(made["LayerVersionArn"])


def create_mapping(context: Context, _place: Place, properties: Properties) -> Created:
    """The event source mapping; the runtime polls for it from here on."""
    return Created(context.client("lambda").create_event_source_mapping(**properties)["UUID"])


def _check_machine(_stack: Stack, properties: Properties) -> None:
    """Refuse an integration that our machines do not use, and a map that tolerates failures."""
    definition = json.dumps(properties["DefinitionString"])
    unknown = {*re.findall(r":states:::([\w:.-]+)", definition)} - _INTEGRATIONS
    unknown |= {*re.findall(r"\bToleratedFailure\w+", definition)}
    if unknown:
        raise UnsupportedTemplateError(f"the definition's {min(unknown)} is not known here")


def create_machine(context: Context, place: Place, properties: Properties) -> Created:
    """The state machine; moto's grammar knows the children of a map as STANDARD executions only."""
    name = place.name(80)
    arn = context.client("stepfunctions").create_state_machine(
        name=name,
        roleArn=properties["RoleArn"],
        definition=properties["DefinitionString"].replace('"EXPRESS"', '"STANDARD"'),
        type=properties["StateMachineType"],
    )["stateMachineArn"]
    return Created(arn, {"Name": name})


def create_role(context: Context, place: Place, properties: Properties) -> Created:
    """The role, which moto requires; its rights are not checked here."""
    name = place.name(64)
    made = context.client("iam").create_role(
        RoleName=name,
        Path=properties.get("Path", "/"),
        AssumeRolePolicyDocument=json.dumps(properties["AssumeRolePolicyDocument"]),
    )["Role"]
    return Created(name, {"Arn": made["Arn"]})


def _check_alarm(_stack: Stack, properties: Properties) -> None:
    """Refuse what `Metrics` does not evaluate."""
    said = [one["Expression"] for one in properties.get("Metrics", ()) if "Expression" in one]
    unknown = {*said, properties["ComparisonOperator"]} - {SUM, *COMPARED}
    if unknown:
        raise UnsupportedTemplateError(f"{min(unknown)} is not known here")


def create_alarm(context: Context, place: Place, properties: Properties) -> Created:
    """The alarm, which rings and sends nothing."""
    name = properties.get("AlarmName") or place.name(255)
    context.client("cloudwatch").put_metric_alarm(**{**properties, "AlarmName": name})
    return Created(name)


TYPES = {
    "AWS::CloudWatch::Alarm": ResourceType(
        create_alarm,
        "AlarmName AlarmDescription AlarmActions ComparisonOperator Metrics EvaluationPeriods"
        " Threshold TreatMissingData Namespace MetricName Dimensions Period Statistic",
        check=_check_alarm,
    ),
    "AWS::Lambda::Function": ResourceType(
        create_function,
        "Code.S3Bucket Code.S3Key Runtime Handler Role Description Timeout MemorySize Environment"
        " Layers TracingConfig Architectures",
        "LoggingConfig",  # a log has the function's name here; errors go to stderr
        partial(_check_asset, "Code"),
    ),
    "AWS::Lambda::LayerVersion": ResourceType(
        create_layer,
        "Content.S3Bucket Content.S3Key CompatibleRuntimes CompatibleArchitectures",
        check=partial(_check_asset, "Content"),
    ),
    "AWS::Lambda::EventSourceMapping": ResourceType(
        create_mapping, "EventSourceArn FunctionName BatchSize FunctionResponseTypes ScalingConfig"
    ),
    "AWS::StepFunctions::StateMachine": ResourceType(
        create_machine,
        "StateMachineType RoleArn DefinitionString",
        # The history of every execution is kept here instead.
        "LoggingConfiguration TracingConfiguration",
        _check_machine,
    ),
    "AWS::IAM::Role": ResourceType(create_role, "AssumeRolePolicyDocument Path"),
}
