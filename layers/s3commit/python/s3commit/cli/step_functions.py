"""`Executions` on Step Functions."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import boto3

from s3commit.aws.failures import translated
from s3commit.cli.executions import FORGOTTEN, Execution
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import execution_input

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


class StepFunctions:
    """Implements `Executions`, in the region that an ARN names."""

    def describe(self, arn: str) -> Execution:
        """See `Executions.describe`."""
        with translated(f"looking at execution {arn}"):
            client = _client(_region(arn))
            try:
                found = client.describe_execution(executionArn=arn)
            except client.exceptions.ExecutionDoesNotExist:
                return Execution(FORGOTTEN)
        return Execution(found["status"], found.get("error", ""), found.get("cause", ""))

    def start(self, machine: str, name: str, directory: JobDirectory) -> str:
        """See `Executions.start`."""
        document = json.dumps(execution_input(directory))
        with translated(f"starting an execution of {machine}"):
            started = _client(_region(machine)).start_execution(
                stateMachineArn=machine, name=name, input=document
            )
        return started["executionArn"]


@cache
def _client(region: str) -> SFNClient:
    return boto3.client("stepfunctions", region_name=region)


def _region(arn: str) -> str:
    return arn.split(":")[3]
