"""The patch of EventBridge, and the ticker."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from s3commit.local.triggers import Ticker
from tests.local.conftest import FakeClock, Local


def called_by_the_rule(local: Local) -> int:
    """How often the hourly rule has called its function."""
    return sum(b'"from": "rule"' in outcome.payload for _, outcome in local.calls.seen)


def test_a_rule_of_a_schedule_matches_no_event(local: Local) -> None:
    before = called_by_the_rule(local)
    answer = local.runtime.client("events").put_events(
        Entries=[{"Source": "tests", "DetailType": "test", "Detail": "{}"}]
    )
    assert answer["FailedEntryCount"] == 0
    assert called_by_the_rule(local) == before


def test_an_hourly_rule_fires_each_hour_and_missed_times_are_not_made_up_for(
    local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, fired = FakeClock(), list[Any]()
    ticker = Ticker(clock.now)  # the runtime's own has a clock that stands still
    before, fire = called_by_the_rule(local), ticker._fire

    def count(targets: Any) -> None:
        fired.append(targets)
        fire(targets)

    monkeypatch.setattr(ticker, "_fire", count)
    for minutes, times in ((0, 0), (59, 0), (2, 1), (0, 1), (600, 2), (0, 2)):
        clock.moment += timedelta(minutes=minutes)
        ticker.look()
        assert len(fired) == times
    local.calls.wait_until(lambda: called_by_the_rule(local) == before + 2)
