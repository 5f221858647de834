"""Schedules: ``rate()``, ``cron()`` and ``at()``, and the ticker that fires what is due.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from s3commit.local.errors import UnsupportedTemplateError

_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]  # 1 to 7 in AWS's cron
_HORIZON = timedelta(days=366 * 5)


class Clock(Protocol):
    """Time comes in from outside."""

    def now(self) -> datetime:
        """The present, in UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The present, in UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Rate:
    """Every so often, from the moment the rule was made."""

    every: timedelta

    def after(self, moment: datetime) -> datetime | None:
        """The next time after ``moment``, which is the last time or the rule's making."""
        return moment + self.every


@dataclass(frozen=True, slots=True)
class At:
    """Once."""

    moment: datetime

    def after(self, moment: datetime) -> datetime | None:
        """The time, if it is after ``moment``."""
        return self.moment if self.moment > moment else None


@dataclass(frozen=True, slots=True)
class Cron:
    """AWS's six fields as the sets of what they allow, in the zone of the schedule."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    years: frozenset[int]
    zone: str

    def after(self, moment: datetime) -> datetime | None:
        """The first minute after ``moment`` that all fields allow; None if there is none soon."""
        zone = ZoneInfo(self.zone)
        local = moment.astimezone(zone).replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = local + _HORIZON
        while local < end:
            if local.year not in self.years or local.month not in self.months:
                local = (local.replace(day=1, hour=0, minute=0) + timedelta(days=32)).replace(day=1)
            elif local.day not in self.days or local.isoweekday() % 7 + 1 not in self.weekdays:
                local = local.replace(hour=0, minute=0) + timedelta(days=1)
            elif local.hour not in self.hours:
                local = local.replace(minute=0) + timedelta(hours=1)
            elif local.minute not in self.minutes:
                local += timedelta(minutes=1)
            else:
                return local.astimezone(UTC)
        return None


Schedule = Rate | At | Cron


def parse(expression: str, zone: str = "UTC") -> Schedule:
    """The schedule that ``expression`` describes.

    Raises `UnsupportedTemplateError` for what AWS refuses and for L, W and # in cron fields.
    """
    found = re.fullmatch(r"(rate|cron|at)\((.*)\)", expression.strip())
    if not found:
        raise UnsupportedTemplateError(f"{expression!r} is no rate(), cron() or at()")
    kind, inner = found.groups()
    if kind == "at":
        return At(datetime.fromisoformat(inner).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC))
    fields = inner.split()
    if kind == "rate":
        unit = fields[1].removesuffix("s") if len(fields) == 2 else ""
        if unit not in _UNITS or not fields[0].isdigit() or int(fields[0]) < 1:
            raise UnsupportedTemplateError(f"{expression!r} is no rate")
        return Rate(timedelta(seconds=int(fields[0]) * _UNITS[unit]))
    if len(fields) != 6:
        raise UnsupportedTemplateError(f"{expression!r} has not six fields")
    return Cron(
        _field(fields[0], 0, 59),
        _field(fields[1], 0, 23),
        _field(fields[2], 1, 31),
        _field(fields[3], 1, 12, _MONTHS),
        _field(fields[4], 1, 7, _DAYS),
        _field(fields[5], 1970, 2199),
        zone,
    )


def _field(text: str, low: int, high: int, names: list[str] | None = None) -> frozenset[int]:
    def number(word: str) -> int:
        if names and word.upper() in names:
            return names.index(word.upper()) + 1
        if not word.isdigit() or not low <= int(word) <= high:
            raise UnsupportedTemplateError(f"the cron field {text!r} is not known here")
        return int(word)

    allowed: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        if span in {"*", "?"}:
            first, last = low, high
        elif "-" in span:
            first, last = (number(word) for word in span.split("-", 1))
        else:
            first = number(span)
            last = high if slash else first
        allowed.update(range(first, last + 1, int(step) if slash else 1))
    return frozenset(allowed)


@dataclass(frozen=True, slots=True)
class Timer:
    """Something that fires by a schedule: ``key`` tells it from others, ``fire`` gets the time."""

    key: str
    schedule: Schedule
    fire: Callable[[datetime], None]


class Ticker:
    """Looks at its timers each second and fires what is due, each at most once a look.

    ``timers`` is asked anew each time, so that rules may come and go. A timer's first time is
    counted from the first look that saw it. Times that were missed are not made up for.
    """

    def __init__(
        self, timers: Callable[[], Iterable[Timer]], clock: Clock, *, interval: float = 1.0
    ) -> None:
        self._timers = timers
        self._clock = clock
        self._interval = interval
        self._due: dict[tuple[str, Schedule], datetime | None] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ticker", daemon=True)

    def start(self) -> None:
        """Look in a thread of its own from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> int:
        """Fire what is due and return how many timers that were."""
        now = self._clock.now()
        due: dict[tuple[str, Schedule], datetime | None] = {}
        fired = 0
        for timer in self._timers():
            key = (timer.key, timer.schedule)
            when = self._due[key] if key in self._due else timer.schedule.after(now)
            if when is not None and when <= now:
                timer.fire(when)
                fired += 1
                when = timer.schedule.after(now if isinstance(timer.schedule, Rate) else when)
                while when is not None and when <= now:
                    when = timer.schedule.after(when)
            due[key] = when
        self._due = due
        return fired

    def _run(self) -> None:
        while not self._stopping.wait(self._interval):
            self.look()
