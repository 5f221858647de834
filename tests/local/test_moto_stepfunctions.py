"""The patches of Step Functions, and the Map that is deployed."""

import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.contract.deployed_map import OUTCOMES, machine_of, outcome
from tests.local.conftest import Local, switching_fast


def test_a_machine_catches_an_error_by_the_class_of_the_exception(local: Local) -> None:
    ended = local.run({"do": "raise", "message": "caught"})
    assert ended["status"] == "SUCCEEDED"
    assert json.loads(ended["output"]) == {"caught": True}


def units(local: Local, key: str, items: list[Any]) -> dict[str, Any]:
    local.s3.put_object(Bucket=local.bucket, Key=key, Body=json.dumps(items))
    return local.run({"do": "map", "bucket": local.bucket, "key": key})


def test_a_map_over_nothing_is_empty(local: Local, key: str) -> None:
    ended = units(local, key, [])
    assert json.loads(str(ended["output"]))["done"] == []


def test_a_map_has_any_number_of_items(local: Local, key: str) -> None:
    ended = units(local, key, [{"n": n} for n in range(2200)])
    assert ended["status"] == "SUCCEEDED"
    assert len(json.loads(str(ended["output"]))["done"]) == 2200


def test_a_name_is_started_once(local: Local) -> None:
    name = uuid.uuid4().hex
    waiting = json.dumps({"do": "wait", "seconds": 1})

    def start(text: str) -> str:
        arn: str = local.machines.start_execution(
            stateMachineArn=local.runtime.state_machine_arn, name=name, input=text
        )["executionArn"]
        return arn

    with switching_fast(), ThreadPoolExecutor(8) as pool:
        arns = set(pool.map(start, [waiting] * 16))
    assert len(arns) == 1
    with pytest.raises(ClientError) as error:
        start('{"do":"call"}')
    assert error.value.response["Error"]["Code"] == "ExecutionAlreadyExists"
    local.ended(arns.pop())
    with pytest.raises(ClientError) as error:
        start(waiting)
    assert error.value.response["Error"]["Code"] == "ExecutionAlreadyExists"
    listed = local.machines.list_executions(stateMachineArn=local.runtime.state_machine_arn)
    assert [e["name"] for e in listed["executions"]].count(name) == 1


def test_an_execution_can_be_stopped_as_soon_as_it_is_started(
    local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moto.stepfunctions.parser.backend.execution_worker import ExecutionWorker

    parsed = threading.Event()
    original = ExecutionWorker._get_evaluation_entrypoint

    def slowly(self: ExecutionWorker) -> Any:
        assert parsed.wait(20)
        return original(self)

    monkeypatch.setattr(ExecutionWorker, "_get_evaluation_entrypoint", slowly)
    arn = local.machines.start_execution(
        stateMachineArn=local.runtime.state_machine_arn, input='{"do":"wait","seconds":20}'
    )["executionArn"]
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(local.machines.stop_execution, executionArn=arn)
        wait([stopping], timeout=0.3)
        parsed.set()
        stopping.result()
    assert local.ended(arn)["status"] == "ABORTED"


def test_i2_the_deployed_map_fails_with_its_unit_and_leads_on_where_its_dataset_is_gone_here(
    local: Local, key: str
) -> None:
    """With standard children; with express ones `make contract` runs it: test_executions.py."""
    made = local.machines.create_state_machine(
        name=f"map-{uuid.uuid4().hex}",
        definition=machine_of("aws", kind="STANDARD"),
        roleArn="arn:aws:iam::123456789012:role/machines",
    )
    found = {
        what: outcome(
            local.machines, made["stateMachineArn"], local.s3, local.bucket, f"{key}/", what
        )
        for what in OUTCOMES
    }
    assert found == OUTCOMES
