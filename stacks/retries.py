"""The state machine's retries: of all errors but those that we know to be final.

AWS has more names for a call that found no function than anyone can list: a function that rested is
woken by the call that fails, and is ready within a minute or so.
https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html
https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html An upgrade changes code, layer
and environment of a function one after the other: for some seconds they may differ, and it can't
start. A process that died may do so again.
"""

from typing import Any

# The next try says the same. Lambda reports an error by the name of its class, and Step Functions
# compares whole names: a class below one of these is another one.
FINAL = [
    *("JobRefusedError", "LostRaceError", "HeldError"),
    *("NeedsOperatorError", "InvalidInputError", "IllegalTransitionError"),
]
# Any error that can be retried, States.Timeout among them, which States.TaskFailed leaves out:
# https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
ALL = "States.ALL"
# The error of a Map that can't read its dataset, for any reason (the same page).
UNREAD = "States.ItemReaderFailed"


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


NEVER = {"ErrorEquals": FINAL, "MaxAttempts": 0}
# Of a call of a function; the first that has the error's name counts, so in order. Between the
# tries four minutes, give or take one; eight at most.
RETRIES = [NEVER, retry([ALL], first=2, attempts=12, longest=60)]
# Of a unit. A child of the Map Run is an Express execution, which lives five minutes at most, and
# uses all of them to wait out a crowd of jobs that want more functions than there are
# (docs/scale.md): a Map that begins again costs more.
UNIT_RETRIES = [NEVER, retry([ALL], first=1, attempts=17, longest=12)]
_FAILED = ["States.ExceedToleratedFailureThreshold", "States.Timeout"]
MAP_RETRIES = [
    retry(_FAILED, first=5, attempts=8, longest=120),
    retry([UNREAD], first=2, attempts=4, longest=30),
]
