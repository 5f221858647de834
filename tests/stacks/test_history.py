"""An execution's history never reaches 25,000 events, at which Step Functions fails it.

https://docs.aws.amazon.com/step-functions/latest/dg/bp-history-limit.html. The events of a state
are those of https://docs.aws.amazon.com/step-functions/latest/apireference/API_HistoryEvent.html.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from s3commit.core.calls import routes
from s3commit.core.documents.job_json import JobSpec
from s3commit.core.documents.ticket import Ticket
from s3commit.core.jobs.record import new_record
from s3commit.core.jobs.rounds import next_round
from s3commit.core.model.destination import Conflict
from s3commit.core.model.limits import (
    CALL_SECONDS,
    FUNCTION_CLOCKS,
    LONGEST_CALL,
    LONGEST_ROUND_WAIT,
    LONGEST_WAIT,
    SHORTEST_WAIT,
    UNITS_OF_A_JOB,
)
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from stacks.definition import EXECUTION_HOURS, definition
from stacks.functions import FUNCTIONS
from tests.core.world import BUCKET, OTHER_JOB, World, job_directory
from tests.fakes.memory import ManualClock, MemoryLedger, MemoryObjectStore

MOST_EVENTS = 25_000
LIFE = EXECUTION_HOURS * 3600

# Entered and exited; scheduled, started, succeeded. A Map Run adds two to those of a Map.
EVENTS = {"Choice": 2, "Wait": 2, "Pass": 2, "Task": 5, "Map": 6}
A_RETRY = 3  # scheduled, started, failed; of a Map Run it is one less
AN_ITERATION = 2  # of an inline Map: started, succeeded; what is in it comes on top

STATES: dict[str, Any] = definition(dict.fromkeys(FUNCTIONS, "arn"))["States"]


def ways_from(name: str, before: str) -> set[str]:
    """Without catches: they lead to the end, or to where other ways lead anyway.

    A choice leads on as the routes say of the step before it, and of those that the call may run.
    """
    if STATES[name]["Type"] != "Choice":
        return {STATES[name]["Next"]} if "Next" in STATES[name] else set()
    found, left = set[str](), [before] if before in routes.STEPS else []
    while left:
        step = left.pop()
        ways = {way.to for way in (*routes.AFTER.get(step, ()), *routes.RESUMED) if fits(step, way)}
        left += [
            to for to in ways - found if routes.STEPS.get(to) == routes.STEPS[before] and to != step
        ]
        found |= ways
    return found


def fits(step: str, way: routes.Way) -> bool:
    """Whether the step may leave the job in the state: SealJob finds it in any."""
    if step == routes.FIRST or way in routes.AFTER.get(step, ()):
        return True
    decided = {"DecideCommit": {JobState.COMMITTING}, routes.COUNTED: routes.BEHIND}
    return step in decided and way.state in decided[step]


def rounds_of(name: str) -> Iterator[tuple[str, ...]]:
    """Each way from a state back to it."""

    def walk(way: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for following in ways_from(way[-1], way[-2] if len(way) > 1 else ""):
            if following == name:
                yield way
            elif following not in way:
                yield from walk((*way, following))

    return walk((name,))


def events(way: tuple[str, ...], *, retried: bool = False) -> int:
    found = 0
    for name in way:
        state = STATES[name]
        retries = sum(retry["MaxAttempts"] for retry in state.get("Retry", ()))
        found += EVENTS[state["Type"]] + A_RETRY * retries * retried
    return found


def of_few() -> int:
    """Those of a small job's units, each with all its retries; they are tried in no later round."""
    (unit,) = STATES["CompleteFew"]["ItemProcessor"]["States"].values()
    tries: int = sum(retry["MaxAttempts"] for retry in unit["Retry"])
    return UNITS_OF_A_JOB * (AN_ITERATION + EVENTS["Task"] + A_RETRY * tries)


def dearest(name: str, *, retried: bool = False) -> int:
    """The events of the round that has most of them."""
    return max(events(way, retried=retried) for way in rounds_of(name))


def rounds_in_a_life() -> int:
    """How often a state is entered again that nobody lets end, if its steps take no time."""
    clock = ManualClock()
    ports = Ports(MemoryObjectStore(BUCKET), MemoryLedger(), clock)
    directory = job_directory()
    spec = JobSpec(directory.job_id, directory.destination)
    record = new_record(spec, directory, clock.now())
    ticket = Ticket(directory.job_id, BUCKET, directory.prefix)
    passed = rounds = 0
    while passed < LIFE:
        pause = next_round(ports, ticket, record).pause
        assert SHORTEST_WAIT <= pause <= max(SHORTEST_WAIT, min(passed / 12, LONGEST_ROUND_WAIT))
        clock.advance(pause)
        passed += pause
        rounds += 1
    return rounds


def rounds_before_it_gives_up() -> int:
    """How often a job asks for a destination that it does not get."""
    world = World()
    for job_id in (OTHER_JOB, job_directory().job_id):
        directory = job_directory(job_id)
        world.ask(directory, conflict=Conflict.REPLACE)
    world.plan.crash_after("decide")
    world.dies(job_directory(OTHER_JOB))
    return world.run(job_directory()).count("AcquireDestination")


def test_every_loop_of_the_machine_is_known() -> None:
    """Each has a wait, but those whose every round is a call that has used up its time."""
    loops = [way for name in STATES for way in rounds_of(name)]
    waits = {name for way in loops for name in way if STATES[name]["Type"] == "Wait"}
    assert waits == set(routes.WAITS)
    without = {name for way in loops for name in way if not waits.intersection(way)}
    assert without == {"RemoveReplaced", "TidyUp", "WhatIsLeft"}
    for name in waits:
        assert STATES[name]["SecondsPath"] == "$.pause"


def test_no_execution_reaches_the_end_of_its_history() -> None:
    """All loops one after the other, each for as long as it can go on."""
    waiting = rounds_before_it_gives_up() * dearest("WaitForDestination")
    rounds = rounds_in_a_life()
    completing, undoing = (
        rounds * dearest(name) for name in ("WaitForNextRound", "WaitForUploads")
    )
    removing = LIFE // CALL_SECONDS * (dearest("RemoveReplaced") + dearest("TidyUp"))
    looks = (LONGEST_CALL + FUNCTION_CLOCKS) // LONGEST_WAIT + LIFE // CALL_SECONDS
    healing = looks * dearest("WaitForLedger")
    straight = sum(events((name,)) for name in STATES if STATES[name]["Type"] in EVENTS)
    assert 100 < rounds < 250
    straight += of_few()
    assert healing + waiting + completing + undoing + removing + straight < MOST_EVENTS / 2


@pytest.mark.parametrize("wait", ["WaitForNextRound", "WaitForUploads"])
def test_nor_if_each_step_of_each_round_uses_up_its_retries(wait: str) -> None:
    assert rounds_in_a_life() * dearest(wait, retried=True) + of_few() < MOST_EVENTS


def test_nor_does_a_job_that_waits_for_its_destination_with_all_its_retries() -> None:
    rounds = rounds_before_it_gives_up()
    assert rounds * dearest("WaitForDestination", retried=True) + of_few() < MOST_EVENTS
