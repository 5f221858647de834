"""What the sweep asks Step Functions: who works on a job, and to start another one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from s3commit.aws.executions import StateMachine
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import execution_input
from s3commit.core.model.errors import AccessError, TransientError
from s3commit.core.model.job import Destination

MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:s3commit"
EXECUTION = "arn:aws:states:eu-central-1:123456789012:execution:s3commit:job"
DIRECTORY = JobDirectory(Destination("lake", "sales/"), "0b6f6f0e-0000-4000-8000-000000000001")


@pytest.fixture
def stub() -> Iterator[Stubber]:
    """Canned answers of the service."""
    with Stubber(boto3.client("stepfunctions")) as stub:
        yield stub


@pytest.fixture
def machine(stub: Stubber) -> StateMachine:
    service: Any = stub.client
    return StateMachine(MACHINE, service)


def describe(stub: Stubber, status: str, arn: str = EXECUTION) -> None:
    answer = {
        "executionArn": arn,
        "stateMachineArn": MACHINE,
        "status": status,
        "startDate": "2026-11-22",
    }
    stub.add_response("describe_execution", answer, {"executionArn": arn})


@pytest.mark.parametrize(
    ("status", "running"),
    [
        ("RUNNING", True),
        ("PENDING_REDRIVE", True),
        ("SUCCEEDED", False),
        ("FAILED", False),
        ("TIMED_OUT", False),
        ("ABORTED", False),
    ],
)
@pytest.mark.parametrize("execution", [EXECUTION, "job"])
def test_an_execution_runs_or_does_not(
    machine: StateMachine, stub: Stubber, status: str, running: bool, execution: str
) -> None:
    describe(stub, status)
    assert machine.describe(execution).is_running is running


def test_an_execution_that_step_functions_has_forgotten_does_not_run(
    machine: StateMachine, stub: Stubber
) -> None:
    """It does so 90 days after the end."""
    stub.add_client_error("describe_execution", "ExecutionDoesNotExist")
    assert not machine.describe(EXECUTION).is_running


def test_an_execution_of_a_machine_that_was_replaced_is_not_asked_for(
    machine: StateMachine, stub: Stubber
) -> None:
    """The role may ask for this machine's alone, and AccessDenied would hold up its jobs."""
    old = EXECUTION.replace(":s3commit:", ":s3commit-before:")
    assert not machine.describe(old).is_running
    stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "error"),
    [("ThrottlingException", TransientError), ("AccessDeniedException", AccessError)],
)
def test_what_is_not_known_is_not_taken_for_dead(
    machine: StateMachine, stub: Stubber, code: str, error: type[Exception]
) -> None:
    stub.add_client_error("describe_execution", code)
    with pytest.raises(error):
        machine.describe(EXECUTION)


def test_an_execution_is_started_by_name_for_its_place(
    machine: StateMachine, stub: Stubber
) -> None:
    expected = {
        "stateMachineArn": MACHINE,
        "name": "again-1",
        "input": json.dumps(execution_input(DIRECTORY)),
    }
    stub.add_response(
        "start_execution", {"executionArn": EXECUTION, "startDate": "2026-11-22"}, expected
    )
    assert machine.start("again-1", DIRECTORY) == EXECUTION


def test_a_name_that_is_taken_starts_nothing_and_a_throttled_start_says_so(
    machine: StateMachine, stub: Stubber
) -> None:
    stub.add_client_error("start_execution", "ExecutionAlreadyExists")
    assert machine.start("again-1", DIRECTORY) is None
    stub.add_client_error("start_execution", "ThrottlingException")
    with pytest.raises(TransientError):
        machine.start("again-1", DIRECTORY)
