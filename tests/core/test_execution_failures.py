"""What an execution failed with: a code that there is advice on, and one line."""

from __future__ import annotations

import pytest

from s3commit.core.ports.bundle import Execution


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
