"""An execution of the state machine without Step Functions: the same steps, the same routes.

For tests of the protocol over the fakes. `s3commit.core.calls.routes` is the table of both.
"""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypedDict, Unpack

from s3commit.core.calls import routes
from s3commit.core.calls.run_call import Step, run_call, walk_call
from s3commit.core.commit.abort_job import abort_job
from s3commit.core.commit.acquire_destination import acquire_destination
from s3commit.core.commit.begin_publish import begin_publish
from s3commit.core.commit.check_conditions import check_conditions
from s3commit.core.commit.complete_unit import complete_unit
from s3commit.core.commit.decide_commit import decide_commit
from s3commit.core.commit.publish_success import publish_success
from s3commit.core.commit.remove_replaced import remove_replaced
from s3commit.core.commit.roll_back import roll_back
from s3commit.core.commit.seal_job import seal_job
from s3commit.core.commit.tidy_up import tidy_up
from s3commit.core.commit.verify_manifests import verify_manifests
from s3commit.core.documents.pages import MAX_INDEX_BYTES, UNIT, Unit
from s3commit.core.documents.ticket import Ticket, UnitResult, decode_ticket, execution_input
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs.guards import retrying_if_twin_won
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
    TransientError,
)
from s3commit.core.model.outcome import Failure
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.executions import Reason
from s3commit.core.ports.ledger import HeldError, LostRaceError

RETRIES = 10
SUPERSEDED = "Superseded"
COMPLETING: Final = {routes.AT_ONCE, routes.FEW, routes.ALL}  # one state here: `routes.ALL`

CompleteUnits = Callable[[Ports, Ticket, Sequence[Unit]], Iterable[UnitResult]]

STEPS: dict[str, Step] = {
    "SealJob": seal_job,
    "VerifyManifests": verify_manifests,
    "AcquireDestination": acquire_destination,
    "CheckConditions": check_conditions,
    "DecideCommit": decide_commit,
    "BeginPublish": begin_publish,
    "RemoveReplaced": remove_replaced,
    "PublishSuccess": publish_success,
    "AbortJob": abort_job,
    "RollBack": roll_back,
    "TidyUp": tidy_up,
}


def steps_of(name: str) -> dict[str, Step]:
    """The steps of the function that carries out this one."""
    return {one: STEPS[one] for one, to in routes.STEPS.items() if to == routes.STEPS[name]}


def call(ports: Ports, name: str, ticket: Ticket, *, goes_on: bool = True) -> tuple[Ticket, str]:
    """A call of a function, which begins with this step: the ticket, and the state that follows."""
    with retrying_if_twin_won(ticket):
        return _known(name, run_call(ports, name, ticket, steps_of(name), goes_on=goes_on))


def _known(name: str, after: tuple[Ticket, str]) -> tuple[Ticket, str]:
    """What a call returns, if the choice behind it lists the state that follows."""
    assert after[1] in routes.reached_after(routes.STEPS[name]), (name, after)
    return after


def one_by_one(ports: Ports, ticket: Ticket, units: Sequence[Unit]) -> Iterable[UnitResult]:
    """The machine's Map with a single worker."""
    return (complete_unit(ports, ticket, unit) for unit in units)


class How(TypedDict, total=False):
    """How an execution is run.

    ``pause`` stands for the machine's wait before a step comes again; without it the clock sleeps.
    ``complete`` is the machine's Map. If ``alone``, each step is a call of its own.
    """

    execution: str
    pause: Callable[[], object] | None
    complete: CompleteUnits
    gives_up: str
    alone: bool
    lists_lost: bool


def run_execution(ports: Ports, directory: JobDirectory, **how: Unpack[How]) -> list[str]:
    """Run the machine for the job until it ends; return the names of the steps that it ran.

    `TransientError` is retried as the machine does; `Crash` and what the machine would fail on come
    out of here.
    """
    return list(walk_execution(ports, directory, **how))


def walk_execution(
    ports: Ports,
    directory: JobDirectory,
    *,
    execution: str = "execution-1",
    pause: Callable[[], object] | None = None,
    complete: CompleteUnits = one_by_one,
    gives_up: str = "",
    alone: bool = False,
    lists_lost: bool = False,
) -> Iterator[str]:
    """As `run_execution`, step by step: each is given before it runs."""
    begun = execution_input(directory, Reason(gives_up, lists_lost))
    ticket = decode_ticket(begun, execution=execution)
    name = routes.FIRST
    while name not in routes.ENDS.values():
        if name in routes.WAITS:
            ports.clock.sleep(ticket.pause) if pause is None else pause()
            name = routes.WAITS[name]
        try:
            ticket, name = yield from attempt(ports, name, ticket, complete, goes_on=not alone)
        except LostRaceError:
            yield SUPERSEDED
            return
        except HeldError:
            name = "WaitForDestination"
        except (JobRefusedError, InvalidInputError) as error:
            if name not in routes.REFUSING:
                raise
            ticket = replace(ticket, refusal=Failure(error.code, error.message))
            name = "AbortJob"


def attempt(
    ports: Ports, name: str, ticket: Ticket, complete: CompleteUnits, *, goes_on: bool
) -> Generator[str, None, tuple[Ticket, str]]:
    if name in COMPLETING:
        yield routes.ALL
    for attempt in range(RETRIES):
        try:
            if name in COMPLETING:
                return complete_uploads(ports, ticket, complete), routes.COUNTED
            with retrying_if_twin_won(ticket):
                steps = steps_of(name)
                after = yield from walk_call(ports, name, ticket, steps, goes_on=goes_on)
                return _known(name, after)
        except TransientError:
            if attempt == RETRIES - 1:
                raise
    raise AssertionError("unreachable")


def complete_uploads(ports: Ports, ticket: Ticket, complete: CompleteUnits) -> Ticket:
    """The states that complete uploads, of those units that the ticket has or of all."""
    try:
        units = [*ticket.few]
        if not units:
            stored = ports.store.get(ticket.bucket, ticket.plan, max_bytes=MAX_INDEX_BYTES)
            units = [UNIT.read(unit) for unit in json.loads(stored.body)]
    except (NotFoundError, AccessError, InvalidInputError, ValueError):
        return ticket  # the machine's catch of States.ItemReaderFailed: without results
    return replace(ticket, completed=tuple(complete(ports, ticket, units)))
