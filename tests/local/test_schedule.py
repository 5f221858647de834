"""Schedules by a clock that the test moves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from s3commit.local import UnsupportedTemplateError
from s3commit.local.triggers import Ticker, Timer, rate
from tests.local.conftest import FakeClock


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
