"""Schedules by a clock that the test moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from s3commit.local.errors import UnsupportedTemplateError
from s3commit.local.schedule import Ticker, Timer, parse
from tests.local.conftest import FakeClock


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("rate(5 minutes)", "2026-11-21T12:00:30", "2026-11-21T12:05:30"),
        ("rate(1 hour)", "2026-11-21T12:00:00", "2026-11-21T13:00:00"),
        ("cron(0 2 * * ? *)", "2026-11-21T12:00:00", "2026-11-22T02:00:00"),
        ("cron(0/15 * * * ? *)", "2026-11-21T12:00:00", "2026-11-21T12:15:00"),
        ("cron(0 9 ? * MON-FRI *)", "2026-11-21T12:00:00", "2026-11-23T09:00:00"),
        ("cron(30 8 1 JAN,JUL ? *)", "2026-11-21T12:00:00", "2027-01-01T08:30:00"),
        ("cron(0 0 ? * 1 *)", "2026-11-21T12:00:00", "2026-11-22T00:00:00"),
        ("at(2026-12-01T00:00:00)", "2026-11-21T12:00:00", "2026-12-01T00:00:00"),
    ],
)
def test_the_next_time(expression: str, after: str, expected: str) -> None:
    assert parse(expression).after(at(after)) == at(expected)


def test_a_schedule_keeps_to_its_zone() -> None:
    schedule = parse("cron(0 2 * * ? *)", "Europe/Berlin")
    assert schedule.after(at("2026-07-01T12:00:00")) == at("2026-07-02T00:00:00")


def test_a_time_that_has_passed_never_comes() -> None:
    assert parse("at(2020-01-01T00:00:00)").after(at("2026-11-21T12:00:00")) is None
    assert parse("cron(0 0 30 2 ? *)").after(at("2026-11-21T12:00:00")) is None


@pytest.mark.parametrize(
    "expression", ["", "rate(0 hours)", "rate(hour)", "cron(* *)", "cron(0 0 L * ? *)"]
)
def test_what_is_no_schedule_is_refused(expression: str) -> None:
    with pytest.raises(UnsupportedTemplateError):
        parse(expression)


def test_what_is_due_fires_once_and_missed_times_are_not_made_up_for() -> None:
    clock, fired = FakeClock(), list[datetime]()
    timer = Timer("a", parse("rate(1 minute)"), fired.append)
    ticker = Ticker(lambda: [timer], clock)
    assert ticker.look() == 0
    clock.moment += timedelta(seconds=59)
    assert ticker.look() == 0
    clock.moment += timedelta(seconds=2)
    assert ticker.look() == 1
    assert ticker.look() == 0
    clock.moment += timedelta(minutes=10)
    assert ticker.look() == 1
    assert len(fired) == 2


def test_a_timer_that_has_gone_does_not_fire() -> None:
    clock, fired = FakeClock(), list[datetime]()
    timers = [Timer("a", parse("rate(1 minute)"), fired.append)]
    ticker = Ticker(lambda: timers, clock)
    ticker.look()
    timers.clear()
    clock.moment += timedelta(minutes=2)
    assert ticker.look() == 0
    assert not fired
