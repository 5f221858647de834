"""All probes, one after the other, and the end of them: everything that was made goes."""

from __future__ import annotations

from collections.abc import Callable

from s3commit.aws.failures import translated
from s3commit.cli.probe import conditions, listings, machines, pipeline, tables, uploads
from s3commit.cli.probe.model import Cost, Probe, Report, Row, Verdict, judge, total
from s3commit.cli.probe.world import World
from s3commit.cli.text import one_line
from s3commit.core.model.errors import S3CommitError

PROBES: tuple[Probe, ...] = (
    *conditions.PROBES,
    *uploads.PROBES,
    *listings.PROBES,
    *tables.PROBES,
    *machines.PROBES,
    *pipeline.PROBES,
)
LISTINGS = 20  # of what is to be deleted, and of what is left


def lacking_in(world: World) -> dict[str, str]:
    """Why each probe can't be run there, by its name; nothing for those that can."""
    return {probe.name: probe.lacks(world) for probe in PROBES}


def cost_of(world: World, lacking: dict[str, str]) -> Cost:
    """What the probes that can be run take at most, with the listings and deletes of the end."""
    made = total(probe.cost_in(world) for probe in PROBES if not lacking[probe.name])
    return total([made, Cost(requests=LISTINGS, deletes=made.requests // 2)])


def run_probes(
    world: World, lacking: dict[str, str], told: Callable[[Probe], None]
) -> list[Report]:
    """Run each; ``told`` hears of each before. Cleaning up is the caller's."""
    reports = []
    for probe in PROBES:
        if why := lacking[probe.name]:
            rows = _unseen(probe, why, Verdict.NOT_PROBED)
        else:
            told(probe)
            rows = _probed(probe, world)
        reports.append(Report(probe, rows))
    return reports


def _probed(probe: Probe, world: World) -> list[Row]:
    """What was seen of every case. An error ends the probe, and the cases before it count."""
    rows: list[Row] = []
    why = "it was not looked at"
    place = world.versioned if probe.versioned else world.place
    try:
        with translated(probe.name):
            # the answers first: what a probe does after its last answer is done too
            for answer, case in zip(probe.run(world, place), probe.cases, strict=False):
                rows.append(judge(case, answer))
    except S3CommitError as error:
        why = error.message
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    return rows + _unseen(probe, one_line(why), Verdict.FAILED, len(rows))


def _unseen(probe: Probe, why: str, verdict: Verdict, seen: int = 0) -> list[Row]:
    """The rows of its cases but the first of them."""
    return [Row(case.name, case.expected, why, verdict) for case in probe.cases[seen:]]
