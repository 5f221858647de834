"""Lambda and Step Functions."""

from __future__ import annotations

import io
import json
import re
import zipfile
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


def create_function(context: Context, place: Place, properties: Properties) -> Created:
    """The function, its code from the published asset, and its reserved concurrency."""
    client = context.client("lambda")
    name = properties.get("FunctionName") or place.name(64)
    request = given(
        properties,
        *("Runtime", "Handler", "Role", "Description", "Timeout", "MemorySize", "Environment"),
        *("Layers", "TracingConfig", "Architectures", "LoggingConfig", "EphemeralStorage"),
    )
    made = client.create_function(
        FunctionName=name,
        Code=_code(properties["Code"]),
        Tags={tag["Key"]: tag["Value"] for tag in tags(properties)},
        **request,
    )
    if "ReservedConcurrentExecutions" in properties:
        client.put_function_concurrency(
            FunctionName=name,
            ReservedConcurrentExecutions=int(properties["ReservedConcurrentExecutions"]),
        )
    return Created(name, {"Arn": made["FunctionArn"]})


def _code(value: Properties) -> dict[str, Any]:
    code = pick(value, same("S3Bucket", "S3Key", "ZipFile"), "Code")
    if "ZipFile" in code:  # inline text becomes index.py, as in AWS
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("index.py", code["ZipFile"])
        code["ZipFile"] = buffer.getvalue()
    return code


def create_layer(context: Context, place: Place, properties: Properties) -> Created:
    """A first version of the layer; ``Ref`` is the version's ARN."""
    made = context.client("lambda").publish_layer_version(
        LayerName=properties.get("LayerName") or place.name(64),
        Content=pick(properties["Content"], same("S3Bucket", "S3Key"), "Content"),
        **given(properties, "Description", "CompatibleRuntimes", "CompatibleArchitectures"),
        **given(properties, "LicenseInfo"),
    )
    arn = made["LayerVersionArn"]
    return Created(arn, {"LayerVersionArn": arn})


def create_mapping(context: Context, _place: Place, properties: Properties) -> Created:
    """The event source mapping; the runtime polls for it from here on."""
    request = given(
        properties,
        *("EventSourceArn", "FunctionName", "BatchSize", "MaximumBatchingWindowInSeconds"),
        *("Enabled", "FunctionResponseTypes", "ScalingConfig"),
    )
    made = context.client("lambda").create_event_source_mapping(**request)
    return Created(made["UUID"], {"Id": made["UUID"]})


def create_permission(context: Context, place: Place, properties: Properties) -> Created:
    """The statement in the function's policy."""
    request = given(properties, "Action", "Principal", "SourceArn", "SourceAccount")
    context.client("lambda").add_permission(
        FunctionName=properties["FunctionName"], StatementId=place.logical_id, **request
    )
    return Created(place.logical_id)


def create_machine(context: Context, place: Place, properties: Properties) -> Created:
    """The state machine, its substitutions made in the text of the definition."""
    name = properties.get("StateMachineName") or place.name(80)
    request: dict[str, Any] = {
        "name": name,
        "roleArn": properties["RoleArn"],
        "definition": definition(context, properties),
        "type": properties.get("StateMachineType", "STANDARD"),
        "tags": [{"key": tag["Key"], "value": tag["Value"]} for tag in tags(properties)],
    }
    if "TracingConfiguration" in properties:
        enabled = properties["TracingConfiguration"].get("Enabled", False)
        request["tracingConfiguration"] = {"enabled": enabled}
    arn = context.client("stepfunctions").create_state_machine(**request)["stateMachineArn"]
    return Created(arn, {"Arn": arn, "Name": name})


def definition(context: Context, properties: Properties) -> str:
    """The definition as text, wherever it comes from, with its substitutions made."""
    if "DefinitionS3Location" in properties:
        where = properties["DefinitionS3Location"]
        body = context.client("s3").get_object(Bucket=where["Bucket"], Key=where["Key"])["Body"]
        text: str = body.read().decode()
    elif "Definition" in properties:
        text = json.dumps(properties["Definition"])
    else:
        text = properties["DefinitionString"]
    values = properties.get("DefinitionSubstitutions", {})
    return re.sub(
        r"\$\{([A-Za-z0-9_]+)\}",
        lambda found: str(values.get(found[1], found[0])),
        text,
    )


_NO_POLICY = "permissions are not enforced here"

TYPES = {
    "AWS::Lambda::Function": ResourceType(
        create_function,
        frozenset(
            {"FunctionName", "Code", "Runtime", "Handler", "Role", "Description", "Timeout"}
            | {"MemorySize", "Environment", "Layers", "TracingConfig", "Architectures", "Tags"}
            | {"LoggingConfig", "EphemeralStorage", "ReservedConcurrentExecutions"}
        ),
        {
            "RecursiveLoop": "loops are not looked for here",
            "RuntimeManagementConfig": "the interpreter is this machine's",
        },
    ),
    "AWS::Lambda::LayerVersion": ResourceType(
        create_layer,
        frozenset(
            {"LayerName", "Content", "Description", "CompatibleRuntimes", "LicenseInfo"}
            | {"CompatibleArchitectures"}
        ),
    ),
    "AWS::Lambda::EventSourceMapping": ResourceType(
        create_mapping,
        frozenset(
            {"EventSourceArn", "FunctionName", "BatchSize", "MaximumBatchingWindowInSeconds"}
            | {"Enabled", "FunctionResponseTypes", "ScalingConfig"}
        ),
        {"Tags": "nothing looks at them here"},
    ),
    "AWS::Lambda::Permission": ResourceType(
        create_permission,
        frozenset({"Action", "FunctionName", "Principal", "SourceArn", "SourceAccount"}),
    ),
    "AWS::Lambda::EventInvokeConfig": ResourceType(
        lambda _context, place, _properties: Created(place.logical_id),
        frozenset(),
        {
            "FunctionName": "the function exists",
            "Qualifier": "there is one version here",
            "MaximumRetryAttempts": "asynchronous calls are tried again twice here",
            "MaximumEventAgeInSeconds": "asynchronous calls don't grow old here",
        },
    ),
    "AWS::StepFunctions::StateMachine": ResourceType(
        create_machine,
        frozenset(
            {"StateMachineName", "StateMachineType", "RoleArn", "DefinitionString", "Definition"}
            | {"DefinitionS3Location", "DefinitionSubstitutions", "TracingConfiguration", "Tags"}
        ),
        {
            "LoggingConfiguration": "the history of every execution is kept here instead",
            "EncryptionConfiguration": "everything is in memory here",
        },
    ),
}
