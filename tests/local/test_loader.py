"""What is read of a cloud assembly, what the loader creates, and what it refuses before."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from s3commit.local import LocalRuntimeError, UnsupportedTemplateError
from s3commit.local.assembly import Stack, load_assembly
from s3commit.local.loader import Loading, rename_data_bucket
from s3commit.local.resources import TYPES, Context, Created
from s3commit.local.runtime import LocalRuntime
from s3commit.local.triggers import rate
from tests.local import templates
from tests.local.conftest import Local


@pytest.mark.parametrize(
    ("name", "resource", "message"),
    [
        ("Cache", templates.resource("ElastiCache::Cache"), "the type"),
        (
            "Probe",
            templates.function("x.y") | {"CreationPolicy": {}},
            "the attribute CreationPolicy",
        ),
        ("Probe", templates.function("x.y", VpcConfig={}), "the property VpcConfig"),
        ("Probe", templates.function("x.y", Code={"ZipFile": "z"}), "the property Code.ZipFile"),
        (
            "Hourly",
            templates.resource("Events::Rule", Targets=[{"InputPath": "$"}]),
            "the property Targets.InputPath",
        ),
        (
            "B",
            templates.resource(
                "S3::Bucket", LifecycleConfiguration={"Rules": [{"Transitions": []}]}
            ),
            r"the property Lifecycle.*\.Rules\.Transitions",
        ),
    ],
)
def test_what_is_not_known_is_refused_before_anything_starts(
    tmp_path: Path, name: str, resource: dict[str, Any], message: str
) -> None:
    pipeline = templates.pipeline()
    pipeline["Resources"][name] = resource
    directory = templates.write(tmp_path / "out", templates.storage(), pipeline)
    threads = threading.active_count()
    told = rf"Pipeline/{name} \({resource['Type']}\): {message}"
    with pytest.raises(UnsupportedTemplateError, match=told):
        LocalRuntime(directory)
    assert threading.active_count() == threads


def test_a_section_that_is_not_known_is_refused(tmp_path: Path) -> None:
    storage = templates.storage() | {"Conditions": {"Perhaps": {"Fn::Equals": ["a", "b"]}}}
    directory = templates.write(tmp_path / "out", storage, templates.pipeline())
    with pytest.raises(UnsupportedTemplateError, match="Storage: the section Conditions"):
        LocalRuntime(directory)


def test_no_property_is_both_applied_and_left() -> None:
    for name, kind in TYPES.items():
        assert {*kind.applies.split()}.isdisjoint(kind.leaves.split()), name


def test_the_bucket_has_its_settings(local: Local) -> None:
    versioning = local.s3.get_bucket_versioning(Bucket=local.bucket)
    assert versioning["Status"] == "Enabled"
    rules = local.s3.get_bucket_lifecycle_configuration(Bucket=local.bucket)["Rules"]
    assert rules[0]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    queues = local.s3.get_bucket_notification_configuration(Bucket=local.bucket)
    assert queues["QueueConfigurations"][0]["QueueArn"] == local.output("EventsArn")


def test_the_data_bucket_alone_is_renamed(assembly: Path, tmp_path: Path) -> None:
    stacks = load_assembly(assembly)
    rename_data_bucket(stacks, "lake")
    assert stacks[0].resources["Bucket"]["Properties"]["BucketName"] == "lake"
    storage = templates.storage()
    storage["Outputs"]["BucketName"] = {"Value": "imported-bucket"}
    other = templates.write(tmp_path / "out", storage, templates.pipeline())
    with pytest.raises(LocalRuntimeError, match="can't be renamed"):
        LocalRuntime(other, bucket="lake")


def machine(**state: Any) -> dict[str, Any]:
    definition = json.dumps({"StartAt": "A", "States": {"A": state}})
    return {"DefinitionString": templates.joined(definition)}


@pytest.mark.parametrize(
    ("name", "properties", "message"),
    [
        (
            "Failing",
            {"Metrics": [{"Expression": "RATE(m)"}]},
            r"\(AWS::CloudWatch::Alarm\): RATE\(m\) is not known here",
        ),
        ("Failing", {"ComparisonOperator": "Between"}, "Between is not known here"),
        ("Hourly", {"ScheduleExpression": "cron(0 2 * * ? *)"}, r"'cron\(.*' is not a rate"),
        (
            "Hourly",
            {"Targets": [{"Arn": {"Ref": "Machine"}}]},
            "a target at {'Ref': 'Machine'} is not known here",
        ),
        ("Machine", machine(Resource="arn:aws:states:::aws-sdk:s3:x"), "aws-sdk:s3:x is not known"),
        ("Machine", machine(Resource="arn:aws:states:::lambda:invoke.wait"), "lambda:invoke.wait"),
        ("Machine", machine(ToleratedFailurePercentage=5), "ToleratedFailurePercentage"),
        ("Machine", machine(ToleratedFailureCountPath="$.n"), "ToleratedFailureCountPath"),
        ("Probe", {"Code": templates.asset_of("gone.zip")}, "could not be made: .*/asset.gone'"),
    ],
)
def test_a_value_that_is_not_known_is_refused(
    tmp_path: Path, name: str, properties: dict[str, Any], message: str
) -> None:
    pipeline = templates.pipeline()
    pipeline["Resources"][name]["Properties"] |= properties
    created = {one: Created(one, {"Arn": one}) for one in pipeline["Resources"] if one != name}
    exports = {"Storage:Table": "table"}
    stack, context = Stack("Pipeline", pipeline, tmp_path), Context(pytest.fail, tmp_path)
    with pytest.raises(LocalRuntimeError, match=f"Pipeline/{name} .*{message}") as refused:
        Loading(stack, context, exports, created).made(name)
    assert isinstance(refused.value, UnsupportedTemplateError) == (name != "Probe")


# Reading what is loaded


def test_what_is_no_assembly_or_an_unknown_artifact_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LocalRuntimeError, match="is this a synthesized assembly"):
        load_assembly(tmp_path)
    manifest = {"artifacts": {"Nested": {"type": "cdk:cloud-assembly"}}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UnsupportedTemplateError, match="Nested has the unknown type cdk:cloud-a"):
        load_assembly(tmp_path)


@pytest.mark.parametrize(
    "expression",
    ["", "rate(0 hours)", "rate(hour)", "rate(5 seconds)", "cron(0 2 * * ? *)", "at(2026-12-01)"],
)
def test_what_is_no_rate_is_refused(expression: str) -> None:
    with pytest.raises(UnsupportedTemplateError, match="is not a rate"):
        rate(expression)


# CloudFormation's intrinsic functions


TEMPLATE = {
    "Parameters": {"Boot": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/cdk"}},
    "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
}


@pytest.fixture
def loading() -> Loading:
    created = {"Queue": Created("url", {"Arn": "arn:q"})}
    context = Context(pytest.fail, Path())  # nothing may be created
    return Loading(Stack("S", TEMPLATE, Path()), context, {"S:Out": "imported"}, created)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"Fn::Cidr": []}, "Fn::Cidr"),
        ({"Fn::If": ["Perhaps", 1, 2]}, "Fn::If"),
        ({"Fn::GetAtt": "Queue.Arn"}, "Fn::GetAtt of 'Queue.Arn'"),
        ({"Fn::Sub": ["${A}", {"A": "x"}]}, "Fn::Sub of"),
        ({"Fn::Sub": "${Queue}"}, "Ref Queue"),
        ({"Ref": "Nobody"}, "Ref Nobody"),
        ({"Ref": "AWS::NoValue"}, "Ref AWS::NoValue"),
        ({"Ref": "Boot"}, "Ref Boot"),
        ({"Fn::GetAtt": ["Queue", "Colour"]}, "AWS::SQS::Queue Queue has no attribute Colour"),
        ({"Fn::ImportValue": "Nowhere"}, "Fn::ImportValue of 'Nowhere'"),
    ],
)
def test_what_is_not_known_is_named(loading: Loading, value: Any, message: str) -> None:
    with pytest.raises(UnsupportedTemplateError, match=message):
        loading.resolve(value)
