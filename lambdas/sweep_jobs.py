"""The sweep over the ledger, and its report: jobs nobody writes, and those nobody works on."""

from __future__ import annotations

from typing import Any

from s3commit.aws import env
from s3commit.aws.sweeping import is_broken, read_report, run_sweep_step, sitting_of
from s3commit.aws.telemetry import count, logger
from s3commit.aws.wiring import make_sweeper
from s3commit.core.sweep.jobs import go_on_with_stuck_jobs, look_at_open_jobs
from s3commit.core.sweep.report import encode_report

sweeper = make_sweeper()

STEPS = {"LookAtOpenJobs": look_at_open_jobs, "GoOnWithStuckJobs": go_on_with_stuck_jobs}


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Run the step that the state machine names."""
    if event["step"] == "ReportSweep":
        return _report(event)
    return run_sweep_step(sweeper, STEPS, event)


def _report(event: dict[str, Any]) -> dict[str, Any]:
    """Say what the sweep did, in the log and as metrics."""
    sitting_of(sweeper, event).leave()
    report = read_report(event)
    broken = is_broken(event["sweep"])
    document = encode_report(report)
    logger.info("swept", broken=broken, **document)
    count(env.JOBS_ABANDONED, report.asked)
    count(env.JOBS_RESUMED, report.started)
    count(env.UPLOADS_ABORTED, report.uploads)
    count(env.BYTES_FREED, report.freed_bytes)
    count(env.S3A_BYTES_LEFT, report.s3a_bytes)
    count(env.SWEEP_FAILURES, report.failed)
    return {"broken": broken, "report": document}
