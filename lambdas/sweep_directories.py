"""The sweep over job directories: working objects of ended jobs, and documents past their time."""

from __future__ import annotations

from typing import Any

from s3commit.aws.sweeping import run_sweep_step
from s3commit.aws.telemetry import logger
from s3commit.aws.wiring import make_sweeper
from s3commit.core.sweep.directories import tidy_job_directories

sweeper = make_sweeper()

STEPS = {"TidyJobDirectories": tidy_job_directories}


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Run the step that the state machine names."""
    return run_sweep_step(sweeper, STEPS, event)
