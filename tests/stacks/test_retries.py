"""The machine tries again whatever is not final, for as long as a function takes to wake up."""

import importlib
import pkgutil
from collections.abc import Iterator
from math import sqrt
from typing import Any

import botocore.session
import pytest

import s3commit.aws
import s3commit.core
from s3commit.core.model.errors import (
    AccessError,
    JobFailedError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    S3CommitError,
    TransientError,
    UnchangedError,
    UploadGoneError,
)
from stacks.definition import definition
from stacks.functions import FUNCTIONS
from stacks.retries import FINAL, MAP_RETRIES

# Seconds, about a minute in a VPC:
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
TO_WAKE = 60
# What Lambda's runtime and its sandboxes call the end of a function, by what was seen of them; only
# some are documented: https://docs.aws.amazon.com/step-functions/latest/dg/bp-lambda-serviceexception.html
OF_THE_RUNTIME = [
    *("Lambda.Unknown", "Lambda.AWSLambdaException", "Lambda.SdkClientException"),
    *("Lambda.ClientExecutionTimeoutException", "Function.Unknown"),
    *("Sandbox.Timeout", "Sandbox.Timedout", "Sandbox.Failure"),
    *("Runtime.Unknown", "Runtime.ExitError", "Runtime.OutOfMemory", "Runtime.TruncatedResponse"),
    *("Runtime.ImportModuleError", "Runtime.HandlerNotFound", "Runtime.InvalidEntrypoint"),
    *("Extension.Crash", "Extension.InitError", "Extension.ExitError", "Extension.LaunchError"),
    *("ImportError", "ModuleNotFoundError", "MemoryError", "KeyError", "SettingsError"),
    *("States.Timeout", "States.TaskFailed", "States.Permissions", "States.HeartbeatTimeout"),
]
STATES: dict[str, Any] = definition(dict.fromkeys(FUNCTIONS, "arn"))["States"]


def calls() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """The states that call a function, each with the one of the machine that it is or lies in."""
    found = {}
    for name, state in STATES.items():
        inner = state["ItemProcessor"]["States"] if state["Type"] == "Map" else {name: state}
        for step, task in inner.items():
            if str(task.get("Resource")).endswith("lambda:invoke"):
                found[step] = (task, state)
    return found


CALLS = calls()


def of_lambda() -> Iterator[str]:
    """The errors of Invoke: Step Functions puts ``Lambda.`` before the name, AWS's page says.

    Its names have the ending; nothing says that all have.
    """
    model = botocore.session.get_session().get_service_model("lambda")
    for shape in model.operation_model("Invoke").error_shapes:
        bare = str(shape.name).removesuffix("Exception")
        yield from (f"Lambda.{bare}", f"Lambda.{bare}Exception")


def retrier(retries: list[dict[str, Any]], error: str) -> dict[str, Any]:
    """The one that decides: the first that has the error's name, or a name for it.

    https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
    """
    wild = {"States.ALL"} | ({"States.TaskFailed"} if error != "States.Timeout" else set())
    never = {"MaxAttempts": 0}
    return next((one for one in retries if {error, *wild} & set(one["ErrorEquals"])), never)


def waits(one: dict[str, Any]) -> list[float]:
    """The longest wait before each try."""
    return [
        min(one["IntervalSeconds"] * one["BackoffRate"] ** tries, one["MaxDelaySeconds"])
        for tries in range(one["MaxAttempts"])
    ]


def all_waits(step: str, error: str) -> list[float]:
    """Those of the state itself, then of what does all of it again."""
    task, outer = CALLS[step]
    found = waits(retrier(task["Retry"], error))
    if step == "CompleteUnit":
        found += waits(retrier(outer["Retry"], "States.ExceedToleratedFailureThreshold"))
    if step in {"CompleteAtOnce", "CompleteUnitAtOnce"}:
        assert outer["Catch"][0] == {
            "ErrorEquals": ["States.ALL"],
            "ResultPath": None,
            "Next": "CompleteUploads",
        }
        found += all_waits("CompleteUnit", error)
    return found


def test_each_call_of_a_function_is_looked_at() -> None:
    invoked = {task["Parameters"]["FunctionName"] for task, _ in CALLS.values()}
    assert (invoked, len(CALLS)) == ({"arn"}, 14)


@pytest.mark.parametrize("step", sorted(CALLS))
def test_what_finds_no_function_awake_is_tried_until_one_is(step: str) -> None:
    names = [*of_lambda(), *OF_THE_RUNTIME]
    assert "Lambda.ResourceNotReadyException" in names
    for error in names:
        found = all_waits(step, error)
        # A wait is any part of its longest: the sum is normal, near enough.
        mean, deviation = sum(found) / 2, sqrt(sum(wait**2 for wait in found) / 12)
        assert mean - 3 * deviation >= TO_WAKE, error
        assert sum(found) <= 30 * 60, error


@pytest.mark.parametrize("step", sorted(CALLS))
def test_what_is_final_is_not_tried_again(step: str) -> None:
    for error in FINAL:
        assert retrier(CALLS[step][0]["Retry"], error)["MaxAttempts"] == 0, error


def test_what_is_caught_by_a_name_of_ours_is_caught_at_once() -> None:
    caught = {
        error
        for state in STATES.values()
        for catch in state.get("Catch", ())
        for error in catch["ErrorEquals"]
        if not error.startswith("States.")
    }
    assert caught
    assert caught <= set(FINAL)


def test_each_error_of_ours_is_final_or_may_pass() -> None:
    passing = {
        TransientError: "that is what it means",
        AccessError: "a policy or key that is changed counts after seconds",
        NotFoundError: "what another one puts or makes may be there later",
        UploadGoneError: "the step lists again",
        PreconditionError: "the step reads what is there by then",
    }
    others = {
        S3CommitError: "a base, or the CLI's",
        UnchangedError: "a base",
        OutcomeUnknownError: "a client's",
        JobFailedError: "a client's",
    }
    found = set(_below(S3CommitError)) | {S3CommitError}
    settings = {one for one in found if one.__name__ == "SettingsError"}  # an upgrade's
    assert len(settings) == 1
    named = {one.__name__ for one in found - set(passing) - set(others) - settings}
    assert named == set(FINAL)


def _below(error: type[Exception]) -> Iterator[type[Exception]]:
    for package in (s3commit.core, s3commit.aws):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for each in error.__subclasses__():
        if each.__module__.startswith(("s3commit.core", "s3commit.aws")):
            yield from (each, *_below(each))


def test_a_map_is_tried_again_by_what_maps_raise() -> None:
    assert STATES["CompleteUploads"]["Retry"] == MAP_RETRIES
    assert not {"States.ALL", "States.TaskFailed"} & {
        error for one in MAP_RETRIES for error in one["ErrorEquals"]
    }
