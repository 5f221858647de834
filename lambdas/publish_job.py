"""All files are visible: no way back, then the manifest, the marker and the result."""

from __future__ import annotations

from typing import Any

from s3commit.aws import env
from s3commit.aws.steps import run_step
from s3commit.aws.telemetry import count, logger
from s3commit.aws.wiring import make_ports
from s3commit.core.commit.begin_publish import begin_publish
from s3commit.core.commit.publish_success import publish_success
from s3commit.core.model.states import JobState

ports = make_ports()

STEPS = {"BeginPublish": begin_publish, "PublishSuccess": publish_success}


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Run the step that the state machine names."""
    ticket = run_step(ports, STEPS, event)
    if ticket["state"] == JobState.COMMITTED:
        count(env.JOBS_COMMITTED)
        count(env.BYTES_COMMITTED, ticket["bytes"])
    return ticket
