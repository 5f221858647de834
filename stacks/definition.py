"""The state machine of a job, in the Amazon States Language.

`definition` is a pure function, so that a test can lint it. It keeps to JSONPath, which the
embedded runtime's interpreter speaks as well. State names are the words of the people on call.
"""

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk

from s3commit.aws import env
from stacks.functions import FUNCTIONS
from stacks.retries import ALL, MAP_RETRIES, RETRIES, UNIT_RETRIES, UNREAD, retry

State = dict[str, Any]

# Which function carries out a step; `complete_unit` runs inside the Map.
_DECIDE = ("SealJob", "VerifyManifests", "AcquireDestination", "CheckConditions", "DecideCommit")
_END = ("BeginPublish", "RemoveReplaced", "PublishSuccess", "AbortJob", "RollBack", "TidyUp")
STEPS = {**dict.fromkeys(_DECIDE, "decide"), **dict.fromkeys(_END, "end")}
MAP_STEP = "CompleteUnit"
FEW_STEP = "CompleteUnitAtOnce"  # the same; no two states have one name
MAP_FUNCTION = "complete"

# Before the decision a job may be refused; each of these steps can say so.
REFUSING = frozenset(_DECIDE[1:])

EXECUTION_HOURS = 24


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


def _step(step: str, functions: Mapping[str, str], following: str, *catches: State) -> State:
    """One step: it takes a ticket and returns the next one. ``catches`` are those of it alone."""
    refused = [_REFUSED] if step in REFUSING else []
    return {
        **_invoke(functions, STEPS[step], {"ticket.$": "$"}),
        "Retry": RETRIES,
        "Catch": [*refused, _LOST_RACE, *catches],
        "Next": following,
    }


def _choice(variable: str, targets: Mapping[Any, str]) -> State:
    """By value. Without a default: a value that is not listed fails the execution."""
    ways = [
        {
            "Variable": variable,
            "BooleanEquals" if isinstance(value, bool) else "StringEquals": value,
            "Next": target,
        }
        for value, target in targets.items()
    ]
    return {"Type": "Choice", "Choices": ways}


def _any(variable: str, if_some: str, if_none: str, *first: State) -> State:
    """By number; ``first`` are ways that are tried before."""
    return {
        "Type": "Choice",
        "Choices": [
            *first,
            {"Variable": variable, "NumericGreaterThan": 0, "Next": if_some},
            {"Variable": variable, "NumericEquals": 0, "Next": if_none},
        ],
    }


def _wait(following: str) -> State:
    """A wait before the next try; the step sets the pause, which grows with the time waited."""
    return {"Type": "Wait", "SecondsPath": "$.pause", "Next": following}


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
        "Next": "BeginPublish",
        **more,
    }


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
    "Catch": [_catch(ALL, "TidyUp")],
    "ResultPath": None,
    "Next": "TidyUp",
}


def _until_decided(functions: Mapping[str, str]) -> dict[str, State]:
    return {
        "SealJob": _step("SealJob", functions, "WhereToResume"),
        "WhereToResume": _choice(
            "$.state",
            {
                "OPEN": "WaitForLedger",
                "SEALED": "VerifyManifests",
                "COMMITTING": "AnythingToComplete",
                "PUBLISHING": "AnythingToReplace",
                "ABORTING": "AbortJob",
                "ROLLING_BACK": "RollBack",
                # Ended in the ledger, perhaps without its result: the last step repeats safely.
                "COMMITTED": "PublishSuccess",
                "ABORTED": "AbortJob",
                "ROLLED_BACK": "RollBack",
            },
        ),
        # An empty table heals itself before any job is sealed in it.
        "WaitForLedger": _wait("SealJob"),
        "VerifyManifests": _step("VerifyManifests", functions, "DestinationNeeded"),
        # A job that appends, without a key, waits for nobody.
        "DestinationNeeded": _choice(
            "$.acquired", {True: "CheckConditions", False: "AcquireDestination"}
        ),
        "AcquireDestination": _step("AcquireDestination", functions, "DestinationFree"),
        "DestinationFree": _choice(
            "$.acquired", {True: "CheckConditions", False: "WaitForDestination"}
        ),
        "WaitForDestination": _wait("AcquireDestination"),
        "CheckConditions": _step("CheckConditions", functions, "DecideCommit"),
        # Another job may have taken the idempotency key meanwhile: it is waited for.
        "DecideCommit": _step(
            "DecideCommit",
            functions,
            "AnythingToComplete",
            _catch("HeldError", "WaitForDestination"),
        ),
        # What a Map does with an empty dataset is not documented; a job without files has one.
        "AnythingToComplete": _any(
            "$.units",
            "CompleteUploads",
            "BeginPublish",
            {"Variable": "$.few[0]", "IsPresent": True, "Next": "CompleteFew"},
        ),
    }


def _until_published(functions: Mapping[str, str]) -> dict[str, State]:
    return {
        # Of a small job, without a Map Run, which takes a second to begin and to end. Whatever
        # fails in it, CompleteUploads does all again.
        "CompleteFew": _map(
            functions,
            FEW_STEP,
            {"Mode": "INLINE"},
            ItemsPath="$.few",
            Catch=[_catch(ALL, "CompleteUploads")],
        ),
        # Over the units of the plan. Its tolerance is 0 by default: one loss fails it. How many
        # children run at once the step before says in each round, by the jobs at work then:
        # https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html
        "CompleteUploads": _map(
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
            Catch=[_catch(UNREAD, "BeginPublish")],
        ),
        "BeginPublish": _step("BeginPublish", functions, "Published"),
        "Published": _choice(
            "$.state",
            {
                # A job that replaces nothing is published by the same call.
                "COMMITTED": "AnnounceOutcome",
                "PUBLISHING": "AnythingToReplace",
                "ROLLING_BACK": "RollBack",
                "COMMITTING": "WaitForNextRound",
            },
        ),
        "WaitForNextRound": _wait("AnythingToComplete"),
        "AnythingToReplace": _choice(
            "$.replaces", {True: "RemoveReplaced", False: "PublishSuccess"}
        ),
        # A long list takes more than one call has time for: in rounds, page by page.
        "RemoveReplaced": _step("RemoveReplaced", functions, "AllRemoved"),
        "AllRemoved": _any("$.page", "RemoveReplaced", "PublishSuccess"),
        "PublishSuccess": _step("PublishSuccess", functions, "AnnounceOutcome"),
    }


def _until_ended(functions: Mapping[str, str]) -> dict[str, State]:
    ends = {"COMMITTED": "JobCommitted", "ABORTED": "JobAborted", "ROLLED_BACK": "JobRolledBack"}
    return {
        "AbortJob": _step("AbortJob", functions, "Undone"),
        "RollBack": _step("RollBack", functions, "Undone"),
        # A task that still runs may open uploads; or a call's time was over.
        "Undone": _choice(
            "$.state",
            {
                "ABORTED": "AnnounceOutcome",
                "ROLLED_BACK": "AnnounceOutcome",
                "ABORTING": "WaitForUploads",
                "ROLLING_BACK": "WaitForUploads",
            },
        ),
        "WaitForUploads": _wait("WhereToResume"),
        # The job has its result by now: nothing that fails from here on fails its execution.
        "AnnounceOutcome": _ANNOUNCE,
        # What it can't do the sweep has done again.
        "TidyUp": _step("TidyUp", functions, "AllTidy", _catch(ALL, "HowItEnded")),
        # A loser may have left more uploads than a call has time for.
        "AllTidy": _any("$.page", "TidyUp", "HowItEnded"),
        "HowItEnded": _choice("$.outcome", ends),
        **{name: {"Type": "Succeed"} for name in (*ends.values(), "Superseded")},
    }


def definition(functions: Mapping[str, str]) -> State:
    """The whole machine. ``functions`` maps a function's name to its ARN."""
    return {
        "Comment": "s3commit: one job, from its request to its result",
        "StartAt": "SealJob",
        "TimeoutSeconds": EXECUTION_HOURS * 3600,
        "States": {
            **_until_decided(functions),
            **_until_published(functions),
            **_until_ended(functions),
        },
    }
