"""The resource types that the loader knows, and the functions that create them."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from s3commit.local import ACCOUNT, REGION, UnsupportedTemplateError
from s3commit.local.assembly import Stack
from s3commit.local.metrics import COMPARED, SUM
from s3commit.local.triggers import rate

Properties = Mapping[str, Any]

# The release that the moto patches were measured with; another one may work otherwise than in AWS.
_INTEGRATIONS = frozenset({"lambda:invoke", "events:putEvents", "s3:getObject"})
_RULES = "LifecycleConfiguration.Rules"
_QUEUES = "NotificationConfiguration.QueueConfigurations"


@dataclass(frozen=True, slots=True)
class Created:
    """The answers of a created resource: its `Ref` and its attributes for `Fn::GetAtt`."""

    ref: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a resource: its stack and its logical id."""

    stack: Stack
    logical_id: str

    def name(self, limit: int) -> str:
        """A physical name of at most ``limit`` characters, the same in every run."""
        name = f"{self.stack.name}-{self.logical_id}"
        if len(name) > limit:
            digest = hashlib.sha256(name.encode()).hexdigest()[:8]
            name = f"{name[: limit - 9]}-{digest}"
        return name


@dataclass(frozen=True, slots=True)
class Context:
    """The moto server as the loader sees it, and a directory for the functions' code."""

    client: Callable[[str], Any]
    directory: Path
    stacks: dict[str, str] = field(default_factory=dict)  # templates, for CloudFormation to show


@dataclass(frozen=True, slots=True)
class ResourceType:
    """A CloudFormation type: what is applied, and what is left to AWS.

    Both name properties, with blanks, ``Outer.Inner`` if not all of ``Outer`` is known; one that is
    in neither is refused, and ``create`` gets those that are applied. It raises
    `UnsupportedTemplateError` for a value that is not known, before it creates anything.
    """

    create: Callable[[Context, Place, Properties], Created]
    applies: str
    leaves: str = ""

    def refused(self, properties: Properties) -> list[str]:
        """The names of the properties that are not known."""
        known = {*self.applies.split(), *self.leaves.split(), "Tags"}
        return sorted(set(_unknown(properties, known)))

    def applied(self, properties: Properties) -> dict[str, Any]:
        """The properties that are applied."""
        outer = {name.partition(".")[0] for name in self.applies.split()}
        return {name: value for name, value in properties.items() if name in outer}


def _unknown(properties: Properties, known: set[str], within: str = "") -> Iterator[str]:
    for name, value in properties.items():
        path = within + name
        if any(each.startswith(f"{path}.") for each in known):
            for inner in value if isinstance(value, list) else [value]:
                yield from _unknown(inner, known, f"{path}.")
        elif path not in known:
            yield path


def without(properties: Properties, *names: str) -> dict[str, Any]:
    """The properties but ``names``: those that the API takes as they are."""
    return {name: value for name, value in properties.items() if name not in names}


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


def create_rule(context: Context, place: Place, properties: Properties) -> Created:
    """The rule: its events go to queues of the stack, or its schedule calls functions of it."""
    if "EventPattern" not in properties:
        rate(properties.get("ScheduleExpression", ""))
    wanted = "AWS::SQS::Queue" if "EventPattern" in properties else "AWS::Lambda::Function"
    resources = place.stack.resources
    for target in resources[place.logical_id]["Properties"]["Targets"]:  # as they are written
        match target["Arn"]:
            case {"Fn::GetAtt": [name, "Arn"]} if resources[name]["Type"] == wanted:
                pass
            case other:
                raise UnsupportedTemplateError(f"a target at {other} is not known here")
    events = context.client("events")
    name = properties.get("Name") or place.name(64)
    given: Mapping[str, Any] = without(properties, "Targets", "Name")
    if "EventPattern" in given:
        given = {**given, "EventPattern": json.dumps(given["EventPattern"])}
    arn = events.put_rule(Name=name, **given)["RuleArn"]
    events.put_targets(Rule=name, Targets=properties["Targets"])
    return Created(name, {"Arn": arn})


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


def create_machine(context: Context, place: Place, properties: Properties) -> Created:
    """The state machine; moto's grammar knows the children of a map as STANDARD executions only."""
    name, definition = place.name(80), properties["DefinitionString"]
    unknown = {*re.findall(r":states:::([\w:.-]+)", definition)} - _INTEGRATIONS
    unknown |= {*re.findall(r"\bToleratedFailure\w+", definition)}
    if unknown:
        raise UnsupportedTemplateError(f"the definition's {min(unknown)} is not known here")
    arn = context.client("stepfunctions").create_state_machine(
        name=name,
        roleArn=properties["RoleArn"],
        definition=definition.replace('"EXPRESS"', '"STANDARD"'),
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


def create_alarm(context: Context, place: Place, properties: Properties) -> Created:
    """The alarm, which fires and sends nothing; one that `Metrics` does not evaluate is refused."""
    said = [one["Expression"] for one in properties.get("Metrics", ()) if "Expression" in one]
    unknown = {*said, properties["ComparisonOperator"]} - {SUM, *COMPARED}
    if unknown:
        raise UnsupportedTemplateError(f"{min(unknown)} is not known here")
    name = properties.get("AlarmName") or place.name(255)
    context.client("cloudwatch").put_metric_alarm(**{**properties, "AlarmName": name})
    return Created(name)


# The resource types that are known, by CloudFormation name.
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
    ),
    "AWS::CloudWatch::Alarm": ResourceType(
        create_alarm,
        "AlarmName AlarmDescription AlarmActions OKActions ComparisonOperator Metrics"
        " EvaluationPeriods Threshold TreatMissingData Namespace MetricName Dimensions Period"
        " Statistic",
    ),
    "AWS::Lambda::Function": ResourceType(
        create_function,
        "Code.S3Bucket Code.S3Key Runtime Handler Role Description Timeout MemorySize Environment"
        " Layers TracingConfig Architectures",
        "LoggingConfig",  # a log has the function's name here; errors go to stderr
    ),
    "AWS::Lambda::LayerVersion": ResourceType(
        create_layer, "Content.S3Bucket Content.S3Key CompatibleRuntimes CompatibleArchitectures"
    ),
    "AWS::Lambda::EventSourceMapping": ResourceType(
        create_mapping, "EventSourceArn FunctionName BatchSize FunctionResponseTypes ScalingConfig"
    ),
    "AWS::StepFunctions::StateMachine": ResourceType(
        create_machine,
        "StateMachineType RoleArn DefinitionString",
        # The history of every execution is kept here instead.
        "LoggingConfiguration TracingConfiguration",
    ),
    "AWS::IAM::Role": ResourceType(create_role, "AssumeRolePolicyDocument Path"),
}
