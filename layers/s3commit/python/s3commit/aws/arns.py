"""ARNs of executions and of their state machines."""

from __future__ import annotations


def is_arn(execution: str) -> bool:
    """Whether it is the ARN of an execution."""
    fields = execution.split(":")
    return len(fields) >= 8 and fields[0] == "arn" and fields[5] == "execution"


def machine_of(execution: str) -> str | None:
    """The ARN of the state machine of an execution, or None for what is no execution's ARN."""
    if not is_arn(execution):
        return None
    fields = execution.split(":")
    return ":".join([*fields[:5], "stateMachine", fields[6]])
