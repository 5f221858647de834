"""The patch of EventBridge, and the ticker."""

from __future__ import annotations

from datetime import timedelta

from tests.local.conftest import Local


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


def test_the_ticker_fires_an_hourly_rule_each_hour(local: Local) -> None:
    ticker = local.runtime.ticker
    before = called_by_the_rule(local)
    ticker.look()
    local.clock.moment += timedelta(minutes=61)
    fired = ticker.look()
    local.calls.wait_until(lambda: called_by_the_rule(local) == before + 1)
    assert fired <= 1  # or the ticker's own thread was first
    ticker.look()
    assert called_by_the_rule(local) == before + 1
