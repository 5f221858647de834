"""Names of executions: whoever starts a job's execution again starts no second one.

On Step Functions with a state machine of the test's own, which waits and does nothing. And the Map
that is deployed, whose children are express executions: no emulator has those.
"""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from s3commit.aws.clients import make_client
from s3commit.aws.executions import StateMachine
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Destination
from s3commit.core.ports.executions import Executions
from tests.conftest import REGION
from tests.contract.deployed_map import OUTCOMES, machine_of, outcome
from tests.contract.given import empty, given, own_prefix
from tests.fakes.executions import MemoryExecutions

WAITS = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 300, "End": True}}}
ROLE = "arn:aws:iam::123456789012:role/machines"
DIRECTORY = JobDirectory(Destination("lake", "sales/"), "0b6f6f0e-0000-4000-8000-000000000001")


class Machine(StateMachine):
    """A state machine of the test's own."""

    def __init__(self, role: str, document: str = json.dumps(WAITS), **connection: Any) -> None:
        self.service: Any = boto3.client("stepfunctions", **connection)
        name = f"s3commit-contract-{uuid.uuid4().hex}"
        made = self.service.create_state_machine(name=name, definition=document, roleArn=role)
        self.arn = str(made["stateMachineArn"])
        super().__init__(self.arn, self.service)


@pytest.fixture
def executions(request: pytest.FixtureRequest) -> Iterator[Executions]:
    """Each in turn."""
    if request.param == "memory":
        yield MemoryExecutions()
        return
    if request.param == "moto":
        endpoint = request.getfixturevalue("moto_endpoint")
        machine = Machine(ROLE, endpoint_url=endpoint, region_name=REGION)
    else:
        machine = Machine(given(request.config)["--machine-role"])
    try:
        yield machine
    finally:
        machine.service.delete_state_machine(stateMachineArn=machine.arn)


def test_a_name_starts_one_execution_and_none_after_its_end(executions: Executions) -> None:
    first = executions.start("job-1", DIRECTORY)
    assert first is not None
    assert executions.start("job-1", DIRECTORY) in {first, None}
    if isinstance(executions, Machine):
        executions.service.stop_execution(executionArn=first)
    assert not executions.describe(first).is_running
    assert executions.start("job-1", DIRECTORY) is None
    other = executions.start("job-2", DIRECTORY)
    assert other not in {first, None}


@pytest.mark.on_aws
def test_i2_the_deployed_map_fails_with_its_unit_and_leads_on_where_its_dataset_is_gone(
    request: pytest.FixtureRequest,
) -> None:
    options = given(request.config)
    role, prefix, client = options["--machine-role"], own_prefix(), make_client()
    machine = Machine(role, machine_of(role.split(":")[1]))
    bucket = options["--bucket"]
    try:
        found = {
            what: outcome(machine.service, machine.arn, client, bucket, prefix, what)
            for what in OUTCOMES
        }
    finally:
        machine.service.delete_state_machine(stateMachineArn=machine.arn)
        empty(client, bucket, prefix)
    assert found == OUTCOMES
