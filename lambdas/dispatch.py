"""The driver has spoken: start the state machine for the job, once."""

from typing import Any

from s3commit.aws import env
from s3commit.aws.events import Announced, each_message
from s3commit.aws.executions import StateMachine
from s3commit.aws.settings import value
from s3commit.aws.telemetry import document_refused, logger
from s3commit.core.formats.layout import parse_directory
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.ports.executions import Reason

machine = StateMachine(value(env.STATE_MACHINE))
bucket = value(env.BUCKET)


def dispatch(one: Announced) -> None:
    """Start an execution for a request, named by the job's ref; a repeated event starts none.

    None for a guess: it would abort a job there that has no request yet.
    """
    if one.guessed:
        return
    try:
        directory = parse_directory(one.bucket, one.key)
    except InvalidInputError as error:
        document_refused(one.key, error.code)
        return
    if one.key == directory.request:
        started = machine.start(directory.ref, directory, Reason(requested_by=one.principal))
        logger.info("request dispatched", job_id=directory.job_id, started=started)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Take a batch of SQS messages; answer with those to be redelivered."""
    return each_message(event, dispatch, bucket=bucket)
