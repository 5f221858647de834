"""The states of an execution, read from its history."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from s3commit.aws.failures import translated
from s3commit.core.model.moments import rfc3339

MOST_EVENTS: Final = 3_000  # the latest: three requests
_PAGE: Final = 1_000
_ENTERED, _EXITED, _TRIED = "StateEntered", "StateExited", "Scheduled"
_ENDED: Final = {f"Execution{how}" for how in ("Succeeded", "Failed", "Aborted", "TimedOut")}
_FAILED: Final = ("Failed", "TimedOut", "Aborted")


@dataclass(slots=True)
class StateVisits:
    """All visits to one state. Times are RFC 3339, UTC; ``left_at`` is None while it is there.

    ``inside`` are those of now, several in a Map, without a pause since ``since``. ``seconds`` is
    the time before that with at least one inside. ``tries`` are the calls of a function, ``error``
    is the last one that a call ended with, which may have been tried again.
    """

    state: str
    entered_at: str
    since: datetime
    visits: int = 0
    inside: int = 0
    tries: int = 0
    seconds: float = 0
    error: str = ""
    left_at: str | None = None

    def enter(self, at: datetime) -> None:
        """One more is inside."""
        if not self.inside:
            self.since = at
        self.visits, self.inside, self.left_at = self.visits + 1, self.inside + 1, None

    def leave(self, at: datetime, count: int = 1) -> None:
        """So many of those inside have left; also one whose entry was not read."""
        if self.inside:
            self.inside -= count
            if not self.inside:
                self.seconds += (at - self.since).total_seconds()
        if not self.inside:
            self.left_at = rfc3339(at)


def read_history(client: Any, execution: str) -> tuple[list[StateVisits], bool, bool]:
    """The states as `visits_of`; whether the execution still runs, and whether that is all.

    Requests: one for 1,000 events, three at most. Raises `NotFoundError` for an execution that Step
    Functions has forgotten.
    https://docs.aws.amazon.com/step-functions/latest/apireference/API_GetExecutionHistory.html
    """
    with translated(f"reading the history of execution {execution}"):
        pages = client.get_paginator("get_execution_history").paginate(
            executionArn=execution,
            reverseOrder=True,
            includeExecutionData=False,
            PaginationConfig={"PageSize": _PAGE},
        )
        events = (event for page in pages for event in page["events"])
        latest = list(islice(events, MOST_EVENTS))
        complete = next(events, None) is None
    latest.sort(key=lambda event: int(event["id"]))
    ended = latest[-1]["type"] in _ENDED if latest else False
    return visits_of(latest), not ended, complete


def visits_of(events: Iterable[dict[str, Any]]) -> list[StateVisits]:
    """The states in the order in which they were entered first, by the events in their order.

    https://docs.aws.amazon.com/step-functions/latest/apireference/API_HistoryEvent.html
    """
    found: dict[str, StateVisits] = {}
    states: dict[int, str] = {}  # in which state an event happened: those of a Map run in parallel
    around: dict[str, str] = {}  # the state in whose Map a state is
    for event in events:
        kind, at = event["type"], event["timestamp"].astimezone(UTC)
        state = states.get(event.get("previousEventId", 0), "")
        if kind.endswith(_ENTERED):
            outer, state = state, event["stateEnteredEventDetails"]["name"]
            around[state] = outer
            found.setdefault(state, StateVisits(state, rfc3339(at), at)).enter(at)
        elif kind.endswith(_EXITED):
            state = event["stateExitedEventDetails"]["name"]
            if state in found:
                found[state].leave(at)
            for inner in (one for one in found.values() if around[one.state] == state != ""):
                if inner.inside:  # a branch that failed is not left
                    inner.leave(at, inner.inside)
            state = around.get(state, "")
        elif state and kind.endswith(_TRIED):
            found[state].tries += 1
        elif state and kind.endswith(_FAILED) and not kind.startswith("Execution"):
            [details] = [event[name] for name in event if name.endswith("EventDetails")] or [{}]
            found[state].error = details.get("error", kind)
        states[event["id"]] = state
    return list(found.values())
