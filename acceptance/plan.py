"""What a run will create, how long it takes and what it costs, said before it begins."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from acceptance.places import STACKS
from acceptance.run import CHECKS
from docs import costs
from s3commit.core.documents.plan import unit_limits

DEPLOY_MINUTES: Final = 10  # two stacks, assumed
REMOVE_MINUTES: Final = 15  # assumed
SMALL_JOBS: Final = 60  # of the checks, with a few files each
REQUESTS: Final = 5_000  # of the contract suite and the measures
HOURS: Final = 720  # of a month


def minutes(checks: Iterable[str]) -> int:
    """At most, on AWS."""
    return round(DEPLOY_MINUTES + REMOVE_MINUTES + sum(CHECKS[name].minutes for name in checks))


def dollars(files: int, hours: float) -> tuple[float, float]:
    """What the run costs if months are billed by the hour, and at most: if they are billed whole.

    By the prices and counts of docs/costs.py, without free tiers.
    """
    month = sum(line.cost for line in costs.at_rest()) + costs.METRICS * costs.CUSTOM_METRIC
    units = math.ceil(files / unit_limits(files)[0])
    large = costs.job(files, units=units, unit=costs.UNIT_SECONDS, steps=10)
    small = costs.job(3, units=1, unit=1, steps=3)
    work = sum(line.cost for line in large) + SMALL_JOBS * sum(line.cost for line in small)
    work += REQUESTS * costs.S3_WRITE
    return month / HOURS * hours + work, month + work


def plan(name: str, checks: list[str], files: int, *, is_aws: bool, region: str) -> str:
    """The lines that a person reads before the run begins."""
    where = f"AWS, region {region}" if is_aws else "the embedded runtime: no cost, a few minutes"
    again = f"--region {region}" if is_aws else "--endpoint URL"
    command = f'make aws-acceptance ARGS="{again} --clean {name}"'
    stacks = " and ".join(f"{stack}-{name}" for stack in reversed(STACKS))
    lines = [
        f"Acceptance run {name} on {where}.",
        f"It tries {len(checks)} promises of s3commit, writes a report, and removes what it made:",
        f"  - the stacks {stacks}: a bucket, a table, queues,",
        "    functions, a state machine, roles, alarms and a dashboard",
        f"  - the buckets s3commit-{name}-plain and -versions, the table s3commit-{name}-ledger,",
        f"    the role s3commit-{name}-machine and the state machine s3commit-{name}-map",
        "Nothing else is changed. If it is killed, this removes the rest:",
        f"  {command}",
    ]
    if is_aws:
        most = minutes(checks)
        likely, whole = dollars(files, most / 60)
        lines += [
            f"It takes {most} minutes at most. It costs about {likely:.2f} USD, and at most"
            f" {math.ceil(whole)} USD, if alarms, dashboard and metrics are billed by the month.",
            "The account must be prepared for the CDK (make bootstrap). The functions' code, some"
            " megabytes, stays in the CDK's own bucket, as after any deployment.",
        ]
    return "\n".join(lines)
