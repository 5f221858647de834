"""Maps of many jobs at once, which may want more functions than Lambda gives: simulated.

A job that begins its Map gets its share of the deployment's workers, by the jobs at work then.
A unit whose call is throttled pauses, and holds its place meanwhile. One that is throttled too
often fails its Map, which stops the other units and begins again; of units that are done each file
is looked at. A job whose Map has begun too often fails, until the sweep resumes it. A small job's
first Map is none of a Map Run, but pauses alike.
"""

from __future__ import annotations

import heapq
import itertools
import random
from dataclasses import dataclass, field
from typing import Any, Final

from bench import limits
from stacks.retries import MAP_RETRIES, UNIT_RETRIES


def _pauses(retry: dict[str, Any]) -> list[float]:
    """The longest pause before each try; with full jitter it is any part of that."""
    growing = (
        retry["IntervalSeconds"] * retry["BackoffRate"] ** tries
        for tries in range(retry["MaxAttempts"])
    )
    return [min(one, retry["MaxDelaySeconds"]) for one in growing]


UNIT_PAUSES: Final = _pauses(UNIT_RETRIES[-1])
MAP_PAUSES: Final = _pauses(MAP_RETRIES[0])
SPREAD: Final = (0.8, 1.2)  # of the time of a call; assumed, so that calls do not keep step


@dataclass(slots=True)
class _Job:
    run: int = 0  # of its Maps; 0 before the first
    workers: int = 1
    next: int = 0
    ended: int = 0
    paused: bool = True
    done: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Crowd:
    """``room`` calls of ``call`` seconds run at once; those for a unit that is done take ``done``.

    All jobs share ``of_all`` workers; each has ``of_one`` at most, and one at least.
    """

    room: int
    of_all: int
    of_one: int
    call: float
    done: float
    at_work: int = 0
    busy: int = 0
    calls: int = 0
    throttled: int = 0
    again: int = 0
    failed: int = 0
    seconds: float = 0.0

    def run(self, jobs: int, units: int, *, spread: float) -> Crowd:
        """Let so many jobs, which come within ``spread`` seconds, complete so many units each."""
        chance, number = random.Random(1), itertools.count()
        events: list[tuple[float, int, _Job, int, int, int]] = []

        def at(time: float, job: _Job, unit: int, tries: int) -> None:
            heapq.heappush(events, (time, next(number), job, job.run, unit, tries))

        def go_on(time: float, job: _Job, children: int = 1) -> None:
            for _ in range(min(children, units - job.next)):
                at(time + chance.uniform(0, 2 * limits.CHILD), job, job.next, 0)
                job.next += 1

        for _ in range(jobs):
            at(chance.uniform(0, spread), _Job(), -1, 0)
        while events:
            time, _, job, run, unit, tries = heapq.heappop(events)
            if unit < 0:  # its Map begins
                if not job.run:
                    self.at_work += 1
                    job.workers = max(1, min(self.of_one, self.of_all // self.at_work))
                job.run, job.next, job.ended, job.paused = job.run + 1, 0, 0, False
                go_on(time, job, job.workers)
            elif tries < 0:  # a call returns, also one whose child was stopped
                self.busy -= 1
                job.done.add(unit)
                if run == job.run and not job.paused:
                    job.ended += 1
                    self.at_work -= job.ended == units
                    go_on(time, job)
                    self.seconds = max(self.seconds, time)
            elif run != job.run or job.paused:
                continue
            elif self.busy < self.room:
                self.calls, self.busy = self.calls + 1, self.busy + 1
                call = self.done if unit in job.done else self.call * chance.uniform(*SPREAD)
                at(time + call, job, unit, -1)
            elif tries < len(UNIT_PAUSES):
                self.calls, self.throttled = self.calls + 1, self.throttled + 1
                at(time + chance.uniform(0, UNIT_PAUSES[tries]), job, unit, tries + 1)
            else:
                self.calls, self.throttled = self.calls + 1, self.throttled + 1
                job.paused = True
                if job.run > len(MAP_PAUSES):
                    self.failed += 1
                    self.at_work -= 1
                    continue
                self.again += 1
                at(time + chance.uniform(0, MAP_PAUSES[job.run - 1]), job, -1, 0)
        return self
