"""What a run will create, how long it takes and what it costs, said before it begins."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from jinja2 import Template

from acceptance.places import STACKS
from acceptance.run import CHECKS
from docs import costs
from s3commit.core.documents.plan import unit_limits

DEPLOY_MINUTES: Final = 10  # two stacks, assumed
REMOVE_MINUTES: Final = 15  # assumed
SMALL_JOBS: Final = 60  # of the checks, with a few files each
REQUESTS: Final = 5_000  # of the contract suite and the measures
HOURS: Final = 720  # of a month
_PLAN: Final = Template(Path(__file__).with_name("plan.txt.jinja").read_text(), trim_blocks=True)


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


def plan(
    name: str,
    checks: list[str],
    files: int,
    *,
    is_aws: bool,
    region: str,
    where: str,
    account: str = "",
) -> str:
    """The lines that a person reads before the run begins."""
    most = minutes(checks)
    likely, whole = dollars(files, most / 60)
    facts: dict[str, Any] = {"most": most, "likely": likely, "whole": math.ceil(whole)}
    facts |= {"stacks": " and ".join(f"{stack}-{name}" for stack in reversed(STACKS))}
    said = _PLAN.render(
        name=name,
        checks=checks,
        is_aws=is_aws,
        region=region,
        where=where,
        account=account,
        **facts,
    )
    return str(said).rstrip()
