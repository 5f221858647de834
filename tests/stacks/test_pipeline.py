"""Functions, layers and queues fit together."""

import json
import re
from typing import Any

import pytest

from s3commit.aws import env
from s3commit.core.commit.note_arrivals import EVENT_SECONDS
from s3commit.core.model.limits import CALL_SECONDS, FUNCTION_CLOCKS, LONGEST_CALL
from s3commit.version import __version__
from stacks.functions import FUNCTIONS
from stacks.layers import ROOT, SERVICES
from tests.stacks.synthesized import (
    TOPIC_ARN,
    Assembly,
    functions,
    of_type,
    only,
    properties,
    synthesize,
)

PACKAGE = ROOT / "layers" / "s3commit" / "python" / "s3commit"
MODULES = [*(ROOT / "lambdas").glob("*.py"), *(PACKAGE / "aws").glob("*.py")]
VARIABLES = {
    *(env.TABLE, env.LEDGER, env.BUCKET, env.STATE_MACHINE, env.LEDGER_TTL_DAYS),
    *(env.REPLACE_BELOW, env.WORKERS, env.FRESH_TABLES, env.ENCRYPTION, env.ENCRYPTION_KEY),
    *(env.CATALOGS, env.PREFIXES, env.LISTENS),
}


def test_every_variable_that_is_set_is_read_and_the_other_way_round() -> None:
    given = {variable for function in FUNCTIONS.values() for variable in function.reads}
    text = "".join(path.read_text() for path in MODULES)
    read = set(re.findall(r"(?:\bvalue\(|environ\.get\(|environ\[)env\.([A-Z_]+)", text))
    assert given == VARIABLES == {getattr(env, name) for name in read}


def test_the_layer_has_the_model_of_each_service_that_is_called() -> None:
    text = "".join(path.read_text() for path in MODULES)
    named = re.findall(r'\b(?:create_client|connect)\("(\w+)"', text)
    assert {*named, "dynamodb"} == SERVICES  # which pynamodb calls


def test_no_other_module_reads_the_environment() -> None:
    """`clients` reads two variables of AWS's own."""
    reading = {path.stem for path in MODULES if re.search(r"environ\b|getenv", path.read_text())}
    assert reading == {"clients", "settings"}


def test_no_credential_can_reach_a_log() -> None:
    telling = (
        r"presigned|\blog_event\b|set_stream_logger|get_credentials(?!\(\) is None)"
        r"|logger\.\w+\(.*(event|environ)\b"
    )
    assert [path.stem for path in MODULES if re.search(telling, path.read_text())] == []


def test_functions_run_on_one_architecture(assembly: Assembly, encrypted: Assembly) -> None:
    for each, architecture in ((assembly, "arm64"), (encrypted, "x86_64")):
        found = [one.properties["Architectures"] for one in functions(each.pipeline).values()]
        assert found == [[architecture]] * (len(FUNCTIONS) - 1)  # none tells a catalog


@pytest.mark.parametrize(
    ("deployment", "days", "policy"),
    [
        ("assembly", 30, "Delete"),
        ("imported", 30, "Delete"),
        ("regulated", 365, "RetainExceptOnCreate"),
    ],
)
def test_every_log_has_a_known_name_a_set_time_and_outlives_what_the_deployer_says(
    deployment: str, days: int, policy: str, request: pytest.FixtureRequest
) -> None:
    """Of a deployment that follows, CloudFormation imports those with such a policy and name.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-automatically.html
    """
    made = request.getfixturevalue(deployment)
    kind, name = "AWS::Logs::LogGroup", "-dev" if deployment == "imported" else ""
    groups = of_type(made.pipeline, kind)
    for group in (of_type(made.storage, kind) | groups).values():
        assert group["Properties"]["RetentionInDays"] == days
        assert group["DeletionPolicy"] == policy
        assert group["UpdateReplacePolicy"] == "Retain", "the one that an upgrade replaces"
        assert re.fullmatch(rf"[\w/]*S3Commit\w+{name}-[a-z]+", group["Properties"]["LogGroupName"])
    for module, function in functions(made.pipeline).items():
        group = groups[function.properties["LoggingConfig"]["LogGroup"]["Ref"]]
        assert group["Properties"]["LogGroupName"] == f"S3CommitPipeline{name}-{module}"


def test_handlers_and_what_they_import_of_us_are_one_zip(assembly: Assembly) -> None:
    """One call of an upgrade changes both."""
    there = of_type(assembly.pipeline, "AWS::Lambda::Function").values()
    (content,) = {assembly.asset_of(one) for one in there}
    handlers = {f"{name}.py" for name in FUNCTIONS}
    assert {one.name for one in content.glob("*.py")} == {*handlers, "__init__.py"}
    assert {path.name for path in (content / "s3commit").iterdir()} - {"__pycache__"} == {
        *("__init__.py", "version.py", "py.typed", "aws", "core")
    }
    (layer,) = of_type(assembly.pipeline, "AWS::Lambda::LayerVersion").values()
    assert not list(assembly.asset_of(layer).glob("python/s3commit"))


@pytest.mark.parametrize(
    ("name", "queue", "at_once"),
    [("ingest", "Ingest", 1), ("dispatch", "Request", 10), ("catalog", "Catalogs", 1)],
)
def test_a_queue_feeds_its_function_gets_failed_messages_back_and_hides_them_for_six_timeouts(
    telling: Assembly, name: str, queue: str, at_once: int
) -> None:
    """I12: a manifest that kills the call that reads it takes no other one's message with it."""
    mapping = _mapping(telling, name)
    assert f"{queue}Queue" in str(mapping["EventSourceArn"])
    assert mapping["BatchSize"] == at_once
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert "MaximumBatchingWindowInSeconds" not in mapping
    assert mapping["ScalingConfig"]["MaximumConcurrency"] >= 2
    kind = "AWS::SQS::Queue"
    queues = of_type(telling.storage, kind) | of_type(telling.pipeline, kind)
    (inbox,) = [one["Properties"] for key, one in queues.items() if key.startswith(f"{queue}Queue")]
    timeout = functions(telling.pipeline)[name].properties["Timeout"]
    assert inbox["VisibilityTimeout"] >= 6 * timeout
    tries = inbox["RedrivePolicy"]["maxReceiveCount"]
    tried = (tries - 1) * inbox["VisibilityTimeout"]
    if env.TABLE not in functions(telling.pipeline)[name].variables:
        assert tries == 5
    else:  # it waits for an empty ledger, and each call of its walk ends in time
        assert tried >= LONGEST_CALL + FUNCTION_CLOCKS + 3 * CALL_SECONDS
        assert tried < inbox["MessageRetentionPeriod"] / 10
        assert timeout >= 3 * EVENT_SECONDS
    # A message that fails alone is the oldest one until it is received for the fourth time.
    backlog = alarm_of(telling, f"{queue}Backlog")["Threshold"]
    assert backlog > 3 * inbox["VisibilityTimeout"]
    assert backlog >= 600 and inbox["RedrivePolicy"]["maxReceiveCount"] > 3


def alarms_of(template: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = of_type(template, "AWS::CloudWatch::Alarm").items()
    return [one["Properties"] for key, one in found if name in key]


def alarm_of(assembly: Assembly, name: str) -> dict[str, Any]:
    (alarm,) = alarms_of(assembly.pipeline, name)
    return alarm


def board_of(assembly: Assembly) -> str:
    return json.dumps(only(assembly.pipeline, "AWS::CloudWatch::Dashboard"))


def test_each_alarm_fires_somewhere_and_says_what_it_means(telling: Assembly) -> None:
    alarms = of_type(telling.pipeline, "AWS::CloudWatch::Alarm")
    explained = re.findall(
        r'<a id="([A-Z]\w+)"></a>`\1(?:-PREFIX)?`', (ROOT / "docs/operations.md").read_text()
    )
    of_the_template = [re.sub(r"^Observability|[0-9A-F]{8}$", "", name) for name in alarms]
    assert sorted(explained) == sorted([*of_the_template, "TableStale"])
    for name, alarm in alarms.items():
        assert alarm["Properties"]["AlarmActions"] == alarm["Properties"]["OKActions"] != []
        stack, _, named = alarm["Properties"]["AlarmName"].partition("/")
        assert (stack, f"Observability{named}") == ("S3CommitPipeline", name[:-8])
        page, _, row = alarm["Properties"]["AlarmDescription"].rpartition(" ")[2].partition("#")
        assert row == named.partition("-")[0]
        assert f'<a id="{row}"></a>`{row}`' in (ROOT / page).read_text()
        silence = "breaching" if "SweepsMissing" in name else "notBreaching"
        assert alarm["Properties"]["TreatMissingData"] == silence


def test_a_listed_table_has_an_alarm_of_its_own(bridged: Assembly) -> None:
    alarms = alarms_of(bridged.pipeline, "TableStale")
    watched = [one["Metrics"][0]["MetricStat"] for one in alarms]
    assert [
        (dimension["Value"], one["EvaluationPeriods"])
        for one, stat in zip(alarms, watched, strict=True)
        for dimension in stat["Metric"]["Dimensions"]
        if dimension["Name"] == env.DIMENSION_TABLE
    ] == [("sales/", 26), ("finance/eu/", 168)]
    for one, stat in zip(alarms, watched, strict=True):
        assert (stat["Metric"]["MetricName"], stat["Period"]) == (env.TABLE_COMMITS, 3600)
        assert (one["Threshold"], one["ComparisonOperator"]) == (1, "LessThanThreshold")
        assert one["TreatMissingData"] == "breaching", "no commit, no value"
        assert one["AlarmActions"]
    tables = functions(bridged.pipeline)["end"].variables[env.FRESH_TABLES]
    assert json.loads(tables) == ["sales/", "finance/eu/"]


def test_silence_is_told(assembly: Assembly) -> None:
    """A sweep that does not begin, for whatever reason, and events that do not come."""
    names = ("SweepsMissing", "SweepsNotCalled", "EventsLost")
    missing, called, lost = (alarm_of(assembly, name) for name in names)
    assert missing["MetricName"] == "Invocations"
    assert missing["Dimensions"][0]["Value"]["Ref"].startswith("Sweep")
    assert (missing["Period"], missing["Threshold"]) == (2 * 3600, 1)
    assert missing["ComparisonOperator"] == "LessThanThreshold"
    (rule,) = _rules(called)
    assert rule["Ref"].startswith("SweepSchedule")
    (resumed,) = [one["MetricStat"] for one in lost["Metrics"]]
    assert resumed["Metric"]["MetricName"] == env.JOBS_RESUMED
    assert (lost["Threshold"], resumed["Period"], resumed["Stat"]) == (3, 3600, "Sum")


def test_no_rule_fails_unheard(bridged: Assembly, bridged_import: Assembly) -> None:
    for each in (bridged, bridged_import):
        names = [rule["Name"] for rule in properties(each.storage, "AWS::Events::Rule")]
        assert len(names) == len(set(names)) == 2
        schedule, *others = _rules(alarm_of(each, "SweepsNotCalled"))
        assert schedule["Ref"].startswith("SweepSchedule")
        assert others == names


def _rules(alarm: dict[str, Any]) -> list[Any]:
    """Those whose failed invocations the alarm counts, which it does one by one."""
    stats = [one["MetricStat"] for one in alarm["Metrics"] if "MetricStat" in one]
    assert {one["Metric"]["MetricName"] for one in stats} == {"FailedInvocations"}
    assert {one["Metric"]["Namespace"] for one in stats} == {"AWS/Events"}
    assert alarm["Threshold"] == 0
    return [one["Metric"]["Dimensions"][0]["Value"] for one in stats]


def test_i12_refused_documents_fire_and_the_dashboard_says_whose_they_are(
    assembly: Assembly,
) -> None:
    alarm = alarm_of(assembly, "DocumentsRefused")
    (metric,) = [one["MetricStat"] for one in alarm["Metrics"]]
    assert metric["Metric"]["MetricName"] == env.DOCUMENTS_REFUSED
    assert metric["Metric"]["Dimensions"] == [{"Name": "service", "Value": env.SERVICE}]
    assert (alarm["Threshold"], metric["Period"], metric["Stat"]) == (10, 300, "Sum")
    board = board_of(assembly)
    assert "by prefix, code" in board
    groups = set(re.findall(r"\b(\w+)Logs[0-9A-F]{8}\b", board))
    assert groups == {"Ingest", "Dispatch", "End", "Decide"}


def test_the_dashboard_shows_who_waits_and_how_long_jobs_take(assembly: Assembly) -> None:
    """By the line of a step: tests/lambdas/test_steps.py."""
    waiting = f"filter message = '{env.DONE_MESSAGE}' and state = 'SEALED' and {env.PAUSE} > 0"
    assert board_of(assembly).count(waiting) == 2
    graphs = board_of(assembly).replace('\\"', '"').split('"type":')
    (times,) = [one for one in graphs if "from request to result" in one]
    assert times.count(env.REQUEST_TO_RESULT) == 2
    assert {"p50", "p95"} <= {*re.findall(r'"stat":"(\w+)"', times)}
    (rate,) = [one for one in graphs if "Completions per second" in one]
    assert env.FILES_COMPLETED in rate and "/ PERIOD(" in rate


def test_a_deployment_has_metrics_of_its_own(assembly: Assembly, imported: Assembly) -> None:
    for each, namespace in ((assembly, "s3commit"), (imported, "s3commit/dev")):
        there = functions(each.pipeline).values()
        written = {one.variables["POWERTOOLS_METRICS_NAMESPACE"] for one in there}
        alarm = alarm_of(each, "DocumentsRefused")
        read = {one["MetricStat"]["Metric"]["Namespace"] for one in alarm["Metrics"]}
        shown = set(re.findall(r'\\"(s3commit[/\w]*)\\",\\"(?:Jobs|Files|Doc)', board_of(each)))
        assert written == read == shown == {namespace}


def test_each_metric_that_is_looked_at_is_counted_by_a_function(assembly: Assembly) -> None:
    kinds = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard")
    drawn = "".join(json.dumps(of_type(assembly.pipeline, kind)) for kind in kinds)
    looked = set(re.findall(r'\\"s3commit\\",\\"(\w+)', drawn))
    looked |= set(re.findall(r'"MetricName": "(\w+)", "Namespace": "s3commit"', drawn))
    counted = re.findall(r"env\.(\w+)", "".join(path.read_text() for path in MODULES))
    assert looked <= {getattr(env, name, None) for name in counted}
    assert {env.JOBS_COMMITTED, env.JOBS_RESUMED, env.DOCUMENTS_REFUSED} <= looked


def test_alarms_of_the_account_are_mailed(assembly: Assembly, encrypted: Assembly) -> None:
    assert not of_type(assembly.pipeline, "AWS::SNS::Subscription")
    (mailed,) = properties(encrypted.pipeline, "AWS::SNS::Subscription")
    assert mailed["Endpoint"] == "oncall@example.com"
    policy = only(assembly.pipeline, "AWS::SNS::TopicPolicy")["PolicyDocument"]
    (allowing,) = [one for one in policy["Statement"] if one["Effect"] == "Allow"]
    assert allowing["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowing["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    }


def test_a_topic_that_exists_gets_the_alarms_which_can_be_left_out(regulated: Assembly) -> None:
    for alarm in properties(regulated.pipeline, "AWS::CloudWatch::Alarm"):
        assert alarm["AlarmActions"] == alarm["OKActions"] == [TOPIC_ARN]
    assert not of_type(regulated.pipeline, "AWS::CloudWatch::Dashboard")
    silent = synthesize(alarms=False).pipeline
    assert not of_type(silent, "AWS::CloudWatch::Alarm")
    assert "Whose documents were refused" in str(only(silent, "AWS::CloudWatch::Dashboard"))
    for pipeline in (regulated.pipeline, silent):
        assert "AWS::SNS::" not in json.dumps(pipeline)


def _mapping(assembly: Assembly, name: str) -> dict[str, Any]:
    function = {"Ref": functions(assembly.pipeline)[name].logical_id}
    mappings = properties(assembly.pipeline, "AWS::Lambda::EventSourceMapping")
    (mapping,) = [one for one in mappings if one["FunctionName"] == function]
    return mapping


def test_an_account_with_ten_functions_at_once_takes_the_template(imported: Assembly) -> None:
    """It may reserve none, and its functions have 3,008 MB at most.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
    https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    """
    there = functions(imported.pipeline)
    for function in there.values():
        assert "ReservedConcurrentExecutions" not in function.properties
        assert function.properties["MemorySize"] <= 3008
    assert not of_type(imported.pipeline, "AWS::Lambda::Alias")  # provisioned concurrency is theirs
    queues = {
        name: _mapping(imported, name)["ScalingConfig"]["MaximumConcurrency"]
        for name in ("ingest", "dispatch")
    }
    assert queues == {"ingest": 3, "dispatch": 2}
    for name in ("decide", "end"):  # two workers for all jobs
        assert there[name].variables["S3COMMIT_WORKERS"] == "[2, 40]"


def test_concurrency_is_reserved_for_units_if_the_deployer_says_so(encrypted: Assembly) -> None:
    reserved = {
        name: function.properties["ReservedConcurrentExecutions"]
        for name, function in functions(encrypted.pipeline).items()
        if "ReservedConcurrentExecutions" in function.properties
    }
    assert reserved == {"complete": 472}


def test_the_outputs_say_what_is_deployed(imported: Assembly, assembly: Assembly) -> None:
    outputs = {name: each["Value"] for name, each in imported.pipeline["Outputs"].items()}
    assert (outputs["Version"], outputs["LambdaConcurrency"]) == (__version__, "10")
    assert assembly.pipeline["Outputs"]["LambdaConcurrency"]["Value"] == "500"


# The sweep


LIMITS = {"stuckMinutes": 15, "abandonedHours": 24, "retentionDays": 30}


def test_it_runs_on_its_schedule_with_its_limits_and_by_nobody_else(assembly: Assembly) -> None:
    rule = only(assembly.pipeline, "AWS::Events::Rule")
    assert rule["ScheduleExpression"] == "rate(1 hour)"
    assert rule["State"] == "ENABLED"
    (target,) = rule["Targets"]
    assert target["Arn"]["Fn::GetAtt"][0].startswith("Sweep")
    assert json.loads(target["Input"]) == LIMITS
    permission = only(assembly.pipeline, "AWS::Lambda::Permission")
    assert permission["FunctionName"]["Fn::GetAtt"][0].startswith("Sweep")
    assert permission["Principal"] == "events.amazonaws.com"
    assert permission["SourceArn"]["Fn::GetAtt"][0].startswith("SweepSchedule")


@pytest.mark.parametrize("kind", ["assembly", "imported"])
def test_only_the_data_buckets_events_count(kind: str, request: pytest.FixtureRequest) -> None:
    found = functions(request.getfixturevalue(kind).pipeline).values()
    names = [one.variables["S3COMMIT_BUCKET"] for one in found if env.BUCKET in one.variables]
    assert len(names) == 3  # ingest, dispatch, and the sweep, which heals the bucket's ledger
    export = "S3CommitBucketArn-dev" if kind == "imported" else "S3CommitBucketArn"
    of_arn = {"Fn::Select": [5, {"Fn::Split": [":", {"Fn::ImportValue": export}]}]}
    assert names == [of_arn] * 3
