"""Starting executions of the state machine, by name and therefore once."""

from __future__ import annotations

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from s3commit.aws.failures import translate


class ExecutionStarter:
    """Starts executions of one state machine. Holds a client; thread-safe."""

    def __init__(self, state_machine: str) -> None:
        self._state_machine = state_machine
        self._client = boto3.client(
            "stepfunctions", config=Config(retries={"mode": "standard", "total_max_attempts": 5})
        )

    def start(self, name: str, document: str) -> bool:
        """Start an execution; False if one of that name has been there already.

        For a STANDARD state machine a repeated call with the same name and input is answered
        like the first one while it runs, and with ExecutionAlreadyExists for 90 days after:
        https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
        """
        try:
            self._client.start_execution(
                stateMachineArn=self._state_machine, name=name, input=document
            )
        except self._client.exceptions.ExecutionAlreadyExists:
            return False
        except (ClientError, BotoCoreError) as error:
            raise translate(error, f"start execution {name}") from error
        return True
