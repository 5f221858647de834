"""What a deployment does beyond one machine: ``python -m bench.model``, and docs/scale.md.

Nothing of it was run on AWS. `bench.limits` has AWS's numbers and the measured ones, `docs.costs`
the prices, `bench.crowd` what happens when functions run out; the deployment's own numbers are the
code's. A job's steps run one after the other; each takes as long as its requests or its processor.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from typing import Final

from bench import limits
from bench.crowd import Crowd
from docs import costs
from s3commit.aws.env import DEFAULT, MOST_WORKERS, Shares, shares
from s3commit.core.documents.plan import unit_limits
from s3commit.core.jobs.listings import PAGE, RANGES
from s3commit.core.model.limits import COMPLETE_WORKERS, FEW_FILES, MAX_JOB_FILES, UNITS_OF_A_JOB

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
JOBS: Final = (1, 10, 100, 1_000)
AT_ONCE: Final = 10_000  # files of each of several jobs


@dataclass(frozen=True, slots=True)
class Way:
    """Of a job until its result is there; what comes before its request or after it delays none.

    ``requests`` wait for each other, without those for its files, manifests and pages; those that
    are ``beside`` are made at the same time as others: see `together` in the steps. ``pages`` is
    how often a page of the plan is put, listed, or read before the decision.
    """

    transitions: int
    requests: int
    beside: int
    pages: int


SMALL: Final = Way(4, 6, 5, costs.PAGE_WRITES)  # up to `FEW_FILES`, appended
OTHER: Final = Way(12, 10, 7, costs.PAGE_WRITES + 1)


@dataclass(frozen=True, slots=True)
class Deployment:
    """The numbers that a deployment has chosen, and the functions that its account may run."""

    shares: Shares = field(default_factory=partial(shares, DEFAULT))
    of_one: int = MOST_WORKERS
    in_flight: int = COMPLETE_WORKERS
    account: int = int(limits.ACCOUNT)
    latency: float = limits.LATENCY  # not chosen: S3's

    @property
    def room(self) -> int:
        """Functions at once that the two queues leave to units and steps."""
        return self.account - self.shares.requests - self.shares.manifests

    @property
    def workers(self) -> int:
        """Of a job that is alone."""
        return min(self.of_one, self.shares.workers)

    def wanted(self, jobs: int) -> int:
        """Workers of so many jobs at once: each has one at least."""
        return min(jobs * self.workers, max(jobs, self.shares.workers), self.room)

    def units(self, files: int) -> tuple[int, int]:
        """How many, and the files of each."""
        size, _ = unit_limits(files)
        return ceil(files / size), min(size, files)

    def unit(self, files: int) -> float:
        """Seconds of a call that completes so many files."""
        busy = files * limits.COMPLETION + limits.REQUEST
        waiting = ceil(files / self.in_flight) * self.latency
        share = costs.ONE_MB / limits.WHOLE
        return max(busy / share, waiting) + self.latency + 3 * limits.ITEM

    def verify(self, files: int) -> float:
        """Seconds to read all manifests and to list all uploads, in ranges of 3/4 of a page.

        And to put the pages of the plan, to read them and to list what lies at their names.
        """
        reads, pages = files / costs.FILES_PER_TASK, files / PAGE * 4 / 3
        own = costs.pages(files) * self.way(files).pages
        busy = (reads + own) * limits.REQUEST + pages * (limits.LISTED + limits.VERIFIED)
        return max(busy, self.side_by_side(reads) + self.side_by_side(own + pages))

    def side_by_side(self, requests: float) -> float:
        """Seconds of so many requests, of which `RANGES` are under way."""
        return ceil(requests / RANGES) * self.latency

    def publish(self, files: int) -> float:
        """Seconds to read the pages again and to write the commit manifest."""
        reads = costs.pages(files)
        busy = reads * limits.REQUEST + files / 1_000 * limits.PUBLISHED
        return max(busy, self.side_by_side(reads))

    @staticmethod
    def way(files: int) -> Way:
        """How a job of so many files, which it appends without a key, gets to its result."""
        return SMALL if files <= FEW_FILES else OTHER

    def requests(self, files: int) -> float:
        """Seconds of the requests that every job makes until its result, one after the other."""
        requests = self.way(files).requests
        return requests * self.latency + costs.JOB_RECORD_WRITES * limits.ITEM

    def complete(self, files: int) -> float:
        """Seconds of the Map of a job that has Lambda and the prefix to itself."""
        units, size = self.units(files)
        waves = ceil(units / self.workers)
        beside = limits.TRANSITION if units <= UNITS_OF_A_JOB else limits.CHILD
        return max(waves * (self.unit(size) + beside), files / limits.S3_WRITES)

    def parts(self, files: int) -> dict[str, float]:
        """Seconds of what a job does from its request to its result, warm."""
        map_run = limits.MAP_RUN if self.units(files)[0] > UNITS_OF_A_JOB else 0.0
        moves = self.way(files).transitions * limits.TRANSITION + map_run
        return {
            "S3's event": limits.EVENT,
            "waiting between steps": moves,
            "requests of the steps": self.requests(files),
            "VerifyManifests": self.verify(files),
            "workers of the job": self.complete(files),
            "publishing": self.publish(files),
        }

    def job(self, files: int) -> float:
        """Seconds from request to result, warm."""
        return sum(self.parts(files).values())

    def price(self, files: int) -> tuple[float, float]:
        """USD of a job, and of that what is not its files' requests."""
        steps = self.requests(files) + self.verify(files) + self.publish(files)
        units, size = self.units(files)
        lines = costs.job(files, units=units, unit=self.unit(size), steps=steps)
        return sum(one.cost for one in lines), sum(one.cost for one in lines[1:])

    def at_once(self, jobs: int, files: int, prefixes: int) -> dict[str, float]:
        """Seconds that each limit alone takes to let so many jobs complete."""
        units, size = self.units(files)
        start = max(limits.START / self.shares.requests, 1 / limits.STARTED)
        return {
            "workers of the job": self.complete(files),
            "S3 writes below a prefix": jobs * files / limits.S3_WRITES / prefixes,
            "concurrent functions": jobs * units * self.unit(size) / self.wanted(jobs),
            "start of executions": jobs * start,
            "state transitions": jobs * costs.JOB_TRANSITIONS / limits.TRANSITIONS,
            "open Map Runs": ceil(jobs / limits.MAP_RUNS) * self.complete(files),
        }

    def crowd(self, jobs: int, files: int, prefixes: int) -> Crowd:
        """Their Maps side by side; a unit takes longer where S3's limit holds it up."""
        units, size = self.units(files)
        call = max(self.unit(size), self.wanted(jobs) * size / limits.S3_WRITES / prefixes)
        spread = self.at_once(jobs, files, prefixes)["start of executions"]
        # A file of a unit that is done takes two requests: its upload is gone, its object is there.
        done = self.unit(size) + ceil(size / self.in_flight) * self.latency
        crowd = Crowd(self.room, self.shares.workers, self.of_one, call, done)
        return crowd.run(jobs, units, spread=spread)


def sizes(full: Deployment) -> str:
    """One job of each size; the largest as so many jobs at once, below one prefix."""
    rows = []
    for files in SIZES:
        jobs, one = ceil(files / MAX_JOB_FILES), min(files, MAX_JOB_FILES)
        at_once = full.at_once(jobs, one, 1)
        parts = full.parts(one)
        if jobs > 1:
            parts[max(at_once, key=at_once.__getitem__)] = max(at_once.values())
            del parts["workers of the job"]
        price, own = (f"{jobs * part:.2f}" for part in full.price(one))
        binds = max(parts, key=parts.__getitem__)
        name = f"{files:,}" if jobs == 1 else f"{files:,} in {jobs} jobs"
        times = max(at_once.values()), sum(parts.values())
        rows.append((name, *map(_time, times), binds, price, own))
    return _table("files|completions|result after|most of it|USD|ours", rows)


def crowds(full: Deployment) -> str:
    """Several jobs, all below one prefix or each below its own."""
    rows = []
    for jobs, prefixes in sorted({(one, below) for one in JOBS for below in (1, one)}):
        limited = full.at_once(jobs, AT_ONCE, prefixes)
        binds = max(limited, key=limited.__getitem__)
        crowd = full.crowd(jobs, AT_ONCE, prefixes)
        rest = full.job(AT_ONCE) - full.complete(AT_ONCE)
        again = crowd.again * full.units(AT_ONCE)[0] * costs.TRANSITION  # all children are
        rows.append(
            (
                f"{jobs:,}",
                f"{prefixes:,}",
                _time(rest + max(crowd.seconds, limited[binds])),
                f"{jobs * AT_ONCE / limited[binds]:,.0f}",
                binds,
                f"{crowd.throttled / crowd.calls:.0%}",
                f"{jobs * full.price(AT_ONCE)[0] + again:.2f}",
            )
        )
    heads = "jobs|prefixes|last result|files a second|what binds|throttled|USD"
    return _table(heads, rows)


def choices() -> str:
    """What each number changes that a deployer sets, and the latency of S3."""
    full = Deployment()
    few = shares(10)
    changed = {
        "as deployed": full,
        "`maxConcurrency` 10": replace(full, of_one=10),
        "`lambdaConcurrency` 10, of an account with 10": replace(full, shares=few, account=10),
        "`lambdaConcurrency` 2,000, of one with 4,000": replace(
            full, shares=shares(2_000), account=4_000
        ),
        "S3 takes 0.1 s": replace(full, latency=0.1),
        "S3 takes 0.2 s": replace(full, latency=0.2),
    }
    rows = []
    for name, one in changed.items():
        times = (_time(one.job(files)) for files in (100, 10_000, MAX_JOB_FILES))
        rate = one.workers * one.in_flight / one.latency
        full_speed = f"{one.shares.workers // one.workers}"
        rows.append((name, *times, f"{rate:,.0f}", full_speed))
    heads = "|100 files|10,000|1,000,000|files a second, at most|jobs at full speed"
    return _table(heads, rows)


def facts(known: Iterable[limits.Fact]) -> str:
    """Numbers with their sources."""
    return _table("what|number|source", [(one.what, f"{one:,g}", one.source) for one in known])


def assumed() -> str:
    """Those of docs/scale.md that are neither published nor measured, as a sentence."""
    told = (f"{one.what}: {one:g}" for one in limits.ALL if one.source.startswith("assumed"))
    return "; ".join(told)


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3600:.0f} h"


def _table(heads: str, rows: Iterable[tuple[str, ...]]) -> str:
    cells = heads.split("|")
    lines = [cells, ["---"] * len(cells), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def tables() -> list[str]:
    """Those of docs/scale.md, in its order, but the last with all numbers."""
    full = Deployment()
    return [sizes(full), crowds(full), choices(), facts(limits.ALL)]


if __name__ == "__main__":
    sys.stdout.write("\n".join(tables()))
