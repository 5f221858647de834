"""The scheduled sweep: it finds the jobs that no event leads to."""

from __future__ import annotations

import os
from typing import Any

from s3commit.aws import env
from s3commit.aws.settings import data_bucket
from s3commit.aws.telemetry import count, logger
from s3commit.aws.wiring import make_sweeper
from s3commit.core.lost_ledger import heal
from s3commit.core.model.errors import TransientError
from s3commit.core.sweep.actions import encode_report
from s3commit.core.sweep.questions import run_sweep
from s3commit.core.sweep.sweep import DAY, HOUR, Limits, Sweep

sweeper = make_sweeper()
bucket = data_bucket(os.environ)


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Sweep once, with the limits that the schedule sends; the answer is the report."""
    limits = Limits(
        stuck=event["stuckMinutes"] * 60,
        abandoned=event["abandonedHours"] * HOUR,
        retention=event["retentionDays"] * DAY,
    )
    heal(sweeper.ports, bucket)  # in an empty ledger there is nothing to be found before
    report = run_sweep(Sweep(sweeper.ports, sweeper.executions, limits))
    document = encode_report(report)
    logger.info("swept", **document)
    count(env.JOBS_ABANDONED, report.aborted)
    count(env.JOBS_RESUMED, report.started)
    count(env.SWEEP_FAILURES, report.failed)
    if report.broken:
        raise TransientError("the sweep could not read what it goes by; the log says what")
    return document
