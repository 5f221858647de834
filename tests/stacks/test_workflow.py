"""The state machine is valid, is the one the protocol describes, and calls what exists."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from statelint.linter import Linter

from s3commit.core.calls import routes
from s3commit.core.documents.ticket import Ticket, encode_ticket
from s3commit.core.model.limits import EXECUTION_HOURS
from s3commit.core.ports.ledger import HeldError
from stacks.definition import definition
from stacks.functions import FUNCTIONS
from tests.core.world import World, job_directory
from tests.stacks.synthesized import Assembly, cfn_lint, state_machine
from tests.stacks.test_retries import waits

ARN = "arn:aws:lambda:eu-central-1:111122223333:function:"
TICKET = Ticket("job", "lake", "sales/__magic_job-job/")


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


def test_a_choice_knows_each_state_to_which_a_call_may_lead(machine: dict[str, Any]) -> None:
    """A value that is not listed fails the execution; `tests.fakes.execution` looks for one."""
    for step, function in routes.STEPS.items():
        choice = machine["States"][machine["States"][step]["Next"]]
        ways = {way["StringEquals"]: way["Next"] for way in choice["Choices"]}
        assert ways == {state: state for state in routes.reached_after(function)}
        assert {way["Variable"] for way in choice["Choices"]} == {"$.next"}
    for wait, following in routes.WAITS.items():
        assert machine["States"][wait]["Next"] == following


def test_the_ticket_has_whatever_the_machine_asks_of_it(machine: dict[str, Any]) -> None:
    paths = set(re.findall(r'"\$\.(\w+)"', json.dumps(machine)))
    # Put there by each call, by the steps that end a job (tests/lambdas/test_steps.py), and by the
    # machine itself: the results of the Map, a refusal, the item of a Map.
    added = {"next", "event", "completed", "refusal", "Payload", "unit", "ticket"}
    assert paths - set(encode_ticket(TICKET)) <= added


def test_a_state_begins_with_what_a_person_looks_for_in_the_console() -> None:
    first = list(encode_ticket(TICKET))[:7]
    assert first == ["jobId", "bucket", "directory", "state", "outcome", "code", "files"]


def test_the_map_has_the_tickets_workers_and_no_default_of_aws(machine: dict[str, Any]) -> None:
    complete = machine["States"]["CompleteUploads"]
    assert complete["MaxConcurrencyPath"] == "$.workers"
    assert "MaxConcurrency" not in complete
    assert TICKET.workers == 1  # 0 would mean 10,000


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


def test_a_small_job_has_no_map_run_unless_its_calls_fail(machine: dict[str, Any]) -> None:
    few, all_units = (machine["States"][name] for name in ("CompleteFew", "CompleteUploads"))
    assert few["ItemsPath"] == "$.few"
    assert few["ItemProcessor"]["ProcessorConfig"] == {"Mode": "INLINE"}
    for small in (few, machine["States"]["CompleteAtOnce"]):
        assert small["Catch"] == [
            {"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": "CompleteUploads"}
        ]
        assert small["Next"] == all_units["Next"]
    for field in ("MaxConcurrencyPath", "ItemSelector", "ResultPath", "Next"):
        assert few[field] == all_units[field]


def test_only_steps_before_the_decision_may_refuse_the_job(machine: dict[str, Any]) -> None:
    refusing = {
        name
        for name, state in machine["States"].items()
        for catch in state.get("Catch", [])
        if "JobRefusedError" in catch["ErrorEquals"]
    }
    assert refusing == set(routes.REFUSING)
    for name in refusing:
        catch = machine["States"][name]["Catch"][0]
        assert (catch["Next"], catch["ResultPath"]) == ("AbortJob", "$.refusal")


def test_every_step_yields_to_an_execution_that_took_over(machine: dict[str, Any]) -> None:
    for step in set(routes.STEPS) - {"TidyUp"}:  # its job has a result
        catches = machine["States"][step]["Catch"]
        assert "Superseded" in [
            catch["Next"] for catch in catches if catch["ErrorEquals"] == ["LostRaceError"]
        ]


def test_i11_who_finds_its_key_taken_waits_for_who_has_it(machine: dict[str, Any]) -> None:
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
    world.plan.fail("decide", HeldError("taken"), times=2)
    entered = world.run(directory)
    # By the call that has gone on, and by the state itself.
    assert entered.count("DecideCommit") == 3
    assert entered.count("AcquireDestination") == 2


def test_a_job_that_has_its_result_fails_for_nothing(machine: dict[str, Any]) -> None:
    """Neither the announcement nor what is left behind: the sweep has that tidied up."""
    ends = dict.fromkeys(routes.ENDS.values(), "NotAnnounced")
    for state, following in {"TidyUp": "HowItEnded", **ends}.items():
        assert machine["States"][state]["Catch"] == [
            {"ErrorEquals": ["States.ALL"], "Next": following, "ResultPath": None}
        ]
    ways = machine["States"]["HowItEnded"]["Choices"]
    assert {way["StringEquals"]: way["Next"] for way in ways} == routes.ENDS


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


def test_log_groups_of_machines_need_no_resource_policy(assembly: Assembly) -> None:
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
