"""Runs one named step of the state machine: a ticket in, the next ticket out."""

from collections.abc import Callable, Mapping
from typing import Any

from s3commit.aws import env
from s3commit.aws.telemetry import logger
from s3commit.core.documents.ticket import Ticket, decode_ticket, encode_ticket
from s3commit.core.formats.refusal import refusal_text
from s3commit.core.jobs.guards import retrying_if_twin_won
from s3commit.core.jobs.rounds import share_workers
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, NeedsOperatorError
from s3commit.core.ports.bundle import Ports

Step = Callable[[Ports, Ticket], Ticket]


def run_step(ports: Ports, steps: Mapping[str, Step], event: dict[str, Any]) -> dict[str, Any]:
    """Run the step that the event names and return the ticket for the next one.

    The state machine distinguishes errors by class name. A refusal carries its code in the message,
    since nothing else of an exception reaches the machine.
    """
    ticket = decode_ticket(event["ticket"], execution=event["execution"])
    name = event["step"]
    logger.append_keys(job_id=ticket.job_id, step=name, execution=ticket.execution)
    try:
        with retrying_if_twin_won(ticket):
            after = share_workers(ports, steps[name](ports, ticket))
    except (JobRefusedError, InvalidInputError) as error:
        logger.warning("step refused the job", code=error.code, reason=error.message)
        raise JobRefusedError(refusal_text(error.code, error.message), code=error.code) from error
    except NeedsOperatorError as error:  # what to do depends on the code, not on the class
        logger.error("step needs an operator", code=error.code, reason=error.message)
        raise type(error)(refusal_text(error.code, error.message), code=error.code) from error
    said: dict[str, Any] = {env.PAUSE: after.pause}
    logger.info(env.DONE_MESSAGE, state=after.state, generation=after.generation, **said)
    return encode_ticket(after)
