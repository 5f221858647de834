"""Running one named step of the sweep's state machine: what the call before left in, out again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from s3commit.aws.telemetry import logger
from s3commit.core.protocol.pipeline import Pipeline
from s3commit.core.protocol.sweep import DAY, HOUR, Limits, Step, Sweep
from s3commit.core.protocol.sweep_report import Report, decode_report, encode_report
from s3commit.core.survey import Executions, Survey


@dataclass(frozen=True, slots=True)
class Sweeper:
    """The ports that a sweep works on."""

    pipeline: Pipeline
    survey: Survey
    executions: Executions


def run_sweep_step(
    sweeper: Sweeper, steps: Mapping[str, Step], event: dict[str, Any]
) -> dict[str, Any]:
    """One call of the step that the event names, from where the call before it stopped.

    A cursor is of one step: the step that follows one which failed begins at its own beginning.
    """
    name, before = event["step"], event["sweep"]
    report = read_report(event)
    sweep = Sweep(
        event["bucket"],
        sweeper.pipeline,
        sweeper.survey,
        sweeper.executions,
        read_limits(event["limits"]),
        report,
    )
    cursor = steps[name](sweep, before["cursor"] if before.get("step") == name else "")
    logger.info("sweep step", step=name, looked=report.looked, more=bool(cursor))
    return {
        "step": name,
        "cursor": cursor,
        "more": bool(cursor),
        "broken": is_broken(before),
        "report": encode_report(report),
    }


def is_broken(before: Mapping[str, Any]) -> bool:
    """Whether a step of this sweep has failed for good, this one or an earlier one."""
    return bool(before.get("broken")) or "error" in before


def read_report(event: Mapping[str, Any]) -> Report:
    """What the calls before have done."""
    return decode_report(event["sweep"].get("report", {}))


def read_limits(value: Mapping[str, int]) -> Limits:
    """The deployment's limits, as its parameters name them."""
    return Limits(
        abandoned=value["abandonedHours"] * HOUR,
        stuck=value["stuckMinutes"] * 60,
        orphaned=value["orphanedDays"] * DAY,
        retention=value["retentionDays"] * DAY,
    )
