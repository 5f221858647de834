"""What the state machine tries again, and how often."""

from __future__ import annotations

from typing import Any

THROTTLED = [
    "TransientError",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.TooManyRequestsException",
]
# The process died or ran out of time: the next try may well do the same, so fewer of them.
_DIED = [
    "Lambda.Unknown",
    "Sandbox.Timedout",
    "Runtime.ExitError",
    "Runtime.OutOfMemory",
    "States.Timeout",
]
# An upgrade changes a function's code, its layer and its environment one after the other: for some
# seconds they may not fit, and the function can't start.
_UPGRADED = [
    "Runtime.ImportModuleError",
    "Runtime.HandlerNotFound",
    "ImportError",
    "ModuleNotFoundError",
    "SettingsError",
]


def retry(errors: list[str], *, first: int, attempts: int, longest: int) -> dict[str, Any]:
    """Waits between tries: ``first`` and at most ``longest`` seconds, by chance."""
    return {
        "ErrorEquals": errors,
        "IntervalSeconds": first,
        "BackoffRate": 2.0,
        "MaxDelaySeconds": longest,
        "MaxAttempts": attempts,
        "JitterStrategy": "FULL",
    }


RETRIES = [
    retry(THROTTLED, first=1, attempts=10, longest=60),
    retry(_DIED, first=2, attempts=4, longest=60),
    retry(_UPGRADED, first=4, attempts=8, longest=30),
]
# What a Map raises that can't read its dataset, whatever the reason:
# https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
UNREAD = "States.ItemReaderFailed"
# A child of the Map is an Express execution, which lives five minutes at most, and uses all of them
# to wait out a crowd of jobs that want more functions than there are (docs/scale.md): a Map that
# begins again costs more.
CHILD_RETRIES = [
    retry(THROTTLED, first=1, attempts=17, longest=12),
    retry(_DIED, first=1, attempts=4, longest=15),
    retry(_UPGRADED, first=4, attempts=8, longest=30),
]
MAP_RETRIES = [
    retry(
        ["States.ExceedToleratedFailureThreshold", "States.Timeout"],
        first=5,
        attempts=8,
        longest=120,
    ),
    retry([UNREAD], first=2, attempts=4, longest=30),
]
