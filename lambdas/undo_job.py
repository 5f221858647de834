"""Abort a job before its decision, or roll it back after: none of its files is visible then."""

from __future__ import annotations

from typing import Any

from s3commit.aws import env
from s3commit.aws.steps import run_step
from s3commit.aws.telemetry import count, document_refused, logger
from s3commit.aws.wiring import make_ports
from s3commit.core.commit.abort_job import abort_job
from s3commit.core.commit.roll_back import roll_back
from s3commit.core.model.errors import DOCUMENT_CODES

ports = make_ports()

STEPS = {"AbortJob": abort_job, "RollBack": roll_back}
METRICS = {"AbortJob": env.JOBS_ABORTED, "RollBack": env.JOBS_ROLLED_BACK}


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Run the step that the state machine names."""
    ticket = run_step(ports, STEPS, event)
    if ticket["outcome"]:  # else it comes again: uploads are still being opened
        count(METRICS[event["step"]])
        if ticket["code"] in DOCUMENT_CODES:
            document_refused(ticket["directory"], ticket["code"])
    return ticket
