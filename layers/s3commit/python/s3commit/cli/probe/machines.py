"""Step Functions, on a state machine of the run's own: names of executions, a Map's datasets."""

from __future__ import annotations

import json
from typing import Any

from s3commit.cli.probe.model import Answers, Cost, Seen, needs, probe, sees
from s3commit.cli.probe.place import Place, asked
from s3commit.cli.probe.world import World

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

    def __init__(self, world: World) -> None:
        self._world = world
        self._client = world.client("stepfunctions")
        role = world.given.machine_role or ""
        _, partition, _, _, account, _ = role.split(":", 5)
        region = self._client.meta.region_name
        self.arn = f"arn:{partition}:states:{region}:{account}:stateMachine:{world.name}"
        # Before it is made: an interruption right after that leaves nothing either.
        world.undo.callback(self._client.delete_state_machine, stateMachineArn=self.arn)
        self._client.create_state_machine(
            name=world.name, definition=json.dumps(definition(partition)), roleArn=role
        )

    def start(self, name: str, **given: Any) -> tuple[str, str]:
        """The answer and the ARN of an execution, if there is one."""
        told, answer = asked(
            self._client.start_execution,
            stateMachineArn=self.arn,
            name=name,
            input=json.dumps(given),
        )
        return told, answer.get("executionArn", "")

    def stop(self, arn: str) -> str:
        """Stop an execution; how it ended."""
        self._client.stop_execution(executionArn=arn)
        return str(self.end(arn)["status"])

    def end(self, arn: str) -> Any:
        """The execution when it has ended, or as it is after `END_SECONDS`."""

        def ended() -> Any:
            found = self._client.describe_execution(executionArn=arn)
            return found if found["status"] != "RUNNING" else None

        found = self._world.wait(ended, END_SECONDS, PAUSE)
        return found or self._client.describe_execution(executionArn=arn)


@probe(
    "execution-names",
    "an execution's name is used once",
    "aws/executions.py",
    STARTS,
    Cost(transitions=8),
    lacks=needs("machine-role"),
)
@sees("start", "200")
# `StateMachine.start` takes the refusal for "started before" as well
@sees("same name and input while it runs", "200", TAKEN)
@sees("whose execution that is", "the same")
@sees("same name, other input, while it runs", TAKEN)
@sees("stop", "ABORTED")
@sees("same name and input after its end", TAKEN)
def _names(world: World, place: Place) -> Answers:
    machine = Machine(world)
    told, first = machine.start("named", seconds=RUNNING_SECONDS)
    yield told
    if not first:
        return
    try:
        told, again = machine.start("named", seconds=RUNNING_SECONDS)
        yield told
        yield "the same" if again == first else "another"
        yield machine.start("named", seconds=RUNNING_SECONDS + 1)[0]
    finally:
        ended = machine.stop(first)
    yield ended
    yield machine.start("named", seconds=RUNNING_SECONDS)[0]


@probe(
    "map-datasets",
    "a distributed Map and its plan",
    "ADR 3",
    ERRORS,
    Cost(requests=10, transitions=20),
    lacks=needs("machine-role"),
)
@sees("a plan of one unit", "1 done")
# not documented, and never relied on: AnythingToComplete goes around the Map
@sees("a plan of no unit", "0 done", matters=False)
@sees("a plan that is missing", f"caught by {UNREAD}")
def _datasets(world: World, place: Place) -> Answers:
    machine = Machine(world)
    place.put("one.json", b'[{"unit": 0}]')
    place.put("none.json", b"[]")
    for plan in ("one.json", "none.json", "missing.json"):
        given = {"seconds": 0, "bucket": place.bucket, "plan": place.prefix + plan}
        _, arn = machine.start(plan, **given)
        yield _outcome(machine.end(arn))


def _outcome(execution: Any) -> Seen:
    """The number of results, or who caught what."""
    if execution["status"] != "SUCCEEDED":
        return Seen([execution["status"]], execution.get("error", ""))
    output = json.loads(execution["output"])
    if "caught" in output:
        return Seen([f"caught by {output['caught']}"], output["error"].get("Error", ""))
    return Seen([f"{len(output['completed'])} done"])


PROBES = (_names, _datasets)
