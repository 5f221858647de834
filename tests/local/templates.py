"""A small cloud assembly, written by hand: what the tests look at (test_application.py has all)."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ASSET_BUCKET = "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"
CODE = "c0de.zip"
LAYER = "1a7e5.zip"
Json = dict[str, Any]


def asset_of(key: str) -> Json:
    return {"S3Bucket": {"Fn::Sub": ASSET_BUCKET}, "S3Key": key}


def resource(kind: str, **properties: Any) -> Json:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def arn_of(name: str) -> Json:
    return {"Fn::GetAtt": [name, "Arn"]}


def function(handler: str, **properties: Any) -> Json:
    table = {"Fn::ImportValue": "Storage:Table"}
    given = {
        "Code": asset_of(CODE),
        "Handler": handler,
        "Role": arn_of("Role"),
        "Runtime": "python3.13",
        "Architectures": ["arm64"],
        "Layers": [{"Ref": "Layer"}],
        "Timeout": 60,
        "MemorySize": 256,
        "Environment": {"Variables": {"TABLE": table}},
    }
    return resource("Lambda::Function", **given | properties) | {"DependsOn": ["Role"]}


def task(function_id: str, **more: Any) -> Json:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": "${" + function_id + "}", "Payload.$": "$"},
        "OutputPath": "$.Payload",
        **more,
    }


def joined(text: str) -> Json:
    """``text`` as the CDK writes it: ``${Name}`` becomes the reference that it stands for."""
    between = re.split(r"\$\{(\w+)\}", text)
    items = [{"Ref": item} if n % 2 else item for n, item in enumerate(between)]
    return {"Fn::Join": ["", items]}


MACHINE: Json = {
    "StartAt": "Choose",
    "States": {
        "Choose": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.do", "StringEquals": "map", "Next": "Units"},
                {"Variable": "$.do", "StringEquals": "wait", "Next": "Wait"},
            ],
            "Default": "Call",
        },
        "Call": task("Probe", End=True, Catch=[{"ErrorEquals": ["TransientError"], "Next": "Bad"}]),
        "Bad": {"Type": "Pass", "Result": {"caught": True}, "End": True},
        "Wait": {"Type": "Wait", "SecondsPath": "$.seconds", "End": True},
        "Units": {
            "Type": "Map",
            "ItemReader": {
                "Resource": "arn:aws:states:::s3:getObject",
                "ReaderConfig": {"InputType": "JSON"},
                "Parameters": {"Bucket.$": "$.bucket", "Key.$": "$.key"},
            },
            "MaxConcurrency": 2,
            "ItemProcessor": {
                "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
                "StartAt": "Same",
                "States": {"Same": {"Type": "Pass", "End": True}},
            },
            "ResultPath": "$.done",
            "End": True,
        },
    },
}


def storage() -> Json:
    expire = {
        "Id": "uploads",
        "Status": "Enabled",
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
    }
    notify = {
        "Event": "s3:ObjectCreated:*",
        "Queue": arn_of("Events"),
        "Filter": {"S3Key": {"Rules": [{"Name": "suffix", "Value": ".announced"}]}},
    }
    keys = {"pk": "HASH", "sk": "RANGE"}
    return {
        "Resources": {
            "Dead": resource("SQS::Queue"),
            "Queue": resource(
                "SQS::Queue",
                VisibilityTimeout=2,
                RedrivePolicy={"deadLetterTargetArn": arn_of("Dead"), "maxReceiveCount": 2},
            ),
            "Events": resource("SQS::Queue"),
            "Bucket": resource(
                "S3::Bucket",
                VersioningConfiguration={"Status": "Enabled"},
                LifecycleConfiguration={"Rules": [expire]},
                NotificationConfiguration={"QueueConfigurations": [notify]},
            ),
            "Table": resource(
                "DynamoDB::Table",
                KeySchema=[{"AttributeName": key, "KeyType": keys[key]} for key in keys],
                AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
                BillingMode="PAY_PER_REQUEST",
            ),
        },
        "Outputs": {
            "BucketName": {"Value": {"Ref": "Bucket"}},
            "TableName": {"Value": {"Ref": "Table"}, "Export": {"Name": "Storage:Table"}},
            "QueueUrl": {"Value": {"Ref": "Queue"}},
            "QueueArn": {"Value": arn_of("Queue"), "Export": {"Name": "Storage:Queue"}},
            "DeadUrl": {"Value": {"Ref": "Dead"}},
            "EventsArn": {"Value": arn_of("Events")},
        },
    }


def pipeline() -> Json:
    functions = {
        "Probe": function("probe.handler"),
        "Slow": function("probe.handler", Timeout=1),
        "Broken": function("broken.handler"),
        "Batch": function("probe.batch"),
    }
    target = {"Id": "M", "Arn": arn_of("Probe"), "Input": '{"do":"echo","from":"rule"}'}
    return {
        "Resources": {
            "Role": resource("IAM::Role", AssumeRolePolicyDocument={"Statement": []}),
            "Layer": resource("Lambda::LayerVersion", Content=asset_of(LAYER)),
            **functions,
            "Mapping": resource(
                "Lambda::EventSourceMapping",
                EventSourceArn={"Fn::ImportValue": "Storage:Queue"},
                FunctionName={"Ref": "Batch"},
                BatchSize=10,
                ScalingConfig={"MaximumConcurrency": 2},
                FunctionResponseTypes=["ReportBatchItemFailures"],
            ),
            "Machine": resource(
                "StepFunctions::StateMachine",
                RoleArn=arn_of("Role"),
                StateMachineType="STANDARD",
                DefinitionString=joined(json.dumps(MACHINE)),
            ),
            "Failing": resource(
                "CloudWatch::Alarm",
                AlarmName="Pipeline/Failing",
                Namespace="AWS/Lambda",
                MetricName="Errors",
                Dimensions=[{"Name": "FunctionName", "Value": {"Ref": "Broken"}}],
                Period=60,
                Statistic="Sum",
                EvaluationPeriods=1,
                Threshold=0,
                ComparisonOperator="GreaterThanThreshold",
                TreatMissingData="notBreaching",
            ),
            "Hourly": resource("Events::Rule", ScheduleExpression="rate(1 hour)", Targets=[target]),
        },
        "Outputs": {"StateMachineArn": {"Value": {"Ref": "Machine"}}}
        | {name: {"Value": {"Ref": name}} for name in functions},
    }


def write(directory: Path, storage: Json, pipeline: Json) -> Path:
    """Write the two stacks as a cloud assembly and return its directory."""
    directory.mkdir(parents=True, exist_ok=True)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HERE / "fixture_code", directory / "asset.c0de", ignore=ignore)
    shutil.copytree(HERE / "fixture_layer", directory / "asset.1a7e5", ignore=ignore)
    artifacts: Json = {"Tree": {"type": "cdk:tree"}}
    for name, template, needs in (("Storage", storage, []), ("Pipeline", pipeline, ["Storage"])):
        (directory / f"{name}.template.json").write_text(json.dumps(template))
        artifacts[f"{name}.assets"] = {
            "type": "cdk:asset-manifest",
            "properties": {"file": f"{name}.assets.json"},
        }
        artifacts[name] = {
            "type": "aws:cloudformation:stack",
            "properties": {"templateFile": f"{name}.template.json"},
            "dependencies": [f"{name}.assets", *needs],
        }
    # The dependent stack stands first: order comes from what depends on what.
    ordered = dict(reversed(artifacts.items()))
    (directory / "manifest.json").write_text(json.dumps({"artifacts": ordered}))
    return directory
