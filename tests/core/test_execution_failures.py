"""What an execution failed with: a code that there is advice on, and one line."""

from __future__ import annotations

import json

import pytest

from s3commit.aws.steps import run_step
from s3commit.core.formats.ticket import Ticket, encode_ticket
from s3commit.core.model.errors import NeedsOperatorError
from s3commit.core.model.job import Failure
from s3commit.core.ports.bundle import Execution, Ports
from tests.core.world import World

JOB = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


@pytest.mark.parametrize("code", ["PAGE_CHANGED", "PLAN_NOT_READ"])
def test_an_error_that_its_class_does_not_tell_carries_its_code(code: str) -> None:
    ticket = encode_ticket(Ticket(JOB, "lake", f"sales/__magic_job-{JOB}/", execution="e"))

    def stop(ports: Ports, ticket: Ticket) -> Ticket:
        raise NeedsOperatorError("it says why", code=code)

    event = {"step": "Stop", "ticket": ticket, "execution": "e"}
    with pytest.raises(NeedsOperatorError) as caught:
        run_step(World().ports, {"Stop": stop}, event)
    cause = json.dumps({"errorMessage": str(caught.value), "errorType": "NeedsOperatorError"})
    failure = Execution("FAILED", "NeedsOperatorError", cause).failure
    assert failure == Failure(code, "NeedsOperatorError: it says why")


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        ("", "States.Timeout"),
        ("The state took too long", "States.Timeout: The state took too long"),
        ('{"errorMessage": "two\\nlines", "stackTrace": []}', "States.Timeout: two lines"),
        ('{"errorMessage": "a \\"cut\\" one", "stackTr', 'States.Timeout: a "cut" one'),
        ("[1]", "States.Timeout: [1]"),
        ("[Errno 2] no file", "States.Timeout: [Errno 2] no file"),  # not a code of ours
        ("x" * 9999, f"States.Timeout: {'x' * 600}..."),
    ],
)
def test_any_cause_is_one_line(cause: str, message: str) -> None:
    failure = Execution("TIMED_OUT", "States.Timeout", cause).failure
    assert failure is not None
    assert (failure.code, failure.message) == ("States.Timeout", message)
