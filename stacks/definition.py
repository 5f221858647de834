"""The state machine of a job, in the Amazon States Language.

`definition` is a pure function, so that a test can lint it. It keeps to JSONPath, which the
embedded runtime's interpreter speaks as well. State names are the words of the people on call.
"""

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk

from s3commit.aws import env
from s3commit.core.calls import routes
from stacks.functions import FUNCTIONS
from stacks.retries import ALL, MAP_RETRIES, RETRIES, UNIT_RETRIES, UNREAD, retry

State = dict[str, Any]

MAP_STEP = "CompleteUnit"
FEW_STEP = "CompleteUnitAtOnce"  # the same; no two states have one name
MAP_FUNCTION = "complete"

EXECUTION_HOURS = 24

# The choice after each step of a function.
CHOICES = {"decide": "WhereItStands", "end": "WhatIsLeft"}


def _catch(error: str, following: str, into: str | None = None) -> State:
    """Where an error leads; ``into`` is the place in the ticket that takes what it says."""
    return {"ErrorEquals": [error], "ResultPath": into, "Next": following}


_LOST_RACE = _catch("LostRaceError", "Superseded")
_REFUSED = _catch("JobRefusedError", "AbortJob", "$.refusal")


def _invoke(functions: Mapping[str, str], name: str, payload: State) -> State:
    """A call of a function; its payload also names the state and the execution."""
    return {
        "Type": "Task",
        "Resource": f"arn:{cdk.Aws.PARTITION}:states:::lambda:invoke",
        "Parameters": {
            "FunctionName": functions[name],
            "Payload": {"step.$": "$$.State.Name", "execution.$": "$$.Execution.Id", **payload},
        },
        "OutputPath": "$.Payload",
        "TimeoutSeconds": FUNCTIONS[name].timeout + 30,
    }


def _step(step: str, functions: Mapping[str, str]) -> State:
    """A call that begins with this step: it takes a ticket and returns the next one."""
    refused = [_REFUSED] if step in routes.REFUSING else []
    # Another job may hold the idempotency key: it is waited for.
    held = [_catch("HeldError", "WaitForDestination")] if step == "DecideCommit" else []
    # The job has its result: nothing that fails in it fails its execution, and what it
    # can't do the sweep has done again.
    ways = [_catch(ALL, "HowItEnded")] if step == "TidyUp" else [*refused, _LOST_RACE, *held]
    return {
        **_invoke(functions, routes.STEPS[step], {"ticket.$": "$", "goesOn": True}),
        "Retry": RETRIES,
        "Catch": ways,
        "Next": CHOICES[routes.STEPS[step]],
    }


def _choice(variable: str, targets: Mapping[Any, str]) -> State:
    """By value. Without a default: a value that is not listed fails the execution."""
    ways = [
        {"Variable": variable, "StringEquals": value, "Next": target}
        for value, target in targets.items()
    ]
    return {"Type": "Choice", "Choices": ways}


def _completing(functions: Mapping[str, str]) -> dict[str, State]:
    again = {"Catch": [_catch(ALL, routes.ALL)]}  # if it fails, that one does all again
    return {
        routes.AT_ONCE: {
            **_invoke(functions, MAP_FUNCTION, {"ticket.$": "$"}),
            "Retry": UNIT_RETRIES,
            **again,
            "Next": routes.COUNTED,
        },
        # Of a small job, without a Map Run, which takes a second to begin and to end.
        routes.FEW: _map(functions, FEW_STEP, {"Mode": "INLINE"}, ItemsPath="$.few", **again),
        # Over the units of the plan. Its tolerance is 0 by default: one loss fails it. How many
        # children run in parallel the step before says in each round, by the jobs at work then:
        # https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html
        routes.ALL: _map(
            functions,
            MAP_STEP,
            {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"},
            ItemReader={
                "Resource": f"arn:{cdk.Aws.PARTITION}:states:::s3:getObject",
                "ReaderConfig": {"InputType": "JSON"},
                "Parameters": {"Bucket.$": "$.bucket", "Key.$": "$.plan"},
            },
            Retry=MAP_RETRIES,
            # Another execution may have ended the job and deleted the plan: the ledger is asked.
            Catch=[_catch(UNREAD, routes.COUNTED)],
        ),
    }


def _map(functions: Mapping[str, str], step: str, mode: State, **more: Any) -> State:
    """A Map over units: ``step`` completes each; ``more`` is what the two Maps do not share."""
    unit = {"ticket.$": "$.ticket", "unit.$": "$.unit"}
    invoked = _invoke(functions, MAP_FUNCTION, unit)
    return {
        "Type": "Map",
        "ItemProcessor": {
            "ProcessorConfig": mode,
            "StartAt": step,
            "States": {step: {**invoked, "Retry": UNIT_RETRIES, "End": True}},
        },
        "MaxConcurrencyPath": "$.workers",
        "ItemSelector": {
            "unit.$": "$$.Map.Item.Value",
            "ticket": {
                "jobId.$": "$.jobId",
                "bucket.$": "$.bucket",
                "directory.$": "$.directory",
                "generation.$": "$.generation",
            },
        },
        "ResultPath": "$.completed",
        "Next": routes.COUNTED,
        **more,
    }


# How the job has ended, as an event. A job that has its result fails for nothing.
_ANNOUNCE: State = {
    "Type": "Task",
    "Resource": f"arn:{cdk.Aws.PARTITION}:states:::events:putEvents",
    "Parameters": {
        "Entries": [
            {"Source": env.EVENT_SOURCE, "DetailType": env.EVENT_DETAIL_TYPE, "Detail.$": "$.event"}
        ]
    },
    "TimeoutSeconds": 60,
    "Retry": [retry([ALL], first=1, attempts=10, longest=60)],
    "Catch": [_catch(ALL, "NotAnnounced")],
    "ResultPath": None,
    "End": True,
}


def definition(functions: Mapping[str, str]) -> State:
    """The whole machine. ``functions`` maps a function's name to its ARN."""
    waits = {
        # The step before sets the pause, which grows with the time waited.
        name: {"Type": "Wait", "SecondsPath": "$.pause", "Next": following}
        for name, following in routes.WAITS.items()
    }
    steps = {step: _step(step, functions) for step in routes.STEPS}
    choices = {
        name: _choice("$.next", {to: to for to in routes.reached_after(function)})
        for function, name in CHOICES.items()
    }
    return {
        "Comment": "s3commit: one job, from its request to its result",
        "StartAt": routes.FIRST,
        "TimeoutSeconds": EXECUTION_HOURS * 3600,
        "States": {
            **steps,
            **choices,
            **waits,
            **_completing(functions),
            "HowItEnded": _choice("$.outcome", routes.ENDS),
            **dict.fromkeys(routes.ENDS.values(), _ANNOUNCE),
            **{name: {"Type": "Succeed"} for name in ("NotAnnounced", "Superseded")},
        },
    }
