"""All probes, one after the other, and the end of them: everything that was made goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from s3commit.aws.failures import translated
from s3commit.cli.probe import abort_race, conditions, listings, machines, pipeline, tables, uploads
from s3commit.cli.probe.model import BAD, Cost, Probe, Report, Row, Verdict, judge
from s3commit.cli.probe.target import Target
from s3commit.cli.text import one_line
from s3commit.core.model.errors import S3CommitError

PROBES: tuple[Probe, ...] = (
    *conditions.PROBES,
    *uploads.PROBES,
    *abort_race.PROBES,
    *listings.PROBES,
    *tables.PROBES,
    *machines.PROBES,
    *pipeline.PROBES,
)
LISTINGS = 20  # of what is to be deleted, and of what is left


def lacking_in(target: Target) -> dict[str, str]:
    """Why each probe can't be run there, by its name; nothing for those that can."""
    return {probe.name: probe.lacks(target) for probe in PROBES}


def cost_of(target: Target, lacking: dict[str, str]) -> Cost:
    """What the probes that can be run take at most, with the listings and deletes of the end."""
    run = [probe for probe in PROBES if not lacking[probe.name]]
    made = reduce(
        Cost.__add__, [probe.cost + probe.each_round * target.rounds for probe in run], Cost()
    )
    return made + Cost(requests=LISTINGS, deletes=made.requests // 2)


def run_probes(
    target: Target,
    lacking: dict[str, str],
    told: Callable[[Probe], None],
) -> list[Report]:
    """Run each; ``told`` hears of each before. Cleaning up is the caller's."""
    reports = []
    for probe in PROBES:
        if lacking[probe.name]:
            reports.append(_unprobed(probe, lacking[probe.name], Verdict.NOT_PROBED))
        else:
            told(probe)
            reports.append(_probed(probe, target))
    return reports


def bad(reports: Iterable[Report]) -> str:
    """The probes with cases on which correctness can't rest here; empty if there are none."""
    told = []
    for verdict in BAD:
        found = [each for each in reports if verdict in {row.verdict for row in each.rows}]
        if found:
            told.append(f"{verdict}: {', '.join(each.probe.name for each in found)}")
    return "; ".join(told)


def _probed(probe: Probe, target: Target) -> Report:
    """What was seen of every case. An error ends the probe, and the cases before it count."""
    rows: list[Row] = []
    why = "it was not looked at"
    try:
        with translated(probe.name):
            rows.extend(judge(probe.cases[seen.case], seen) for seen in probe.run(target))
    except S3CommitError as error:
        why = error.message
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
    missing = _unprobed(probe, one_line(why), Verdict.FAILED, {row.case for row in rows})
    return Report(probe, (*rows, *missing.rows))


def _unprobed(probe: Probe, why: str, verdict: Verdict, without: Iterable[str] = ()) -> Report:
    left = [name for name in probe.cases if name not in without]
    return Report(
        probe, tuple(Row(name, probe.cases[name].expected, why, verdict) for name in left)
    )
