"""Starting executions of the state machine, by name and therefore once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from s3commit.aws.failures import translate
from s3commit.aws.telemetry import logger

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient


class ExecutionStarter:
    """Starts executions of one state machine. Holds a client; thread-safe."""

    def __init__(self, state_machine: str, client: SFNClient | None = None) -> None:
        self._state_machine = state_machine
        self._client = client or boto3.client(
            "stepfunctions", config=Config(retries={"mode": "standard", "total_max_attempts": 5})
        )

    def start(self, name: str, document: str, *, otherwise: str) -> bool:
        """Start an execution; False if it has been started already.

        ``otherwise`` is its name if one with another input has ``name``: a request that somebody
        has put elsewhere under the same job id must not keep this one from being heard.

        For a STANDARD state machine a repeated call with the same name and input is answered
        like the first one while it runs, and with ExecutionAlreadyExists for 90 days after:
        https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
        """
        try:
            if self._start(name, document):
                return True
            if self._has_input(name, document):
                return False
            logger.warning("name taken by another input", execution=name, otherwise=otherwise)
            return self._start(otherwise, document)
        except (ClientError, BotoCoreError) as error:
            raise translate(error, f"start execution {name}") from error

    def _start(self, name: str, document: str) -> bool:
        try:
            self._client.start_execution(
                stateMachineArn=self._state_machine, name=name, input=document
            )
        except self._client.exceptions.ExecutionAlreadyExists:
            return False
        return True

    def _has_input(self, name: str, document: str) -> bool:
        arn = self._state_machine.replace(":stateMachine:", ":execution:", 1) + f":{name}"
        found = self._client.describe_execution(executionArn=arn).get("input", "")
        try:
            return bool(json.loads(found) == json.loads(document))
        except ValueError:
            return False  # started by hand with something else
