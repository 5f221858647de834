"""Schedules by a clock that the test moves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from s3commit.local.errors import UnsupportedTemplateError
from s3commit.local.schedule import Ticker, Timer, rate
from tests.local.conftest import FakeClock


@pytest.mark.parametrize(
    ("expression", "period"),
    [
        ("rate(5 minutes)", timedelta(minutes=5)),
        ("rate(1 hour)", timedelta(hours=1)),
        ("rate(1 day)", timedelta(days=1)),
    ],
)
def test_a_rate_is_a_period(expression: str, period: timedelta) -> None:
    assert rate(expression) == period


@pytest.mark.parametrize(
    "expression",
    ["", "rate(0 hours)", "rate(hour)", "rate(5 seconds)", "cron(0 2 * * ? *)", "at(2026-12-01)"],
)
def test_what_is_no_rate_is_refused(expression: str) -> None:
    with pytest.raises(UnsupportedTemplateError, match="is no rate"):
        rate(expression)


def test_what_is_due_fires_once_and_missed_times_are_not_made_up_for() -> None:
    clock, fired = FakeClock(), list[str]()
    timer = Timer("a", rate("rate(1 minute)"), lambda: fired.append("a"))
    ticker = Ticker(lambda: [timer], clock.now)
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
    clock, fired = FakeClock(), list[str]()
    timers = [Timer("a", rate("rate(1 minute)"), lambda: fired.append("a"))]
    ticker = Ticker(lambda: timers, clock.now)
    ticker.look()
    timers.clear()
    clock.moment += timedelta(minutes=2)
    assert ticker.look() == 0
    assert not fired
