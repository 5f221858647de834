"""The sweep over the bucket's open uploads: those of jobs that have ended are aborted."""

from __future__ import annotations

from typing import Any

from s3commit.aws.sweeping import run_sweep_step
from s3commit.aws.telemetry import logger
from s3commit.aws.wiring import make_sweeper
from s3commit.core.sweep.uploads import abort_orphaned_uploads

sweeper = make_sweeper()

STEPS = {"AbortOrphanedUploads": abort_orphaned_uploads}


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Run the step that the state machine names."""
    return run_sweep_step(sweeper, STEPS, event)
