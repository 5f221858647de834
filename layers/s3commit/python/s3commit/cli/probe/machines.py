"""Step Functions, on a state machine of the run's own: names of executions, a Map's datasets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from s3commit.cli.probe.model import Case, Cost, Seen, needs, probe
from s3commit.cli.probe.s3_prefix import asked
from s3commit.cli.probe.target import Target

STARTS = "https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html"
ERRORS = "https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html"

UNREAD = "States.ItemReaderFailed"  # what `stacks/definition.py` catches
CAUGHT = (UNREAD, "States.ALL")
RUNNING_SECONDS = 60  # of the execution whose name is used again; it is stopped before
END_SECONDS = 120
PAUSE = 0.5
TAKEN = "400 ExecutionAlreadyExists"


def definition(partition: str) -> dict[str, Any]:
    """A machine that waits for ``$.seconds``, or maps over the plan at ``$.plan``.

    The Map reads, and runs its children, as that of `stacks/definition.py` does.
    """
    return {
        "Comment": "made by s3commit doctor --probe; may be deleted",
        "StartAt": "What",
        "TimeoutSeconds": 5 * END_SECONDS,
        "States": {
            "What": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.seconds", "NumericGreaterThan": 0, "Next": "Wait"}],
                "Default": "Units",
            },
            "Wait": {"Type": "Wait", "SecondsPath": "$.seconds", "End": True},
            "Units": {
                "Type": "Map",
                "MaxConcurrency": 1,
                "ItemReader": {
                    "Resource": f"arn:{partition}:states:::s3:getObject",
                    "ReaderConfig": {"InputType": "JSON"},
                    "Parameters": {"Bucket.$": "$.bucket", "Key.$": "$.plan"},
                },
                "ItemProcessor": {
                    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
                    "StartAt": "Unit",
                    "States": {"Unit": {"Type": "Pass", "End": True}},
                },
                "ResultPath": "$.completed",
                "Catch": [
                    {"ErrorEquals": [error], "ResultPath": "$.error", "Next": error}
                    for error in CAUGHT
                ],
                "End": True,
            },
            **{
                error: {"Type": "Pass", "Result": error, "ResultPath": "$.caught", "End": True}
                for error in CAUGHT
            },
        },
    }


class Machine:
    """The run's own state machine, which goes with the run."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._client = target.client("stepfunctions")
        role = target.given.machine_role or ""
        _, partition, _, _, account, _ = role.split(":", 5)
        region = self._client.meta.region_name
        self.arn = f"arn:{partition}:states:{region}:{account}:stateMachine:{target.name}"
        # Before it is made: an interruption right after that leaves nothing either.
        target.undo.callback(self._client.delete_state_machine, stateMachineArn=self.arn)
        self._client.create_state_machine(
            name=target.name, definition=json.dumps(definition(partition)), roleArn=role
        )

    def start(self, name: str, **given: Any) -> tuple[str, str]:
        """The answer and the ARN of an execution, if there is one."""
        start = self._client.start_execution
        answer = asked(start, stateMachineArn=self.arn, name=name, input=json.dumps(given))
        return answer.told, answer.response.get("executionArn", "")

    def stop(self, arn: str) -> str:
        """Stop an execution; how it ended."""
        self._client.stop_execution(executionArn=arn)
        return str(self.end(arn)["status"])

    def end(self, arn: str) -> Any:
        """The execution when it has ended, or as it is after `END_SECONDS`."""

        def ended() -> Any:
            found = self._client.describe_execution(executionArn=arn)
            return found if found["status"] != "RUNNING" else None

        found = self._target.wait(ended, END_SECONDS, PAUSE)
        return found or self._client.describe_execution(executionArn=arn)


@probe(
    relies=("aws/executions.py",),
    source=STARTS,
    cost=Cost(transitions=8),
    lacks=needs("machine-role"),
    cases={
        "start": Case(("200",)),
        # `StateMachine.start` takes the refusal for "started before" as well
        "same name and input while it runs": Case(("200", TAKEN)),
        "whose execution that is": Case(("the same",)),
        "same name, other input, while it runs": Case((TAKEN,)),
        "stop": Case(("ABORTED",)),
        "same name and input after its end": Case((TAKEN,)),
    },
)
def execution_names(target: Target) -> Iterator[Seen]:
    """An execution's name is used once."""
    machine = Machine(target)
    told, first = machine.start("named", seconds=RUNNING_SECONDS)
    yield Seen("start", told)
    if not first:
        return
    try:
        told, again = machine.start("named", seconds=RUNNING_SECONDS)
        yield Seen("same name and input while it runs", told)
        yield Seen("whose execution that is", "the same" if again == first else "another")
        told, _ = machine.start("named", seconds=RUNNING_SECONDS + 1)
        yield Seen("same name, other input, while it runs", told)
    finally:
        ended = machine.stop(first)
    yield Seen("stop", ended)
    told, _ = machine.start("named", seconds=RUNNING_SECONDS)
    yield Seen("same name and input after its end", told)


@probe(
    relies=("ADR 3",),
    source=ERRORS,
    cost=Cost(requests=10, transitions=20),
    lacks=needs("machine-role"),
    cases={
        "a plan of one unit": Case(("1 done",)),
        # not documented, and never relied on: AnythingToComplete goes around the Map
        "a plan of no unit": Case(("0 done",), matters=False),
        "a plan that is missing": Case((f"caught by {UNREAD}",)),
    },
)
def map_datasets(target: Target) -> Iterator[Seen]:
    """A distributed Map and its plan."""
    machine, at = Machine(target), target.prefix
    at.put("one.json", b'[{"unit": 0}]')
    at.put("none.json", b"[]")
    for case, plan in (
        ("a plan of one unit", "one.json"),
        ("a plan of no unit", "none.json"),
        ("a plan that is missing", "missing.json"),
    ):
        _, arn = machine.start(plan, seconds=0, bucket=at.bucket, plan=at.prefix + plan)
        yield Seen(case, *_outcome(machine.end(arn)))


def _outcome(execution: Any) -> tuple[str, str]:
    """The number of results, or who caught what."""
    if execution["status"] != "SUCCEEDED":
        return execution["status"], execution.get("error", "")
    output = json.loads(execution["output"])
    if "caught" in output:
        return f"caught by {output['caught']}", output["error"].get("Error", "")
    return f"{len(output['completed'])} done", ""


PROBES: Final = (execution_names, map_datasets)
