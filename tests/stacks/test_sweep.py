"""The sweep's state machine is valid, goes through its steps whatever fails, and has a schedule."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from statelint.linter import Linter

from s3commit.core.sweep import steps as sweep_steps
from stacks.functions import FUNCTIONS
from stacks.sweep_definition import REPORT, STEPS, sweep_definition
from tests.stacks.synthesized import Assembly, only, state_machine

LIMITS = {"stuckMinutes": 15, "abandonedHours": 24, "orphanedDays": 7, "retentionDays": 30}


@pytest.fixture(scope="module")
def machine() -> dict[str, Any]:
    arns = {name: f"arn:aws:lambda:eu-central-1:111122223333:function:{name}" for name in FUNCTIONS}
    text = json.dumps(sweep_definition(arns, "lake", LIMITS))
    resolved: dict[str, Any] = json.loads(re.sub(r"\$\{Token\[[^]]*\]\}", "aws", text))
    return resolved


def test_the_definition_is_valid_states_language(machine: dict[str, Any]) -> None:
    assert Linter.validate(json.dumps(machine)) == []


def test_the_steps_are_those_of_the_protocol_in_its_order(machine: dict[str, Any]) -> None:
    assert list(STEPS) == list(sweep_steps.STEPS)
    assert machine["StartAt"] == next(iter(STEPS))


def test_each_step_is_repeated_until_it_is_through(machine: dict[str, Any]) -> None:
    following = [*list(STEPS)[1:], REPORT]
    for step, after in zip(STEPS, following, strict=True):
        choice = machine["States"][machine["States"][step]["Next"]]
        ways = {way["BooleanEquals"]: way["Next"] for way in choice["Choices"]}
        assert ways == {True: step, False: after}


def test_a_step_that_fails_for_good_keeps_none_from_its_work(machine: dict[str, Any]) -> None:
    following = [*list(STEPS)[1:], REPORT]
    for step, after in zip(STEPS, following, strict=True):
        (catch,) = machine["States"][step]["Catch"]
        assert (catch["ErrorEquals"], catch["Next"]) == (["States.ALL"], after)
        assert machine["States"][step]["Retry"]
    ends = {way["BooleanEquals"]: way["Next"] for way in machine["States"]["AllSwept"]["Choices"]}
    assert machine["States"][ends[True]]["Type"] == "Fail"
    assert machine["States"][ends[False]]["Type"] == "Succeed"


def test_it_runs_on_its_schedule(assembly: Assembly) -> None:
    rule = only(assembly.pipeline, "AWS::Events::Rule")["Properties"]
    assert rule["ScheduleExpression"] == "rate(15 minutes)"
    assert rule["State"] == "ENABLED"
    (target,) = rule["Targets"]
    assert target["Arn"]["Ref"].startswith("SweepMachine")


def test_it_is_traced_as_the_jobs_are(assembly: Assembly) -> None:
    properties = state_machine(assembly, "Sweep")["Properties"]
    assert properties["TracingConfiguration"] == {"Enabled": True}


@pytest.mark.parametrize(
    ("deployment", "bucket"), [("assembly", "DataBucket"), ("imported", '"lake"')]
)
def test_the_limits_and_the_bucket_are_the_deployments(
    deployment: str, bucket: str, request: pytest.FixtureRequest
) -> None:
    properties = state_machine(request.getfixturevalue(deployment), "Sweep")["Properties"]
    text = json.dumps(properties["DefinitionString"]).replace('\\"', '"')
    assert bucket in text
    for name, value in LIMITS.items():
        assert f'"{name}": {value}' in text
