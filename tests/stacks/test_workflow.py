"""The state machine is valid, is the one the protocol describes, and calls what exists."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from statelint.linter import Linter

from s3commit.core.documents.ticket import Ticket, encode_ticket
from s3commit.core.model.limits import EXECUTION_HOURS
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.ledger import HeldError
from stacks.definition import REFUSING, STEPS, definition
from stacks.functions import FUNCTIONS
from tests.core.world import World, job_directory
from tests.fakes import execution
from tests.stacks.synthesized import Assembly, cfn_lint, state_machine
from tests.stacks.test_retries import waits

ARN = "arn:aws:lambda:eu-central-1:111122223333:function:"


@pytest.fixture(scope="module")
def machine() -> dict[str, Any]:
    """As AWS would see it, with plausible ARNs."""
    arns = {name: ARN + name for name in FUNCTIONS}
    text = json.dumps(definition(arns))
    resolved: dict[str, Any] = json.loads(re.sub(r"\$\{Token\[[^]]*\]\}", "aws", text))
    return resolved


def test_the_definition_is_valid_states_language(machine: dict[str, Any], tmp_path: Path) -> None:
    # Two linters: this one follows each Next, but has not heard of one field of a Map's reader.
    (unheard_of,) = Linter.validate(json.dumps(machine))
    assert 'Field "InputType" not allowed' in unheard_of
    # That one has AWS's own schema of all fields, and follows nothing.
    assert _lint_fields(machine, tmp_path) == ""


def test_the_protocol_is_tested_along_the_routes_that_are_deployed(machine: dict[str, Any]) -> None:
    """The tests of the protocol run `tests.fakes.execution`: it takes the same ways."""
    assert set(STEPS) == set(execution.STEPS)
    assert execution.REFUSING == REFUSING
    for step, route in execution.ROUTES.items():
        for ticket in _tickets(step):
            assert _follow(machine, step, encode_ticket(ticket)) == route(ticket), (step, ticket)


def test_the_ticket_has_whatever_the_machine_asks_of_it(machine: dict[str, Any]) -> None:
    (ticket, *_) = _tickets("PublishSuccess")
    paths = set(re.findall(r'"\$\.(\w+)"', json.dumps(machine)))
    # Put there by the steps that end a job (tests/lambdas/test_steps.py), and by the machine
    # itself: the results of the Map, a refusal, the item of a Map.
    added = {"event", "completed", "refusal", "Payload", "unit", "ticket"}
    assert paths - set(encode_ticket(ticket)) <= added


def test_a_state_begins_with_what_a_person_looks_for_in_the_console() -> None:
    first = list(encode_ticket(Ticket("job", "lake", "sales/__magic_job-job/")))[:7]
    assert first == ["jobId", "bucket", "directory", "state", "outcome", "code", "files"]


def test_the_map_has_as_many_workers_as_the_ticket_says_and_no_default_of_aws(
    machine: dict[str, Any],
) -> None:
    complete = machine["States"]["CompleteUploads"]
    assert complete["MaxConcurrencyPath"] == "$.workers"
    assert "MaxConcurrency" not in complete
    assert Ticket("job", "lake", "sales/__magic_job-job/").workers == 1  # 0 would mean 10,000


def test_an_execution_lives_as_long_as_its_job_counts_as_at_work(machine: dict[str, Any]) -> None:
    assert machine["TimeoutSeconds"] == EXECUTION_HOURS * 3600


def test_i2_one_lost_unit_fails_the_map(machine: dict[str, Any]) -> None:
    complete = machine["States"]["CompleteUploads"]
    assert not [key for key in complete if key.startswith("Tolerated")]
    # Another execution may have ended the job, and the plan is gone: BeginPublish finds out.
    assert complete["Catch"] == [
        {"ErrorEquals": ["States.ItemReaderFailed"], "Next": "BeginPublish", "ResultPath": None}
    ]
    assert complete["ResultPath"] == "$.completed"


def test_a_small_job_is_completed_without_a_map_run_and_with_one_if_that_fails(
    machine: dict[str, Any],
) -> None:
    few, all_units = (machine["States"][name] for name in ("CompleteFew", "CompleteUploads"))
    first, *others = machine["States"]["AnythingToComplete"]["Choices"]
    assert first == {"Variable": "$.few[0]", "IsPresent": True, "Next": "CompleteFew"}
    assert "few" in encode_ticket(_tickets("DecideCommit")[0])
    assert "CompleteUploads" in {way["Next"] for way in others}
    assert few["ItemProcessor"]["ProcessorConfig"] == {"Mode": "INLINE"}
    assert few["Catch"] == [
        {"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": "CompleteUploads"}
    ]
    for field in ("MaxConcurrencyPath", "ItemSelector", "ResultPath", "Next"):
        assert few[field] == all_units[field]


def test_only_steps_before_the_decision_may_refuse_the_job(machine: dict[str, Any]) -> None:
    refusing = {
        name
        for name, state in machine["States"].items()
        for catch in state.get("Catch", [])
        if "JobRefusedError" in catch["ErrorEquals"]
    }
    assert refusing == REFUSING
    for name in refusing:
        catch = machine["States"][name]["Catch"][0]
        assert (catch["Next"], catch["ResultPath"]) == ("AbortJob", "$.refusal")


def test_every_step_yields_to_an_execution_that_took_over(machine: dict[str, Any]) -> None:
    for step in STEPS:
        catches = machine["States"][step]["Catch"]
        assert "Superseded" in [
            catch["Next"] for catch in catches if catch["ErrorEquals"] == ["LostRaceError"]
        ]


def test_i11_who_finds_its_key_taken_at_the_decision_waits_for_who_has_it(
    machine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("s3commit.core.calls.seal_and_decide.FEW_FILES", 0)
    ways = {
        name: catch["Next"]
        for name, state in machine["States"].items()
        for catch in state.get("Catch", [])
        if HeldError.__name__ in catch["ErrorEquals"]
    }
    assert ways == {"DecideCommit": "WaitForDestination"}
    assert machine["States"]["WaitForDestination"]["Next"] == "AcquireDestination"
    world, directory = World(), job_directory()
    world.open(directory, idempotency_key="a key")
    world.request(directory, world.attempt(directory, "t0"))
    world.plan.fail("decide", HeldError("taken"))
    entered = world.run(directory)
    assert entered[entered.index("DecideCommit") + 1] == "AcquireDestination"
    assert entered.count("DecideCommit") == 2


def test_a_job_that_has_its_result_fails_for_nothing(machine: dict[str, Any]) -> None:
    """Neither the announcement nor what is left behind: the sweep has that tidied up."""
    for state, following in (("AnnounceOutcome", "TidyUp"), ("TidyUp", "HowItEnded")):
        assert machine["States"][state]["Catch"][-1] == {
            "ErrorEquals": ["States.ALL"],
            "Next": following,
            "ResultPath": None,
        }


def test_every_step_is_retried_with_growing_jittered_waits(machine: dict[str, Any]) -> None:
    for state in [*_tasks(machine), machine["States"]["CompleteUploads"]]:
        retries = [one for one in state["Retry"] if one["MaxAttempts"]]
        assert retries
        for retry in retries:
            assert retry["BackoffRate"] > 1
            assert retry["JitterStrategy"] == "FULL"


def test_a_unit_ends_within_an_express_execution(machine: dict[str, Any]) -> None:
    child = machine["States"]["CompleteUploads"]["ItemProcessor"]
    assert child["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}
    unit = child["States"]["CompleteUnit"]
    assert sum(waits(unit["Retry"][-1])) + unit["TimeoutSeconds"] < 5 * 60


def test_log_groups_of_machines_take_no_part_of_the_accounts_resource_policy(
    assembly: Assembly,
) -> None:
    (group,) = state_machine(assembly)["LoggingConfiguration"]["Destinations"]
    ((name, _),) = group["CloudWatchLogsLogGroup"]["LogGroupArn"].values()
    described = assembly.pipeline["Resources"][name]["Properties"]
    assert described["LogGroupName"] == "/aws/vendedlogs/states/S3CommitPipeline-jobs"


@pytest.mark.parametrize(
    ("deployment", "level", "data"),
    [("assembly", "ERROR", False), ("imported", "ALL", False), ("encrypted", "ALL", True)],
)
def test_what_executions_log_is_the_deployments_to_say(
    deployment: str, level: str, data: bool, request: pytest.FixtureRequest
) -> None:
    """By default no data: keys have the names of partitions, and of customers."""
    logged = state_machine(request.getfixturevalue(deployment))["LoggingConfiguration"]
    assert (logged["Level"], logged["IncludeExecutionData"]) == (level, data)
    assert len(logged["Destinations"]) == 1


def _tickets(step: str) -> list[Ticket]:
    """With what a step may leave behind."""
    ways: dict[str, list[dict[str, Any]]] = {
        "SealJob": [
            {"state": state, "units": units, "replaces": replaces}
            for state in execution.ENTRY
            for units in (0, 2)
            for replaces in (False, True)
        ],
        "AcquireDestination": [{"acquired": acquired} for acquired in (True, False)],
        "DecideCommit": [{"state": JobState.COMMITTING, "units": units} for units in (0, 2)],
        "BeginPublish": [
            {"state": state, "units": 2, "replaces": replaces}
            for state in (JobState.COMMITTING, JobState.PUBLISHING, JobState.ROLLING_BACK)
            for replaces in (False, True)
        ],
        "RemoveReplaced": [{"page": 0}, {"page": 3}],
        "AbortJob": [
            {"state": JobState.ABORTING},
            {"state": JobState.ABORTED, "outcome": JobState.ABORTED},
        ],
        "RollBack": [
            {"state": JobState.ROLLING_BACK},
            {"state": JobState.ROLLED_BACK, "outcome": JobState.ROLLED_BACK},
        ],
        "TidyUp": [
            {"state": state, "outcome": state, "page": page} for state in ENDED for page in (0, 1)
        ],
    }
    ticket = Ticket("job", "lake", "sales/__magic_job-job/")
    return [replace(ticket, **way) for way in ways.get(step, [{}])]


def _follow(machine: dict[str, Any], step: str, ticket: dict[str, Any]) -> str:
    """The next step after ``step``; nothing if the execution ends."""
    state = machine["States"][step]
    while True:
        name: str = state.get("Next") or next(
            way["Next"]
            for way in state["Choices"]
            if "IsPresent" not in way and _matches(way, ticket[way["Variable"].removeprefix("$.")])
        )
        state = machine["States"][name]
        if name in STEPS or state["Type"] == "Map":
            return name
        if state["Type"] == "Succeed":
            return ""


def _matches(way: dict[str, Any], value: Any) -> bool:
    if "NumericGreaterThan" in way:
        return bool(value > way["NumericGreaterThan"])
    kinds = ("StringEquals", "BooleanEquals", "NumericEquals")
    return bool(value == next(way[kind] for kind in kinds if kind in way))


def _lint_fields(machine: dict[str, Any], directory: Path) -> str:
    properties = {"RoleArn": "arn:aws:iam::111122223333:role/x", "Definition": machine}
    resource = {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}
    template = directory / "machine.json"
    template.write_text(json.dumps({"Resources": {"Machine": resource}}))
    return cfn_lint(template)


def _tasks(machine: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for state in machine["States"].values():
        if state["Type"] == "Task":
            yield state
        if state["Type"] == "Map":
            yield from _tasks(state["ItemProcessor"])
