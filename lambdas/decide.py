"""From the sealed request to the decision: five named steps of the state machine."""

from dataclasses import replace
from functools import cache, partial
from typing import Any

from s3commit.aws.clients import make_client
from s3commit.aws.executions import runs_beside
from s3commit.aws.s3_requests import check_deletes
from s3commit.aws.settings import replace_below, workers
from s3commit.aws.steps import run_step
from s3commit.aws.telemetry import logger
from s3commit.aws.wiring import make_ports, owning
from s3commit.core.commit.acquire_destination import acquire_destination
from s3commit.core.commit.check_conditions import check_conditions
from s3commit.core.commit.decide_commit import decide_commit
from s3commit.core.commit.seal_job import seal_job
from s3commit.core.commit.verify_manifests import verify_manifests

client = make_client()
ports = replace(
    owning(make_ports(client), claims=True),
    replace_below=replace_below(),
    workers=workers(),
    check_deletes=cache(partial(check_deletes, client)),
)

STEPS = {
    "SealJob": seal_job,
    "VerifyManifests": verify_manifests,
    "AcquireDestination": acquire_destination,
    "CheckConditions": check_conditions,
    "DecideCommit": decide_commit,
}


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Run the step that the state machine names."""
    runs = partial(runs_beside, event["execution"])
    return run_step(replace(ports, runs=runs), STEPS, event)
