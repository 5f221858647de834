"""A worker: complete the uploads of one unit and say how many files are visible."""

from dataclasses import asdict
from typing import Any

from s3commit.aws import env
from s3commit.aws.telemetry import count, logger
from s3commit.aws.wiring import make_ports
from s3commit.core.commit.complete_unit import complete_unit
from s3commit.core.documents.pages import UNIT
from s3commit.core.documents.ticket import UNIT_RESULT, decode_ticket
from s3commit.core.model.limits import COMPLETE_WORKERS

# Many of these run side by side, below one prefix.
ports = make_ports(workers=COMPLETE_WORKERS, slows_down=True)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Complete ``event["unit"]``, or the ticket's only one, and return the result or the ticket."""
    ticket = decode_ticket(event["ticket"])
    logger.append_keys(job_id=ticket.job_id)
    unit = UNIT.read(event["unit"]) if "unit" in event else ticket.few[0]
    result = complete_unit(ports, ticket, unit)
    logger.info("unit done", **asdict(result))
    count(env.FILES_COMPLETED, result.files)
    said = UNIT_RESULT.write(result)
    return said if "unit" in event else event["ticket"] | {"completed": [said]}
