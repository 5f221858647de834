"""The sweep runs on its schedule, with the deployment's limits, and an alarm rings if it fails."""

from __future__ import annotations

import json

import pytest

from tests.stacks.synthesized import Assembly, functions, only

LIMITS = {"stuckMinutes": 15, "abandonedHours": 24, "retentionDays": 30}


def test_it_runs_on_its_schedule_with_the_limits_of_the_deployment(assembly: Assembly) -> None:
    rule = only(assembly.pipeline, "AWS::Events::Rule")["Properties"]
    assert rule["ScheduleExpression"] == "rate(1 hour)"
    assert rule["State"] == "ENABLED"
    (target,) = rule["Targets"]
    assert target["Arn"]["Fn::GetAtt"][0].startswith("Sweep")
    assert json.loads(target["Input"]) == LIMITS


def test_nobody_but_its_rule_may_call_it(assembly: Assembly) -> None:
    permission = only(assembly.pipeline, "AWS::Lambda::Permission")["Properties"]
    assert permission["FunctionName"]["Fn::GetAtt"][0].startswith("Sweep")
    assert permission["Principal"] == "events.amazonaws.com"
    assert permission["SourceArn"]["Fn::GetAtt"][0].startswith("SweepSchedule")


@pytest.mark.parametrize("kind", ["assembly", "imported"])
def test_events_of_the_data_bucket_alone_are_taken(
    kind: str, request: pytest.FixtureRequest
) -> None:
    found = functions(request.getfixturevalue(kind).pipeline).values()
    variables = [one["Properties"]["Environment"]["Variables"] for _, one in found]
    names = [given["S3COMMIT_BUCKET"] for given in variables if "S3COMMIT_BUCKET" in given]
    assert len(names) == 3  # ingest, dispatch, and the sweep, which heals the bucket's ledger
    export = "S3CommitBucketArn-dev" if kind == "imported" else "S3CommitBucketArn"
    of_arn = {"Fn::Select": [5, {"Fn::Split": [":", {"Fn::ImportValue": export}]}]}
    assert names == [of_arn] * 3
