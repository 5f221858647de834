"""Running one named step of the sweep's state machine: as far as its turn goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from s3commit.aws.telemetry import logger
from s3commit.core.ports.bundle import Sweeper
from s3commit.core.sweep.report import Report, decode_report, encode_report
from s3commit.core.sweep.sweep import DAY, HOUR, Limits, Step, Sweep
from s3commit.core.sweep.turns import Sitting, SweepTurn, call_step


def run_sweep_step(
    sweeper: Sweeper, steps: Mapping[str, Step], event: dict[str, Any]
) -> dict[str, Any]:
    """One call of the step that the event names, from where the ledger says that it has come to.

    Nothing is done while another sweep is at work.
    """
    name, before = event["step"], event["sweep"]
    report = read_report(event)

    def make(turn: SweepTurn) -> Sweep:
        return Sweep(
            event["bucket"],
            sweeper.ports,
            sweeper.executions,
            read_limits(event["limits"]),
            report,
            began=turn.began,
            before=turn.before,
            put_off=dict(turn.put_off),
        )

    first = before.get("step") != name
    more = call_step(sitting_of(sweeper, event), make, name, steps[name], first=first)
    logger.info("sweep step", step=name, looked=report.looked, more=more)
    return {
        "step": name,
        "more": more,
        "broken": is_broken(before),
        "report": encode_report(report),
    }


def sitting_of(sweeper: Sweeper, event: Mapping[str, Any]) -> Sitting:
    """The hold of the sweep's execution on the ledger's note."""
    ports = sweeper.ports
    return Sitting(ports.ledger, event["execution"], ports.clock.now())


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
