"""ARNs of executions and of their state machines."""

from __future__ import annotations


def machine_of(execution: str) -> str | None:
    """The ARN of the state machine of an execution, or None for what is no execution's ARN."""
    fields = execution.split(":")
    if len(fields) < 8 or fields[0] != "arn" or fields[5] != "execution":
        return None
    return ":".join([*fields[:5], "stateMachine", fields[6]])
