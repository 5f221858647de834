"""The Map over the units, as it is deployed, with children that pass or fail by their item."""

import json
import re
import uuid
from typing import Any

from s3commit.core.calls.routes import STEPS
from stacks.definition import MAP_FUNCTION, MAP_STEP, definition
from tests.servers import ended

SECONDS = 300.0  # that an execution is given
# Express children by the item: as units, two that end, and one that fails beside one that ends.
CHILD = {
    "IsLost": {
        "Type": "Choice",
        "Choices": [{"Variable": "$.unit.lost", "BooleanEquals": True, "Next": "Lost"}],
        "Default": MAP_STEP,
    },
    "Lost": {"Type": "Fail", "Error": "Lost"},
    MAP_STEP: {"Type": "Pass", "OutputPath": "$.unit", "End": True},
}
UNITS: dict[str, list[dict[str, Any]] | None] = {
    "ends": [{"unit": 0, "lost": False}, {"unit": 1, "lost": False}],
    "fails": [{"unit": 0, "lost": False}, {"unit": 1, "lost": True}],
    "missing": None,
}


def machine_of(partition: str, *, kind: str = "EXPRESS") -> str:
    """A machine of the deployed Map, which is tried once, and a last state."""
    arns = dict.fromkeys({*STEPS.values(), MAP_FUNCTION}, "arn")
    text = re.sub(r"\$\{Token\[[^]]*\]\}", partition, json.dumps(definition(arns)))
    deployed = json.loads(text)["States"]["CompleteUploads"]
    assert deployed.pop("Retry")
    assert deployed["ItemProcessor"]["ProcessorConfig"]["ExecutionType"] == "EXPRESS"
    config = {"Mode": "DISTRIBUTED", "ExecutionType": kind}
    child = {"ProcessorConfig": config, "StartAt": "IsLost", "States": CHILD}
    states = {
        "CompleteUploads": deployed | {"ItemProcessor": child},
        deployed["Next"]: {"Type": "Pass", "End": True},
    }
    return json.dumps({"StartAt": "CompleteUploads", "States": states})


def outcome(service: Any, machine: str, store: Any, bucket: str, prefix: str, what: str) -> Any:
    """What became of an execution: the results of its children, or the error that ended it.

    None if the dataset could not be read, and the Map's own catch led on.
    """
    key = f"{prefix}{what}.json"
    if (units := UNITS[what]) is not None:
        store.put_object(Bucket=bucket, Key=key, Body=json.dumps(units).encode())
    ticket = {"bucket": bucket, "plan": key, "workers": 2, "jobId": "job", "directory": prefix}
    started = service.start_execution(
        stateMachineArn=machine,
        name=f"{what}-{uuid.uuid4().hex}",
        input=json.dumps(ticket | {"generation": 1}),
    )
    found = ended(service, started["executionArn"], SECONDS, pause=0.2)
    if found["status"] == "FAILED":
        return found["error"]
    assert found["status"] == "SUCCEEDED", found
    return json.loads(found["output"]).get("completed")


OUTCOMES: dict[str, Any] = {
    "ends": UNITS["ends"],
    "fails": "States.ExceedToleratedFailureThreshold",
    "missing": None,
}
