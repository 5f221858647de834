"""A job was set up, or a manifest was put: note it in the ledger."""

from typing import Any

from s3commit.aws import env
from s3commit.aws.events import Announced, each_message
from s3commit.aws.executions import StateMachine
from s3commit.aws.settings import value
from s3commit.aws.telemetry import count, document_refused, logger
from s3commit.aws.wiring import make_ports, owning
from s3commit.core.commit.note_arrivals import note_job, note_manifest
from s3commit.core.formats.layout import PENDINGSET_SUFFIX
from s3commit.core.model.errors import InvalidInputError

ports = owning(make_ports(), claims=False)
machine = StateMachine(value(env.STATE_MACHINE))
bucket = value(env.BUCKET)


def ingest(one: Announced) -> None:
    """Note what an event announces, before anything else is looked at.

    Events come of the whole bucket. Where the deployment has no rights nothing is read.
    """
    if not ports.serves(one.key):
        return
    try:
        if one.key.endswith(PENDINGSET_SUFFIX):
            noted = note_manifest(ports, machine, one.bucket, one.key, size=one.size)
            count(env.MANIFESTS_RECORDED, noted)
        else:
            note_job(ports, one.bucket, one.key)
    except InvalidInputError as error:
        # Redelivery would not help; a request that counts it is refused for it.
        if not one.guessed:  # a guessed one need not exist
            document_refused(one.key, error.code)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Take a batch of SQS messages, in the stack one; answer with those to be redelivered."""
    return each_message(event, ingest, bucket=bucket)
