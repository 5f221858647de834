"""The state machine is valid, is the one the protocol describes, and calls what exists."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from statelint.linter import Linter

from s3commit.core.formats.ticket import OUTCOMES, Ticket, encode_ticket
from s3commit.core.model.states import ENDED, JobState
from stacks.definition import MAP_FUNCTION, MAP_STEP, REFUSING, STEPS, definition
from stacks.functions import FUNCTIONS
from tests.fakes import execution
from tests.stacks.synthesized import Assembly, cfn_lint, functions, of_type, state_machine

ARN = "arn:aws:lambda:eu-central-1:111122223333:function:"


@pytest.fixture(scope="module")
def machine() -> dict[str, Any]:
    """As AWS would see it, with plausible ARNs."""
    arns = {name: ARN + name for name in FUNCTIONS}
    text = json.dumps(definition(arns, 40))
    resolved: dict[str, Any] = json.loads(re.sub(r"\$\{Token\[[^]]*\]\}", "aws", text))
    return resolved


def test_the_definition_is_valid_states_language(machine: dict[str, Any], tmp_path: Path) -> None:
    # Two linters: this one follows each Next, but has not heard of one field of a Map's reader.
    (unheard_of,) = Linter.validate(json.dumps(machine))
    assert 'Field "InputType" not allowed' in unheard_of
    # That one has AWS's own schema of all fields, and follows nothing.
    assert _lint_fields(machine, tmp_path) == ""


def test_the_linters_would_find_a_mistake(machine: dict[str, Any], tmp_path: Path) -> None:
    broken = json.loads(json.dumps(machine))
    broken["States"]["SealJob"]["Next"] = "Nowhere"
    broken["States"]["TidyUp"]["Retryy"] = []
    assert "Nowhere" in str(Linter.validate(json.dumps(broken)))
    assert "Retryy" in _lint_fields(broken, tmp_path)


def test_state_names_are_those_of_the_runbook(machine: dict[str, Any]) -> None:
    assert set(machine["States"]) == {
        *("SealJob", "WhereToGoOn", "VerifyManifests", "AcquireDestination", "DestinationFree"),
        *(
            "WaitForDestination",
            "CheckConditions",
            "DecideCommit",
            "AnythingToComplete",
            "CompleteUploads",
        ),
        *("BeginPublish", "Published", "WaitForNextRound"),
        *("AnythingToReplace", "RemoveReplaced", "AllRemoved", "PublishSuccess"),
        *(
            "AbortJob",
            "RollBack",
            "Undone",
            "WaitForUploads",
            "AnnounceOutcome",
            "TidyUp",
            "HowItEnded",
            "JobCommitted",
        ),
        *("JobAborted", "JobRolledBack", "Superseded"),
    }


def test_an_execution_goes_on_wherever_the_ledger_says(machine: dict[str, Any]) -> None:
    targets = _targets(machine["States"]["WhereToGoOn"])
    entry = {str(state): step for state, step in execution.ENTRY.items()}
    choices = {"COMMITTING": "AnythingToComplete", "PUBLISHING": "AnythingToReplace"}
    assert targets == entry | choices
    assert set(targets) == set(JobState) - {JobState.OPEN}  # sealing leaves no job OPEN


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
    # Put there by the machine itself: the results of the Map, a refusal, the item of a Map.
    assert paths - set(encode_ticket(ticket)) <= {
        "completed",
        "refusal",
        "Payload",
        "unit",
        "ticket",
    }


def test_i1_nothing_is_completed_before_the_decision(machine: dict[str, Any]) -> None:
    states = machine["States"]
    leading = {name for name, state in states.items() if "CompleteUploads" in _next(state)}
    assert leading == {"AnythingToComplete"}
    before = {name for name, state in states.items() if "AnythingToComplete" in _next(state)}
    assert before == {"WhereToGoOn", "DecideCommit", "WaitForNextRound"}
    assert _targets(states["WhereToGoOn"])["COMMITTING"] == "AnythingToComplete"


def test_i10_old_data_goes_only_after_publishing_began(machine: dict[str, Any]) -> None:
    states = machine["States"]
    leading = {name for name, state in states.items() if "RemoveReplaced" in _next(state)}
    assert leading == {"AnythingToReplace", "AllRemoved"}
    assert [name for name in states if "AllRemoved" in _next(states[name])] == ["RemoveReplaced"]
    before = {name for name, state in states.items() if "AnythingToReplace" in _next(state)}
    assert before == {"WhereToGoOn", "Published"}
    for name in before:
        assert _targets(states[name])["PUBLISHING"] == "AnythingToReplace"


def test_i2_one_lost_unit_fails_the_map(machine: dict[str, Any]) -> None:
    complete = machine["States"]["CompleteUploads"]
    assert not [key for key in complete if key.startswith("Tolerated")]
    caught = {error for catch in complete["Catch"] for error in catch["ErrorEquals"]}
    assert caught == {"States.ItemReaderFailed"}
    assert complete["ResultPath"] == "$.completed"


def test_a_plan_that_is_gone_is_a_question_to_the_ledger_and_no_failure(
    machine: dict[str, Any],
) -> None:
    """Another execution may have ended the job: BeginPublish finds out, with the same ticket."""
    (catch,) = machine["States"]["CompleteUploads"]["Catch"]
    assert (catch["Next"], catch["ResultPath"]) == ("BeginPublish", None)


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


def test_every_step_is_retried_with_growing_jittered_waits(machine: dict[str, Any]) -> None:
    for state in [*_tasks(machine), machine["States"]["CompleteUploads"]]:
        assert state["Retry"]
        for retry in state["Retry"]:
            assert retry["BackoffRate"] > 1
            assert retry["JitterStrategy"] == "FULL"


def test_a_unit_ends_within_an_express_execution(machine: dict[str, Any]) -> None:
    child = machine["States"]["CompleteUploads"]["ItemProcessor"]
    assert child["ProcessorConfig"] == {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}
    assert child["States"]["CompleteUnit"]["TimeoutSeconds"] < 5 * 60


def test_every_task_invokes_a_function_that_exists(assembly: Assembly) -> None:
    invoked = {
        state["Parameters"]["FunctionName"]
        for state in _tasks(_deployed(assembly))
        if state["Resource"].endswith("lambda:invoke")
    }
    ours = {logical_id: name for name, (logical_id, _) in functions(assembly.pipeline).items()}
    assert {ours[logical_id] for logical_id in invoked} == {*STEPS.values(), MAP_FUNCTION}


def test_the_template_carries_the_definition_whole(
    assembly: Assembly, machine: dict[str, Any]
) -> None:
    deployed = _deployed(assembly)
    assert deployed["States"].keys() == machine["States"].keys()
    # A null says 'keep the input'; the event bus's answer must not become the ticket.
    assert deployed["States"]["AnnounceOutcome"]["ResultPath"] is None
    assert '"ResultPath": null' in json.dumps(deployed)


def test_only_json_path_is_used(machine: dict[str, Any]) -> None:
    text = json.dumps(machine)
    for word in ("JSONata", "QueryLanguage", "Assign", "ItemBatcher", "{%"):
        assert word not in text


def test_log_groups_of_machines_take_no_part_of_the_accounts_resource_policy(
    assembly: Assembly,
) -> None:
    groups = of_type(assembly.pipeline, "AWS::Logs::LogGroup").values()
    names = sorted(filter(None, (group["Properties"].get("LogGroupName") for group in groups)))
    assert names == ["/aws/vendedlogs/states/S3CommitPipeline-jobs"]


@pytest.mark.parametrize(
    ("deployment", "level", "data"),
    [("assembly", "ERROR", False), ("imported", "ALL", False), ("encrypted", "ALL", True)],
)
def test_what_executions_log_is_the_deployments_to_say(
    deployment: str, level: str, data: bool, request: pytest.FixtureRequest
) -> None:
    """By default no data: keys have the names of partitions, and of customers."""
    logged = state_machine(request.getfixturevalue(deployment), "CommitJob")["Properties"]
    assert logged["LoggingConfiguration"]["Level"] == level
    assert logged["LoggingConfiguration"]["IncludeExecutionData"] is data
    assert len(logged["LoggingConfiguration"]["Destinations"]) == 1


def test_executions_are_traced_and_have_logs(assembly: Assembly) -> None:
    properties = state_machine(assembly, "CommitJob")["Properties"]
    assert properties["StateMachineType"] == "STANDARD"
    assert properties["TracingConfiguration"] == {"Enabled": True}
    assert len(of_type(assembly.pipeline, "AWS::Logs::LogGroup")) == len(FUNCTIONS) + 1


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
            {"state": JobState.ABORTED, "outcome": OUTCOMES[JobState.ABORTED]},
        ],
        "RollBack": [
            {"state": JobState.ROLLING_BACK},
            {"state": JobState.ROLLED_BACK, "outcome": OUTCOMES[JobState.ROLLED_BACK]},
        ],
        "TidyUp": [{"state": state, "outcome": OUTCOMES[state]} for state in ENDED],
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
            if _matches(way, ticket[way["Variable"].removeprefix("$.")])
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


def _deployed(assembly: Assembly) -> dict[str, Any]:
    """The definition in the template; a reference becomes the logical id it names."""
    joined = state_machine(assembly, "CommitJob")
    parts = joined["Properties"]["DefinitionString"]["Fn::Join"][1]
    text = "".join(
        part if isinstance(part, str) else part.get("Ref") or part["Fn::GetAtt"][0]
        for part in parts
    )
    deployed: dict[str, Any] = json.loads(text)
    return deployed


def _tasks(machine: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for state in machine["States"].values():
        if state["Type"] == "Task":
            yield state
        if state["Type"] == "Map":
            yield from _tasks(state["ItemProcessor"])


def _targets(choice: dict[str, Any]) -> dict[str, str]:
    return {one["StringEquals"]: one["Next"] for one in choice["Choices"]}


def _next(state: dict[str, Any]) -> set[str]:
    ways = [state, *state.get("Choices", []), *state.get("Catch", [])]
    return {way["Next"] for way in ways if "Next" in way}


@pytest.mark.parametrize("state", [*STEPS, MAP_STEP])
def test_the_module_of_a_state_has_its_name(state: str) -> None:
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", state).lower()
    module = importlib.import_module(f"s3commit.core.commit.{name}")
    assert callable(getattr(module, name))
