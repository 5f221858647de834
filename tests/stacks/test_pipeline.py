"""Functions, layers and queues fit together."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from s3commit.aws import env
from s3commit.version import __version__
from stacks.functions import FUNCTIONS
from stacks.layers import ROOT
from tests.stacks.synthesized import (
    Assembly,
    Resource,
    functions,
    of_type,
    only,
    state_machine,
)

PACKAGE = ROOT / "layers" / "s3commit" / "python" / "s3commit"
VARIABLES = {env.TABLE, env.BUCKET, env.STATE_MACHINE, env.LEDGER_TTL_DAYS, env.REPLACE_BELOW}


def test_every_variable_that_is_set_is_read_and_the_other_way_round() -> None:
    given = {variable for function in FUNCTIONS.values() for variable in function.reads}
    settings = (PACKAGE / "aws" / "settings.py").read_text()
    read = set(re.findall(r"\benv\.([A-Z_]+)", settings))
    assert given == VARIABLES == {getattr(env, name) for name in read}


def test_no_other_module_reads_the_environment() -> None:
    modules = [*(ROOT / "lambdas").glob("*.py"), *(PACKAGE / "aws").glob("*.py")]
    reading = [path.stem for path in modules if re.search(r"environ\[|getenv", path.read_text())]
    assert reading == ["settings"]


def test_no_credential_can_reach_a_log() -> None:
    modules = [*(ROOT / "lambdas").glob("*.py"), *(PACKAGE / "aws").glob("*.py")]
    telling = (
        r"presigned|log_event|set_stream_logger|get_credentials(?!\(\) is None)"
        r"|logger\.\w+\(.*(event|environ)\b"
    )
    assert [path.stem for path in modules if re.search(telling, path.read_text())] == []


def test_functions_run_on_one_architecture(assembly: Assembly, encrypted: Assembly) -> None:
    for each, architecture in ((assembly, "arm64"), (encrypted, "x86_64")):
        for _, function in functions(each.pipeline).values():
            assert function["Properties"]["Architectures"] == [architecture]


def test_every_log_is_kept_for_a_set_time(assembly: Assembly) -> None:
    for group in of_type(assembly.pipeline, "AWS::Logs::LogGroup").values():
        assert group["Properties"]["RetentionInDays"] == 30
    for _, function in functions(assembly.pipeline).values():
        assert "LogGroup" in function["Properties"]["LoggingConfig"]


def test_the_package_layer_holds_what_handlers_import_and_no_more(assembly: Assembly) -> None:
    content = _layer(assembly, "PackageLayer")
    assert {path.name for path in (content / "python" / "s3commit").iterdir()} == {
        *("__init__.py", "version.py", "py.typed", "aws", "core")
    }


@pytest.mark.parametrize(
    ("name", "queue", "at_once"),
    [("ingest", "Ingest", 1), ("dispatch", "Request", 10)],
)
def test_a_queue_feeds_its_function_and_gets_failed_messages_back(
    assembly: Assembly, name: str, queue: str, at_once: int
) -> None:
    """I12: a manifest that kills the call that reads it takes no other one's message with it."""
    mapping = _mapping(assembly, name)["Properties"]
    assert f"GetAtt{queue}Queue" in mapping["EventSourceArn"]["Fn::ImportValue"]
    assert mapping["BatchSize"] == at_once
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert "MaximumBatchingWindowInSeconds" not in mapping
    assert mapping["ScalingConfig"]["MaximumConcurrency"] >= 2


@pytest.mark.parametrize(("name", "queue"), [("ingest", "Ingest"), ("dispatch", "Request")])
def test_a_message_stays_hidden_for_six_timeouts(assembly: Assembly, name: str, queue: str) -> None:
    queues = of_type(assembly.storage, "AWS::SQS::Queue")
    hidden = next(
        each["Properties"]["VisibilityTimeout"]
        for key, each in queues.items()
        if key.startswith(f"{queue}Queue")
    )
    _, function = functions(assembly.pipeline)[name]
    assert hidden >= 6 * function["Properties"]["Timeout"]


def test_alarms_watch_queues_jobs_and_functions(assembly: Assembly) -> None:
    alarms = of_type(assembly.pipeline, "AWS::CloudWatch::Alarm")
    watched = {re.sub(r"[0-9A-F]{8}$", "", key).removeprefix("Observability") for key in alarms}
    assert watched == {
        *("IngestDeadLetters", "IngestBacklog", "RequestDeadLetters", "RequestBacklog"),
        *("JobsFailed", "JobsTimedOut", "SweepsFailed", "FunctionErrors", "FunctionThrottles"),
        "DocumentsRefused",
    }
    guide = (ROOT / "docs" / "deploy.md").read_text()
    assert [name for name in watched if f"`{name}`" not in guide] == []
    for alarm in alarms.values():
        assert alarm["Properties"]["AlarmActions"]
        assert alarm["Properties"]["AlarmDescription"]
        assert alarm["Properties"]["TreatMissingData"] == "notBreaching"


def test_i12_refused_documents_ring_and_the_dashboard_says_whose_they_are(
    assembly: Assembly,
) -> None:
    alarms = of_type(assembly.pipeline, "AWS::CloudWatch::Alarm")
    (alarm,) = [one["Properties"] for key, one in alarms.items() if "DocumentsRefused" in key]
    (metric,) = [one["MetricStat"] for one in alarm["Metrics"]]
    assert metric["Metric"]["MetricName"] == env.DOCUMENTS_REFUSED
    assert metric["Metric"]["Dimensions"] == [{"Name": "service", "Value": env.SERVICE}]
    assert (alarm["Threshold"], metric["Period"], metric["Stat"]) == (10, 300, "Sum")
    board = json.dumps(only(assembly.pipeline, "AWS::CloudWatch::Dashboard")["Properties"])
    assert "by prefix, code" in board
    groups = set(re.findall(r"\b(\w+)Logs[0-9A-F]{8}\b", board))
    assert groups == {"Ingest", "Dispatch", "End"}


def test_cloudwatch_may_publish_the_alarms_of_the_account_alone(assembly: Assembly) -> None:
    policy = only(assembly.pipeline, "AWS::SNS::TopicPolicy")["Properties"]["PolicyDocument"]
    (allowing,) = [one for one in policy["Statement"] if one["Effect"] == "Allow"]
    assert allowing["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowing["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    }


def test_alarms_are_mailed_if_an_address_is_given(assembly: Assembly, encrypted: Assembly) -> None:
    assert not of_type(assembly.pipeline, "AWS::SNS::Subscription")
    assert only(encrypted.pipeline, "AWS::SNS::Subscription")["Properties"]["Endpoint"] == (
        "oncall@example.com"
    )


def _mapping(assembly: Assembly, name: str) -> Resource:
    logical_id, _ = functions(assembly.pipeline)[name]
    mappings = of_type(assembly.pipeline, "AWS::Lambda::EventSourceMapping").values()
    (mapping,) = [
        one for one in mappings if one["Properties"]["FunctionName"] == {"Ref": logical_id}
    ]
    return mapping


def _layer(assembly: Assembly, name: str) -> Path:
    layers = of_type(assembly.pipeline, "AWS::Lambda::LayerVersion")
    (layer,) = [resource for key, resource in layers.items() if key.startswith(name)]
    return assembly.asset_of(layer)


def test_an_account_with_ten_functions_at_once_takes_the_template(imported: Assembly) -> None:
    """It may reserve none, and its functions have 3,008 MB at most.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
    https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    """
    for _, function in functions(imported.pipeline).values():
        assert "ReservedConcurrentExecutions" not in function["Properties"]
        assert function["Properties"]["MemorySize"] <= 3008
    assert not of_type(imported.pipeline, "AWS::Lambda::Alias")  # provisioned concurrency is theirs
    queues = {
        name: _mapping(imported, name)["Properties"]["ScalingConfig"]["MaximumConcurrency"]
        for name in ("ingest", "dispatch")
    }
    assert queues == {"ingest": 3, "dispatch": 2}
    definition = json.dumps(state_machine(imported, "CommitJob")["Properties"]["DefinitionString"])
    assert r"\"MaxConcurrency\": 2," in definition


def test_the_outputs_say_what_is_deployed(imported: Assembly, assembly: Assembly) -> None:
    outputs = {name: each["Value"] for name, each in imported.pipeline["Outputs"].items()}
    assert (outputs["Version"], outputs["LambdaConcurrency"]) == (__version__, "10")
    assert assembly.pipeline["Outputs"]["LambdaConcurrency"]["Value"] == "68"
