"""The sweep: what one call of it has at hand, and the moves that its steps share.

Every step goes over any number of jobs, uploads or objects in a row of bounded calls: it takes the
cursor of the call before and gives back the next one, empty when it is through. All effects are
conditional or repeatable, so two sweeps at once, or one that dies anywhere, do no harm.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from s3commit.core.documents import encode_request
from s3commit.core.errors import PreconditionError, S3CommitError
from s3commit.core.layout import JobDirectory
from s3commit.core.ledger import LostRaceError
from s3commit.core.model import AbortRequest, JobRecord
from s3commit.core.protocol.pipeline import Pipeline, takeovers
from s3commit.core.protocol.sweep_report import Report
from s3commit.core.survey import Executions, SeenObject, Survey

HOUR: Final = 3600
DAY: Final = 24 * HOUR
CALL_SECONDS: Final = 600  # a call hands over to the next one after that; Lambda gives 900
CALL_ITEMS: Final = 20_000  # short calls must not fill the history: 25,000 events, 7 a call
ASKED_AT_ONCE: Final = 1_000  # uploads asked for their parts before a call looks at the time
FAILED: Final = "failed: "  # how the note of a failure begins
LONGEST_PAUSE: Final = DAY  # between two executions of a job that fails again and again


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
    """

    bucket: str
    pipeline: Pipeline
    survey: Survey
    executions: Executions
    limits: Limits = field(default_factory=Limits)
    report: Report = field(default_factory=Report)
    dry_run: bool = False
    told: set[str] = field(default_factory=set)
    call_items: int = CALL_ITEMS
    asked_at_once: int = ASKED_AT_ONCE
    now: str = ""
    _items: int = 0

    def __post_init__(self) -> None:
        self.now = self.now or self.pipeline.clock.now()

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
        if self._items >= self.call_items:
            return True
        return self.pipeline.clock.now() > shifted(self.now, CALL_SECONDS)

    def says(self, place: JobDirectory) -> bool:
        """Whether this is a dry run that has told of the job before; then it has now."""
        if not self.dry_run or place.uri in self.told:
            return self.dry_run
        self.told.add(place.uri)
        return False

    @contextmanager
    def each(self, what: str) -> Iterator[None]:
        """One thing's failure does not keep the sweep from the next: the next sweep tries again."""
        try:
            yield
        except (LostRaceError, PreconditionError):
            return  # somebody was faster, which is all that was wanted
        except S3CommitError as error:
            self.report.failed += 1
            self.report.note_failure(f"{FAILED}{what}: {error.message}")


Step = Callable[[Sweep, str], str]


def shifted(moment: str, seconds: float) -> str:
    """A moment so many seconds later, in the form of all times here."""
    later = datetime.fromisoformat(moment) + timedelta(seconds=seconds)
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_between(earlier: str, later: str) -> int:
    """Whole seconds."""
    return int((datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds())


def seen(sweep: Sweep, bucket: str, key: str) -> SeenObject | None:
    """The object, with its time; None if there is none. By listing: a HEAD takes more rights."""
    first = next(iter(sweep.survey.objects(bucket, key)), None)
    return first if first is not None and first.key == key else None


def go_on(sweep: Sweep, place: JobDirectory, record: JobRecord | None, since: str) -> None:
    """Start an execution for a job on which nobody works since ``since``, unless it is too soon.

    The pause doubles with each execution that took the job over, and while nothing comes of one,
    up to a day. The name counts the tries: two sweeps that see the same start one execution, and
    one that died at once, whose name is taken for 90 days, does not stand in the next one's way.
    """
    held = record if record is not None and record.directory == place.prefix else None
    stuck = max(1, sweep.limits.stuck)
    longest = max(stuck, LONGEST_PAUSE)
    before = min(max(0, takeovers(held) - 1), 16) if held else 0
    silent = seconds_between(since, sweep.now)
    tries = tries_due(silent, min(stuck << before, longest), longest)
    if not tries or sweep.executions.is_running((held and held.execution) or place.job_id):
        return
    who = held.generation if held else hashlib.sha256(place.uri.encode()).hexdigest()[:16]
    name = f"{place.job_id}-{who}-{tries}"
    if sweep.says(place):
        return
    if sweep.dry_run or sweep.executions.start(name, place):
        sweep.report.started += 1
        state = held.state if held else "a request that nobody has heard"
        sweep.report.note(
            f"job {place.job_id} at {place.destination.uri}: {state}, silent for"
            f" {spelled(silent)} and no execution runs; goes on as {name}"
        )


def tries_due(silent: int, pause: int, longest: int) -> int:
    """How many executions should have begun in so many seconds of silence.

    The first one after ``pause``, each further one after twice the time, at most ``longest``.
    """
    tries = 0
    while silent >= pause:
        tries, silent, pause = tries + 1, silent - pause, min(2 * pause, longest)
    return tries


def ask_to_abort(sweep: Sweep, place: JobDirectory, last: str) -> None:
    """Speak the driver's last word for it; a driver that wakes finds its place taken.

    ``last`` is when there was a sign of life.
    """
    silent = spelled(seconds_between(last, sweep.now))
    reason = (
        f"abandoned: no sign of life since {last}, for {silent}, and the sweep gave the job up;"
        " run it again. If it was alive and writes so seldom, raise abandonedHours first: it is"
        f" {spelled(sweep.limits.abandoned)} now"
    )
    if sweep.says(place):
        return
    if not sweep.dry_run:
        body = encode_request(AbortRequest(place.job_id, reason, abandoned=True))
        sweep.pipeline.store.put(place.bucket, place.request, body, if_absent=True)
    sweep.report.asked += 1
    sweep.report.note(
        f"job {place.job_id} at {place.destination.uri}: abandoned, no sign of life since {last};"
        " its abort is asked for"
    )


def spelled(seconds: int) -> str:
    """A duration for people, in its largest whole unit up to hours."""
    for unit, name in ((HOUR, "hour"), (60, "minute")):
        if seconds >= unit:
            return f"{seconds // unit} {name}{'s' * (seconds // unit != 1)}"
    return f"{seconds} second{'s' * (seconds != 1)}"
