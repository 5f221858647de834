"""What a history says of states whose events are mixed."""

from datetime import UTC, datetime, timedelta
from typing import Any

from s3commit.aws.history import visits_of

START = datetime(2026, 11, 21, 22, tzinfo=UTC)


def event(number: int, after: int, kind: str, **details: Any) -> dict[str, Any]:
    told = {f"{name}EventDetails": value for name, value in details.items()}
    at = START + timedelta(seconds=number)
    return {"id": number, "previousEventId": after, "type": kind, "timestamp": at, **told}


def test_what_happens_in_the_branches_of_a_map_is_told_of_their_states() -> None:
    """By the event that it follows; what follows one that was not read is told of none."""
    unit, few = {"name": "Unit"}, {"name": "Few"}
    events = [
        event(3, 2, "TaskFailed", taskFailed={"error": "Lost"}),
        event(4, 3, "MapStateEntered", stateEntered=few),
        event(5, 4, "MapStateStarted"),
        event(6, 5, "MapIterationStarted"),
        event(7, 5, "MapIterationStarted"),
        event(8, 6, "TaskStateEntered", stateEntered=unit),
        event(9, 7, "TaskStateEntered", stateEntered=unit),
        event(10, 8, "TaskScheduled"),
        event(11, 9, "TaskScheduled"),
        event(12, 10, "TaskTimedOut", taskTimedOut={"error": "States.Timeout"}),
        event(13, 12, "TaskScheduled"),
        event(14, 13, "TaskStateExited", stateExited=unit),
        event(15, 11, "TaskStateExited", stateExited=unit),
        event(16, 15, "MapStateAborted"),
        event(17, 16, "ExecutionAborted"),
    ]
    is_there = [visits_of(events[:count])[-1].left_at is None for count in (11, 12, 13)]
    assert is_there == [True, True, False]  # in a branch, until all have left it
    left = event(16, 13, "MapStateExited", stateExited=few)
    assert [one.left_at is None for one in visits_of([*events[:11], left])] == [False, False]
    few_visits, unit_visits = visits_of(events)
    assert (few_visits.state, few_visits.tries, few_visits.left_at) == ("Few", 0, None)
    assert few_visits.error == "MapStateAborted"
    assert (unit_visits.visits, unit_visits.tries, unit_visits.error) == (2, 3, "States.Timeout")
    assert unit_visits.left_at == "2026-11-21T22:00:15.000Z"
    assert unit_visits.seconds == 7  # by the clock, not the sum of the branches


def test_the_exit_of_an_entry_that_was_not_read_adds_no_time() -> None:
    unit = {"name": "Unit"}
    [seen] = visits_of(
        [
            event(5, 4, "TaskStateEntered", stateEntered=unit),
            event(6, 5, "TaskStateExited", stateExited=unit),
            event(9, 3, "TaskStateExited", stateExited=unit),
        ]
    )
    assert (seen.seconds, seen.left_at) == (1, "2026-11-21T22:00:09.000Z")


def test_a_later_visit_does_not_count_the_time_between() -> None:
    wait = {"name": "Wait"}
    visits = [
        event(1, 0, "WaitStateEntered", stateEntered=wait),
        event(3, 1, "WaitStateExited", stateExited=wait),
        event(10, 3, "WaitStateEntered", stateEntered=wait),
    ]
    [there] = visits_of(visits)
    assert (there.visits, there.seconds, there.left_at) == (2, 2, None)
    assert there.since == START + timedelta(seconds=10)
