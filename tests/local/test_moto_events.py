"""The patch of EventBridge, and the ticker."""

from __future__ import annotations

from datetime import timedelta

from tests.local.conftest import Local


def started_by_the_rule(local: Local) -> list[str]:
    """The executions that the hourly rule started."""
    executions = local.machines.list_executions(stateMachineArn=local.runtime.state_machine_arn)
    described = [
        local.machines.describe_execution(executionArn=each["executionArn"])
        for each in executions["executions"]
    ]
    return [each["executionArn"] for each in described if '"from":"rule"' in each["input"]]


def test_a_rule_of_a_schedule_matches_no_event(local: Local) -> None:
    before = started_by_the_rule(local)
    answer = local.runtime.client("events").put_events(
        Entries=[{"Source": "tests", "DetailType": "test", "Detail": "{}"}]
    )
    assert answer["FailedEntryCount"] == 0
    assert started_by_the_rule(local) == before


def test_the_ticker_fires_an_hourly_rule_each_hour(local: Local) -> None:
    ticker = local.runtime.ticker
    before = len(started_by_the_rule(local))
    ticker.look()
    local.clock.moment += timedelta(minutes=61)
    fired = ticker.look()
    local.calls.wait_until(lambda: len(started_by_the_rule(local)) == before + 1)
    for execution in started_by_the_rule(local):
        assert local.ended(execution)["status"] == "SUCCEEDED"
    assert fired <= 1  # or the ticker's own thread was first
    ticker.look()
    assert len(started_by_the_rule(local)) == before + 1
