"""The sweep: what one call of it has at hand, and the moves that its steps share.

Every step goes over any number of jobs, uploads or objects in a row of bounded calls: it takes the
cursor of the call before and gives back the next one, empty when it is through. What would cost too
much there and then is put off, and has its turn when all others have had theirs (`sweep_turns`).
All effects are conditional or repeatable, so two sweeps at once, or one that dies anywhere, do no
harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from s3commit.core.formats.documents import encode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.job.record import takeovers
from s3commit.core.model.errors import PreconditionError, S3CommitError
from s3commit.core.model.job import AbortRequest
from s3commit.core.model.limits import CALL_SECONDS
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.executions import Executions
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.sweep.cost import CALL_REQUESTS, THING_REQUESTS, Cost, CostlyError, metered
from s3commit.core.sweep.report import Report

HOUR: Final = 3600
DAY: Final = 24 * HOUR
THING_ENDS: Final = 800  # what is looked at then is left alone: seconds after a call began
CALL_ITEMS: Final = 50_000
ASKED_AT_ONCE: Final = 1_000  # uploads asked for their parts before a call looks at the time
FAILED: Final = "failed: "  # how the note of a failure begins
LONGEST_PAUSE: Final = DAY  # between two executions of a job that fails again and again
MOST_PUT_OFF: Final = 20  # of one step: they travel with its cursor


@dataclass(frozen=True, slots=True)
class Limits:
    """When something counts as left behind, in seconds; docs/operations.md says what each means."""

    abandoned: int = DAY
    stuck: int = 15 * 60
    orphaned: int = 7 * DAY
    retention: int = 30 * DAY


@dataclass(slots=True)
class Sweep:
    """One call of one step.

    With ``dry_run`` nothing is changed, and the report says what would be; ``told`` are the jobs
    that it says so of already, since more than one step may come across them.

    ``before`` and ``began`` are when the step's walk before this one, and this one, began (empty:
    nobody knows). ``put_off`` is what waits for its turn, by name, with the cursor from which it is
    gone on with; a call with ``alone`` goes on with that one thing.
    """

    bucket: str
    ports: Ports
    executions: Executions
    limits: Limits = field(default_factory=Limits)
    report: Report = field(default_factory=Report)
    dry_run: bool = False
    told: set[str] = field(default_factory=set)
    call_items: int = CALL_ITEMS
    asked_at_once: int = ASKED_AT_ONCE
    before: str = ""
    began: str = ""
    put_off: dict[str, str] = field(default_factory=dict)
    alone: bool = False
    now: str = ""
    cost: Cost = field(default_factory=Cost)
    _items: int = 0

    def __post_init__(self) -> None:
        self.now = self.now or self.ports.clock.now()
        self.cost.too_late = lambda: self._is_past(THING_ENDS)
        self.ports = replace(self.ports, store=metered(self.ports.store, self.cost))

    def ago(self, seconds: int) -> str:
        """The moment so long before this call began."""
        return shifted(self.now, -seconds)

    def took(self, items: int = 1) -> None:
        """Count what was looked at."""
        self._items += items
        self.report.looked += items

    @property
    def spent(self) -> bool:
        """Whether this call has done enough."""
        if self._items >= self.call_items or self.cost.used >= CALL_REQUESTS:
            return True
        return self._is_past(CALL_SECONDS)

    def _is_past(self, seconds: int) -> bool:
        return self.ports.clock.now() > shifted(self.now, seconds)

    def postpone(self, name: str, cursor: str) -> None:
        """Put the rest of a thing off to the end of the pass; without room, to the next walk."""
        self.report.postponed += not self.alone
        if name in self.put_off or self.alone or len(self.put_off) < MOST_PUT_OFF:
            self.put_off[name] = cursor

    def is_due(self, since: str, pause: int, longest: int) -> bool:
        """Whether what has not changed since then is to be looked at in this walk again.

        The pause before the first look doubles with each one, up to the longest.
        """
        if not self.before:
            return True
        looks, had = (
            tries_due(seconds_between(since, moment), pause, longest)
            for moment in (self.began, self.before)
        )
        return looks > had

    def says(self, directory: JobDirectory) -> bool:
        """Whether this is a dry run that has told of the job before; then it has now."""
        if not self.dry_run or directory.uri in self.told:
            return self.dry_run
        self.told.add(directory.uri)
        return False

    @contextmanager
    def each(self, what: str, key: str, *, cursor: str = "") -> Iterator[None]:
        """One thing's failure does not keep the sweep from the next: the next sweep tries again.

        Nor does its cost, which is that of the directories above ``key``; what was aborted costs
        nothing, since it is aborted once. What costs too much is put off, if there is a cursor for
        it; when its turn comes it may cost as much as a call.
        """
        aborted = self.report.uploads
        before = self.cost.begin((CALL_REQUESTS if self.alone else 0) + THING_REQUESTS)
        try:
            yield
        except (LostRaceError, PreconditionError):
            return  # somebody was faster, which is all that was wanted
        except CostlyError as error:
            if cursor and not self.alone:
                self.postpone(key, cursor)
            else:
                self.report.postponed += 1
                self.report.note(f"{what}: left alone, {error.message}")
        except S3CommitError as error:
            self.report.failed += 1
            self.report.note_failure(f"{FAILED}{what}: {error.message}")
        finally:
            self.cost.end(before, key, free=2 * (self.report.uploads - aborted))


Step = Callable[[Sweep, str], str]


def shifted(moment: str, seconds: float) -> str:
    """A moment so many seconds later, in the form of all times here."""
    later = datetime.fromisoformat(moment) + timedelta(seconds=seconds)
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_between(earlier: str, later: str) -> int:
    """Whole seconds."""
    return int((datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds())


def restart(sweep: Sweep, directory: JobDirectory, record: JobRecord | None, since: str) -> None:
    """Start an execution for a job on which nobody works since ``since``, unless it is too soon.

    The pause doubles with each execution that took the job over, and while nothing comes of one,
    up to a day. The name counts the tries: two sweeps that see the same start one execution, and
    one that died at once, whose name is taken for 90 days, does not stand in the next one's way.
    """
    stuck = max(1, sweep.limits.stuck)
    longest = max(stuck, LONGEST_PAUSE)
    before = min(max(0, takeovers(record) - 1), 16) if record else 0
    silent = seconds_between(since, sweep.now)
    tries = tries_due(silent, min(stuck << before, longest), longest)
    execution = (record and record.execution) or directory.ref
    if not tries or sweep.executions.describe(execution).is_running:
        return
    name = f"{directory.ref}-{record.generation if record else 0}-{tries}"
    if sweep.says(directory):
        return
    if sweep.dry_run or sweep.executions.start(name, directory):
        sweep.report.started += 1
        state = record.state if record else "a request that nobody has heard"
        sweep.report.note(
            f"job {directory.job_id} at {directory.destination.uri}: {state}, silent for"
            f" {spelled(silent)} and no execution runs; goes on as {name}"
        )


def tries_due(silent: int, pause: int, longest: int) -> int:
    """How many executions should have begun in so many seconds of silence.

    The first one after ``pause``, each further one after twice the time, at most ``longest``; but
    no more than one a second, which limits of 0 would ask for.
    """
    tries, pause, longest = 0, max(1, pause), max(1, longest)
    while silent >= pause:
        tries, silent, pause = tries + 1, silent - pause, min(2 * pause, longest)
    return tries


def abort_abandoned(sweep: Sweep, directory: JobDirectory, last: str) -> None:
    """Speak the driver's last word for it; a driver that wakes finds its place taken.

    ``last`` is when there was a sign of life.
    """
    silent = spelled(seconds_between(last, sweep.now))
    reason = (
        f"abandoned: no sign of life since {last}, for {silent}, and the sweep gave the job up;"
        " run it again. If it was alive and writes so seldom, raise abandonedHours first: it is"
        f" {spelled(sweep.limits.abandoned)} now"
    )
    if sweep.says(directory):
        return
    if not sweep.dry_run:
        body = encode_request(AbortRequest(directory.job_id, reason, abandoned=True))
        sweep.ports.store.put(directory.bucket, directory.request, body, if_absent=True)
    sweep.report.asked += 1
    sweep.report.note(
        f"job {directory.job_id} at {directory.destination.uri}: abandoned, no sign of life since"
        f" {last}; its abort is asked for"
    )


def spelled(seconds: int) -> str:
    """A duration for people, in its largest whole unit up to hours."""
    for unit, name in ((HOUR, "hour"), (60, "minute")):
        if seconds >= unit:
            return f"{seconds // unit} {name}{'s' * (seconds // unit != 1)}"
    return f"{seconds} second{'s' * (seconds != 1)}"
