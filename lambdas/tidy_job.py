"""The job has ended: abort what its losers left open, delete its working objects."""

from __future__ import annotations

from typing import Any

from s3commit.aws.steps import run_step
from s3commit.aws.telemetry import logger
from s3commit.aws.wiring import make_ports
from s3commit.core.commit.tidy_up import tidy_up

ports = make_ports()

STEPS = {"TidyUp": tidy_up}


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Run the step that the state machine names."""
    return run_step(ports, STEPS, event)
