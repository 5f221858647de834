"""What the loader creates, and what it refuses before it creates anything."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from s3commit.local import LocalRuntimeError, UnsupportedTemplateError
from s3commit.local.assembly import load_assembly
from s3commit.local.loader import TYPES, data_bucket, load
from s3commit.local.resources import Context, Place
from s3commit.local.resources.compute import create_machine
from s3commit.local.resources.data import create_rule
from s3commit.local.server import LocalRuntime
from tests.local import templates
from tests.local.conftest import Local

Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda r: r.update(Cache={"Type": "AWS::ElastiCache::Cache"}),
            r"Pipeline/Cache \(AWS::ElastiCache::Cache\): the type",
        ),
        (
            lambda r: r["Probe"]["Properties"].update(VpcConfig={}),
            r"Pipeline/Probe \(AWS::Lambda::Function\): the property VpcConfig",
        ),
        (
            lambda r: r["Probe"].update(CreationPolicy={}),
            r"Pipeline/Probe \(AWS::Lambda::Function\): the attribute CreationPolicy",
        ),
        (
            lambda r: r["Probe"].update(Condition="Perhaps"),
            r"Pipeline/Probe \(AWS::Lambda::Function\): the attribute Condition",
        ),
        (
            lambda r: r["Probe"]["Properties"].update(Code={"ZipFile": "x = 1"}),
            r"Pipeline/Probe \(AWS::Lambda::Function\): Code.ZipFile",
        ),
        (
            lambda r: r["Hourly"]["Properties"].update(ScheduleExpression="cron(0 2 * * ? *)"),
            r"Pipeline/Hourly \(AWS::Events::Rule\): the schedule 'cron\(.*' is no rate",
        ),
        (
            lambda r: r["Hourly"]["Properties"].pop("ScheduleExpression"),
            r"Pipeline/Hourly \(AWS::Events::Rule\): no 'ScheduleExpression' is given",
        ),
        (
            lambda r: r["Hourly"]["Properties"]["Targets"][0].update(InputPath="$"),
            r"Pipeline/Hourly \(AWS::Events::Rule\): Targets.InputPath",
        ),
        (
            lambda r: r.update(
                B={
                    "Type": "AWS::S3::Bucket",
                    "Properties": {"LifecycleConfiguration": {"Rules": [{"Transitions": []}]}},
                }
            ),
            r"Pipeline/B \(AWS::S3::Bucket\): LifecycleConfiguration.Rules.Transitions",
        ),
    ],
)
def test_what_is_not_known_is_refused_before_anything_starts(
    tmp_path: Path, change: Change, message: str
) -> None:
    pipeline = templates.pipeline()
    change(pipeline["Resources"])
    directory = templates.write(tmp_path / "out", templates.storage(), pipeline)
    threads = threading.active_count()
    with pytest.raises(UnsupportedTemplateError, match=message):
        LocalRuntime(directory).start()
    assert threading.active_count() == threads


def test_a_section_that_is_not_known_is_refused(tmp_path: Path) -> None:
    storage = templates.storage() | {"Conditions": {"Perhaps": {"Fn::Equals": ["a", "b"]}}}
    directory = templates.write(tmp_path / "out", storage, templates.pipeline())
    with pytest.raises(UnsupportedTemplateError, match="Storage: the section Conditions"):
        LocalRuntime(directory).start()


def test_every_property_is_either_applied_or_left_with_a_reason() -> None:
    for name, kind in TYPES.items():
        assert not kind.applies & set(kind.leaves), name
        assert all(kind.leaves.values()), name


def test_the_bucket_has_its_settings(local: Local) -> None:
    versioning = local.s3.get_bucket_versioning(Bucket=local.bucket)
    assert versioning["Status"] == "Enabled"
    rules = local.s3.get_bucket_lifecycle_configuration(Bucket=local.bucket)["Rules"]
    assert rules[0]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    queues = local.s3.get_bucket_notification_configuration(Bucket=local.bucket)
    assert queues["QueueConfigurations"][0]["QueueArn"] == local.output("EventsArn")


def test_the_table_has_its_time_to_live_and_its_recovery(local: Local) -> None:
    name = local.runtime.table
    ttl = local.dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert ttl == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}
    backups = local.dynamodb.describe_continuous_backups(TableName=name)
    recovery = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    assert recovery["PointInTimeRecoveryStatus"] == "ENABLED"


def test_the_output_names_the_data_bucket(assembly: Path, tmp_path: Path) -> None:
    assert data_bucket(load_assembly(assembly)) == Place("Storage", "Bucket")
    storage = templates.storage()
    storage["Outputs"]["BucketName"] = {"Value": "imported-bucket"}
    other = templates.write(tmp_path / "out", storage, templates.pipeline())
    with pytest.raises(LocalRuntimeError, match="can't be renamed"):
        data_bucket(load_assembly(other))


def test_a_circle_is_an_error_that_names_it(local: Local, tmp_path: Path) -> None:
    storage = templates.storage()
    storage["Resources"]["QueuePolicy"]["DependsOn"] = ["Bucket"]
    assembly = load_assembly(templates.write(tmp_path / "o", storage, templates.pipeline()))
    context = Context("1", "us-east-1", local.runtime.client)
    with pytest.raises(LocalRuntimeError, match=r"in a circle: .*QueuePolicy"):
        load(assembly, context)


def no_client(_service: str) -> None:
    raise AssertionError("nothing may be created")


UNTOUCHED = Context("1", "eu-central-1", no_client)


@pytest.mark.parametrize("arn", ["arn:aws:states:eu-central-1:1:stateMachine:m", "Receiver", ""])
def test_a_target_that_is_no_function_is_refused_when_it_is_loaded(arn: str) -> None:
    """And not when its rule fires, where the error would be lost."""
    with pytest.raises(UnsupportedTemplateError, match=r"a target at .* is not known here"):
        create_rule(UNTOUCHED, Place("Pipeline", "Rule"), {"Targets": [{"Id": "1", "Arn": arn}]})


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"Resource": "arn:aws:states:::aws-sdk:s3:listObjectsV2"}, "aws-sdk:s3:listObjectsV2"),
        ({"Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken"}, "lambda:invoke.wait"),
        ({"Type": "Map", "ToleratedFailurePercentage": 5}, "ToleratedFailurePercentage"),
        ({"Type": "Map", "ToleratedFailureCountPath": "$.n"}, "ToleratedFailureCountPath"),
    ],
)
def test_a_machine_that_uses_what_is_not_known_is_refused(state: Any, message: str) -> None:
    text = json.dumps({"StartAt": "A", "States": {"A": state}})
    with pytest.raises(UnsupportedTemplateError, match=f"Pipeline/Machine: .* {message}.* known"):
        create_machine(UNTOUCHED, Place("Pipeline", "Machine"), {"DefinitionString": text})
