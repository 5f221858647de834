"""Calls that run several steps: what one of them has done, the machine's own steps go on from."""

from dataclasses import replace

import pytest

from s3commit.core.calls.begin_and_publish import begin_and_publish
from s3commit.core.calls.seal_and_decide import seal_and_decide
from s3commit.core.commit.check_conditions import check_conditions
from s3commit.core.commit.complete_unit import complete_unit
from s3commit.core.commit.decide_commit import decide_commit
from s3commit.core.commit.seal_job import seal_job
from s3commit.core.commit.verify_manifests import verify_manifests
from s3commit.core.documents.ticket import Ticket, decode_ticket, execution_input
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import AccessError, InvalidInputError, NotFoundError, TransientError
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import LostRaceError
from tests.core.world import OTHER_JOB, World, job_directory

DIRECTORY, OTHER = job_directory(), job_directory(OTHER_JOB)
MARKER = DIRECTORY.success


@pytest.fixture
def world() -> World:
    world = World()
    world.ask(DIRECTORY, "t0", "t1", idempotency_key="k")
    return world


def begun() -> Ticket:
    return decode_ticket(execution_input(DIRECTORY), execution="execution-1")


@pytest.mark.parametrize(
    "error", [TransientError("503"), AccessError("403"), NotFoundError("404")], ids=repr
)
@pytest.mark.parametrize("verb", ["get", "put", "list", "list_uploads", "key_holder", "healing"])
def test_i2_what_stops_a_call_before_the_decision_leaves_the_job_to_the_next_state(
    world: World, verb: str, error: Exception
) -> None:
    world.plan.run_after("advance", lambda: world.plan.fail(verb, error))
    ticket = seal_and_decide(world.ports, begun())
    assert (ticket.state, ticket.plan) == (JobState.SEALED, "")
    assert world.visible() == {}
    world.run(DIRECTORY, "execution-1")
    assert world.result(DIRECTORY).outcome is Outcome.COMMITTED


def test_i2_what_a_call_refuses_the_next_states_refuse(world: World) -> None:
    world.store.put("lake", f"sales/part-t0-{DIRECTORY.job_id}.parquet", b"a stranger's")
    entered = world.run(DIRECTORY)
    assert entered[:4] == ["SealJob", "VerifyManifests", "AcquireDestination", "CheckConditions"]
    assert world.failure(DIRECTORY).code == "NAME_TAKEN"


def test_i2_a_job_whose_documents_would_be_too_long_is_refused_by_the_next_states(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InvalidInputError("too long", code="TOO_LARGE")

    for module in ("calls.seal_and_decide", "commit.decide_commit"):
        monkeypatch.setattr(f"s3commit.core.{module}.refuse_unfit", refuse)
    world.run(DIRECTORY)
    assert world.failure(DIRECTORY).code == "TOO_LARGE"
    assert world.open_uploads() == []


def test_i8_a_repeated_call_leaves_a_sealed_job_to_the_next_state(world: World) -> None:
    ticket, _ = seal_job(world.ports, begun())
    assert seal_and_decide(world.ports, begun()) == ticket
    assert world.plan.count("decide") == 0


@pytest.mark.parametrize("conflict", [Conflict.REPLACE, Conflict.FAIL])
def test_i6_who_may_have_to_wait_is_not_decided_by_the_call_that_seals_it(
    conflict: Conflict,
) -> None:
    world = World()
    world.ask(DIRECTORY, "t0", conflict=conflict)
    assert seal_and_decide(world.ports, begun()).state is JobState.SEALED
    assert world.plan.count("decide") == 0


def test_i11_a_key_that_another_job_has_stops_the_call(world: World) -> None:
    world.ask(OTHER, "t0", idempotency_key="k")
    other = decode_ticket(execution_input(OTHER), execution="execution-2")
    assert seal_and_decide(world.ports, other).state is JobState.COMMITTING
    assert seal_and_decide(world.ports, begun()).state is JobState.SEALED
    assert world.plan.count("decide") == 1


def test_i2_a_twin_goes_on_from_what_the_call_has_decided(world: World) -> None:
    """Step Functions gives a call up, and repeats it while it still runs."""
    sealed: list[Ticket] = []
    world.plan.run_after("advance", lambda: sealed.append(seal_job(world.ports, begun())[0]))
    seal_and_decide(world.ports, begun())
    (ticket,) = sealed
    assert ticket.state is JobState.SEALED
    for step in (verify_manifests, check_conditions, decide_commit):
        ticket = step(world.ports, ticket)
        assert ticket.state is JobState.COMMITTING
    assert (world.plan.count("decide"), world.plan.count("note")) == (1, 0)


def test_i9_a_repeated_call_finds_the_job_published(world: World) -> None:
    ticket = seal_and_decide(world.ports, begun())
    completed = (complete_unit(world.ports, ticket, unit) for unit in ticket.few)
    ticket = replace(ticket, completed=tuple(completed))
    ended = [begin_and_publish(world.ports, ticket) for _ in range(2)]
    assert ended[0] == ended[1]
    assert ended[0].outcome == "COMMITTED"
    marked = [call for call in world.plan.calls if (call.verb, call.key) == ("put", MARKER)]
    assert len(marked) == 1


def test_i8_another_execution_stops_the_call(world: World) -> None:
    other = replace(begun(), execution="execution-2")
    world.plan.run_after("advance", lambda: seal_job(world.ports, other))
    with pytest.raises(LostRaceError):
        seal_and_decide(world.ports, begun())
    record = world.record(DIRECTORY)
    assert (record.state, record.execution) == (JobState.SEALED, "execution-2")
