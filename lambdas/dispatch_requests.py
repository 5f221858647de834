"""The driver has spoken: start the state machine for the job, once."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import Any

from s3commit.aws.events import Announced, each_message, partial_failure
from s3commit.aws.settings import state_machine
from s3commit.aws.starter import ExecutionStarter
from s3commit.aws.telemetry import logger
from s3commit.core.errors import InvalidInputError
from s3commit.core.layout import JobDirectory, parse_directory
from s3commit.core.ticket import execution_input

starter = ExecutionStarter(state_machine(os.environ))


def dispatch(announced: list[Announced]) -> None:
    """Start an execution for each request, named by the job; a repeated event starts nothing.

    The name is the job's id; where a request in another directory has taken that, the directory's
    digest is added (docs/adr/0010).
    """
    for one in announced:
        try:
            place = parse_directory(one.bucket, one.key)
        except InvalidInputError as error:
            logger.warning("not a request of ours", reason=error.message)
            continue
        if one.key == place.request:
            document = json.dumps(execution_input(place))
            started = starter.start(place.job_id, document, otherwise=_own_name(place))
            logger.info("request dispatched", job_id=place.job_id, started=started)


def _own_name(place: JobDirectory) -> str:
    """53 of the 80 characters of a name; 16 digits, since shorter digests can be met by trying."""
    return f"{place.job_id}-{sha256(place.uri.encode()).hexdigest()[:16]}"


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Take a batch of SQS messages; answer with those to be redelivered."""
    return partial_failure(each_message(event, dispatch))
