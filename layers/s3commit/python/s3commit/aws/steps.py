"""Runs a call of the state machine: a ticket in, the next ticket out."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from s3commit.aws import env
from s3commit.aws.telemetry import logger
from s3commit.core.calls.run_call import Step, run_call
from s3commit.core.documents.ticket import Ticket, decode_ticket, encode_ticket
from s3commit.core.formats.refusal import refusal_text
from s3commit.core.jobs.guards import retrying_if_twin_won
from s3commit.core.jobs.rounds import share_workers
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, NeedsOperatorError
from s3commit.core.ports.bundle import Ports


def run_step(ports: Ports, steps: Mapping[str, Step], event: dict[str, Any]) -> dict[str, Any]:
    """Run the step that the event names, and those that follow; return the ticket for the next one.

    Its ``next`` is the state that follows. An execution that began before an upgrade keeps a
    definition that may lack ``goesOn``: it chooses by the ticket (docs/adr/0033). The state
    machine distinguishes errors by class name. A refusal carries its code in the message, since
    nothing else of an exception reaches the machine.
    """
    ticket = decode_ticket(event["ticket"], execution=event["execution"])
    logger.append_keys(job_id=ticket.job_id, execution=ticket.execution)
    told = {name: partial(_told, name, step) for name, step in steps.items()}
    goes_on = event.get("goesOn", False)
    try:
        with retrying_if_twin_won(ticket):
            after, following = run_call(ports, event["step"], ticket, told, goes_on=goes_on)
            after = share_workers(ports, after)
    except (JobRefusedError, InvalidInputError) as error:
        logger.warning("step refused the job", code=error.code, reason=error.message)
        raise JobRefusedError(refusal_text(error.code, error.message), code=error.code) from error
    except NeedsOperatorError as error:  # the remedy depends on the code, not on the class
        logger.error("step needs an operator", code=error.code, reason=error.message)
        raise type(error)(refusal_text(error.code, error.message), code=error.code) from error
    return encode_ticket(after) | {"next": following}


def _told(name: str, step: Step, ports: Ports, ticket: Ticket) -> Ticket:
    """The step, which says in the log that it is done."""
    logger.append_keys(step=name)
    after = step(ports, ticket)
    said: dict[str, Any] = {env.PAUSE: after.pause}
    logger.info(env.DONE_MESSAGE, state=after.state, generation=after.generation, **said)
    return after
