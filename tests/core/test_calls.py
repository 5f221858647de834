"""Calls that run several steps: where one of them stops, the state of the next step goes on."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest

from s3commit.core.calls import routes
from s3commit.core.calls.run_call import GOING_ON
from s3commit.core.documents.ticket import Ticket, decode_ticket, encode_ticket, execution_input
from s3commit.core.jobs import counted_manifests
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import AccessError, NotFoundError, TransientError
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from tests.core.world import OTHER_JOB, World, job_directory
from tests.fakes.execution import COMPLETING, call, complete_uploads, one_by_one

DIRECTORY, OTHER = job_directory(), job_directory(OTHER_JOB)
MARKER = DIRECTORY.success


@pytest.fixture
def world() -> World:
    world = World()
    world.ask(DIRECTORY, "t0", "t1", idempotency_key="k")
    return world


def begun() -> Ticket:
    return decode_ticket(execution_input(DIRECTORY), execution="execution-1")


def sealing(world: World, ticket: Ticket | None = None) -> tuple[Ticket, str]:
    """The first call of an execution, and what follows it."""
    return call(world.ports, routes.FIRST, ticket or begun())


@pytest.mark.parametrize(
    "error", [TransientError("503"), AccessError("403"), NotFoundError("404")], ids=repr
)
@pytest.mark.parametrize("conflict", [*Conflict])
@pytest.mark.parametrize(
    ("verb", "state"),
    [
        *(("get", "VerifyManifests"), ("put", "VerifyManifests"), ("list", "VerifyManifests")),
        *(("list_uploads", "VerifyManifests"), ("key_holder", "AcquireDestination")),
        ("decide", "DecideCommit"),
    ],
)
def test_i2_what_stops_a_call_before_the_decision_leads_to_the_state_of_that_step(
    verb: str, state: str, conflict: Conflict, error: Exception
) -> None:
    world = World()
    world.ask(DIRECTORY, "t0", idempotency_key="k", conflict=conflict)
    times = 2 if verb == "get" else 1  # SealJob has tried to read the manifests, too
    world.plan.run_after("advance", lambda: world.plan.fail(verb, error, times=times))
    ticket, following = sealing(world)
    assert (ticket.state, following) == (JobState.SEALED, state)
    assert world.visible() == {}
    # What it has found out is in the ledger: another call goes on from the ticket.
    assert (world.record(DIRECTORY).plan is not None) is bool(ticket.plan)
    assert bool(ticket.plan) is (state != "VerifyManifests")
    assert call(world.ports, following, sent(ticket))[0].state is JobState.COMMITTING


def sent(ticket: Ticket) -> Ticket:
    """As the machine carries it from call to call."""
    carried = json.loads(json.dumps(encode_ticket(ticket)))
    return replace(decode_ticket(carried), completed=ticket.completed, refusal=ticket.refusal)


def test_i2_what_a_call_refuses_is_refused_by_the_state_of_that_step(world: World) -> None:
    world.store.put("lake", f"sales/part-t0-{DIRECTORY.job_id}.parquet", b"a stranger's")
    entered = world.run(DIRECTORY)
    assert entered[3:] == ["CheckConditions", "CheckConditions", "AbortJob", "TidyUp"]
    assert world.failure(DIRECTORY).code == "NAME_TAKEN"


@pytest.mark.parametrize("conflict", [*Conflict])
def test_i6_i11_a_call_stops_where_the_job_has_to_wait(conflict: Conflict) -> None:
    """For a key as well as for a destination."""
    world = World()
    for directory in (OTHER, DIRECTORY):
        world.ask(directory, "t0", conflict=conflict, idempotency_key="k")
    other = decode_ticket(execution_input(OTHER), execution="execution-2")
    assert sealing(world, other)[0].state is JobState.COMMITTING
    ticket, following = sealing(world)
    assert (ticket.state, following) == (JobState.SEALED, "WaitForDestination")
    assert ticket.pause > 0
    assert world.record(DIRECTORY).waits is not None
    assert world.plan.count("decide") == 1


@pytest.mark.parametrize("at_once", [1, 2, 128])
def test_a_call_reads_each_manifest_once(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of them while the ledger notes that the job is sealed."""
    monkeypatch.setattr(counted_manifests, "MANIFESTS_AT_ONCE", at_once)
    world, names = World(), ["t0", "t1", "t2", "t3", "t4"]
    world.ask(DIRECTORY, *names)
    assert sealing(world)[0].state is JobState.COMMITTING
    read = [one.key for one in world.plan.calls if one.verb == "get" and "/_tasks/" in one.key]
    assert sorted(read) == [DIRECTORY.manifest(name, "a0") for name in names]


def test_a_call_that_has_taken_long_hands_over(world: World) -> None:
    world.plan.run_after("advance", lambda: world.clock.advance(GOING_ON))
    assert sealing(world)[1] == "VerifyManifests"
    world.clock.advance(GOING_ON)
    assert sealing(world)[0].state is JobState.COMMITTING


def test_each_step_of_a_large_job_is_a_call(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """So each has the whole time of a call, and people see in which it is."""
    monkeypatch.setattr("s3commit.core.model.limits.FEW_FILES", 1)
    called = [name for name, _ in calls_of(world, goes_on=True)]
    assert called == [*list(routes.STEPS)[:6], "PublishSuccess", "TidyUp"]


def calls_of(
    world: World, ticket: Ticket | None = None, name: str = routes.FIRST, *, goes_on: bool
) -> Iterator[tuple[str, Ticket]]:
    """The calls of an execution from here on: the first step of each, and its ticket."""
    ticket = ticket or begun()
    while name not in routes.ENDS.values():
        name = routes.WAITS.get(name, name)
        if name in COMPLETING:
            ticket, name = complete_uploads(world.ports, ticket, one_by_one), routes.COUNTED
        yield name, ticket
        ticket, name = call(world.ports, name, ticket, goes_on=goes_on)
        ticket = sent(ticket)


def asked(fate: Outcome, conflict: Conflict) -> World:
    """A world whose job will end so."""
    world = World()
    world.store.put("lake", "sales/old.csv", b"old")
    world.open(DIRECTORY, conflict=conflict, idempotency_key="k")
    if fate is Outcome.ABORTED:
        world.request_abort(DIRECTORY)
    else:
        world.request(DIRECTORY, *[world.attempt(DIRECTORY, task) for task in ("t0", "t1")])
    if fate is Outcome.ROLLED_BACK:
        world.lose_after_decision("sales/", slice(1))
    return world


@pytest.mark.parametrize("fate", Outcome)
@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
def test_i2_i8_i9_a_call_goes_on_behind_its_twin(fate: Outcome, conflict: Conflict) -> None:
    """From each step: Step Functions gives a call up, and repeats it while it still runs."""
    steps = len(list(calls_of(asked(fate, conflict), goes_on=False)))
    for step in range(steps):
        world = asked(fate, conflict)
        name, ticket = next(islice(calls_of(world, goes_on=False), step, None))
        twin, _ = call(world.ports, name, ticket)
        again, following = call(world.ports, name, ticket)
        assert again.state is twin.state, name
        for _ in calls_of(world, sent(again), following, goes_on=True):
            pass
        assert world.result(DIRECTORY).outcome is fate, name
        puts = [one for one in world.plan.calls if (one.verb, one.key) == ("put", MARKER)]
        assert len(puts) == (fate is Outcome.COMMITTED)
