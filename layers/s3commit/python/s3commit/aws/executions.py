"""The executions of the pipeline's state machine, on Step Functions."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from botocore.config import Config

from s3commit.aws.clients import make_session
from s3commit.aws.env import STATE_MACHINE_OUTPUT
from s3commit.aws.failures import translated
from s3commit.core.documents.ticket import execution_input
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.ports.executions import FORGOTTEN, NO_REASON, Execution, Reason

_MACHINE = re.compile(r"arn:[a-z-]+:states:[a-z0-9-]+:[0-9]+:stateMachine:[^:\s]+")


def machine_of(execution: str) -> str | None:
    """The ARN of the state machine of an execution, or None for another ARN."""
    fields = execution.split(":")
    if len(fields) < 8 or fields[0] != "arn" or fields[5] != "execution":
        return None
    return ":".join([*fields[:5], "stateMachine", fields[6]])


def check_machine(arn: str) -> str:
    """Return ``arn`` if it is a state machine's, else raise `InvalidInputError`."""
    if not _MACHINE.fullmatch(arn):
        raise InvalidInputError(
            f"{arn[:200]!r} is not the ARN of a state machine: give the stack's output"
            f" {STATE_MACHINE_OUTPUT}, arn:aws:states:REGION:ACCOUNT:stateMachine:NAME"
        )
    return arn


if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


class StateMachine:
    """Implements `s3commit.core.ports.executions.Executions` for one machine; thread-safe."""

    def __init__(self, arn: str, client: SFNClient | None = None) -> None:
        self._arn = arn
        if client is None:
            config = Config(retries={"mode": "standard", "total_max_attempts": 5})
            session: Any = make_session(arn.split(":")[3] or None)
            client = cast("SFNClient", session.create_client("stepfunctions", config=config))
        self._client = client

    def describe(self, execution: str) -> Execution:
        """See `Executions.describe`; `FORGOTTEN` where Step Functions has none any more.

        So is one of another machine, of a deployment before this one: this machine's role has no
        right to see it, and an execution too many does no harm.
        """
        arn = execution if execution.startswith("arn:") else self._execution(execution)
        if not arn.startswith(self._execution("")):
            return Execution(FORGOTTEN)
        with translated(f"reading execution {arn}"):
            try:
                found = self._client.describe_execution(executionArn=arn)
            except self._client.exceptions.ExecutionDoesNotExist:
                return Execution(FORGOTTEN)
        return Execution(found["status"], found.get("error", ""), found.get("cause", ""))

    def start(self, name: str, directory: JobDirectory, reason: Reason = NO_REASON) -> str | None:
        """See `Executions.start`; a name is in use for 90 days."""
        found = execution_input(directory, reason)
        document = json.dumps(found)
        with translated(f"starting execution {name}"):
            try:
                started = self._client.start_execution(
                    stateMachineArn=self._arn, name=name, input=document
                )
            except self._client.exceptions.ExecutionAlreadyExists:
                return None
        return started["executionArn"]

    def _execution(self, name: str) -> str:
        return f"{self._arn.replace(':stateMachine:', ':execution:', 1)}:{name}"


_machine = lru_cache(maxsize=1)(StateMachine)


def runs_beside(own: str, execution: str) -> bool:
    """True if another execution of the same state machine is at work; ``own`` is the caller's ARN.

    A function that the machine calls can't get the machine's ARN when both are deployed. An
    execution that has just begun, or ended, is perhaps not known yet:
    https://docs.aws.amazon.com/step-functions/latest/apireference/API_DescribeExecution.html
    """
    machine = machine_of(own)
    return machine is not None and _machine(machine).describe(execution).is_running
