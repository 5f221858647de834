"""An execution of the state machine without Step Functions: the same steps, the same routes.

For tests of the protocol over the fakes. A test of the stacks compares `ROUTES` with the template's
state machine, so that the two can't drift apart.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypedDict, Unpack

from s3commit.core.calls.begin_and_publish import begin_and_publish
from s3commit.core.calls.seal_and_decide import seal_and_decide
from s3commit.core.commit.abort_job import abort_job
from s3commit.core.commit.acquire_destination import acquire_destination
from s3commit.core.commit.check_conditions import check_conditions
from s3commit.core.commit.complete_unit import complete_unit
from s3commit.core.commit.decide_commit import decide_commit
from s3commit.core.commit.publish_success import publish_success
from s3commit.core.commit.remove_replaced import remove_replaced
from s3commit.core.commit.roll_back import roll_back
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
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import HeldError, LostRaceError

RETRIES = 10
SUPERSEDED = "Superseded"

Step = Callable[[Ports, Ticket], Ticket]
CompleteUnits = Callable[[Ports, Ticket, Sequence[Unit]], Iterable[UnitResult]]

STEPS: dict[str, Step] = {
    "SealJob": seal_and_decide,
    "VerifyManifests": verify_manifests,
    "AcquireDestination": acquire_destination,
    "CheckConditions": check_conditions,
    "DecideCommit": decide_commit,
    "BeginPublish": begin_and_publish,
    "RemoveReplaced": remove_replaced,
    "PublishSuccess": publish_success,
    "AbortJob": abort_job,
    "RollBack": roll_back,
    "TidyUp": tidy_up,
}

REFUSING = frozenset({"VerifyManifests", "AcquireDestination", "CheckConditions", "DecideCommit"})

# The step after SealJob that resumes a job in a given state.
ENTRY: dict[JobState, str] = {
    JobState.OPEN: "SealJob",  # once the ledger is healed
    JobState.SEALED: "VerifyManifests",
    JobState.COMMITTING: "CompleteUploads",
    JobState.PUBLISHING: "RemoveReplaced",
    JobState.ABORTING: "AbortJob",
    JobState.ROLLING_BACK: "RollBack",
    JobState.COMMITTED: "PublishSuccess",
    JobState.ABORTED: "AbortJob",
    JobState.ROLLED_BACK: "RollBack",
}


def proceed(ticket: Ticket) -> str:
    """The step with which an execution continues, past those that would find nothing to do."""
    step = ENTRY[ticket.state]
    if step == "CompleteUploads" and not ticket.units:
        return "BeginPublish"
    return "PublishSuccess" if step == "RemoveReplaced" and not ticket.replaces else step


def _acquires(ticket: Ticket) -> str:
    return "CheckConditions" if ticket.acquired else "AcquireDestination"


ROUTES: dict[str, Callable[[Ticket], str]] = {
    "SealJob": proceed,
    "VerifyManifests": _acquires,
    "AcquireDestination": _acquires,
    "CheckConditions": lambda _: "DecideCommit",
    "DecideCommit": proceed,
    "CompleteUploads": lambda _: "BeginPublish",
    "BeginPublish": lambda ticket: "TidyUp" if ticket.outcome else proceed(ticket),
    "RemoveReplaced": lambda ticket: "RemoveReplaced" if ticket.page else "PublishSuccess",
    "PublishSuccess": lambda _: "TidyUp",
    "AbortJob": lambda ticket: "TidyUp" if ticket.outcome else proceed(ticket),
    "RollBack": lambda ticket: "TidyUp" if ticket.outcome else proceed(ticket),
    "TidyUp": lambda ticket: "TidyUp" if ticket.page else "",
}


def one_by_one(ports: Ports, ticket: Ticket, units: Sequence[Unit]) -> Iterable[UnitResult]:
    """The machine's Map with a single worker."""
    return (complete_unit(ports, ticket, unit) for unit in units)


class How(TypedDict, total=False):
    """How an execution is run.

    ``pause`` stands for the machine's wait before a step comes again; without it the clock sleeps.
    ``complete`` is the machine's Map.
    """

    execution: str
    pause: Callable[[], object] | None
    complete: CompleteUnits
    gives_up: str
    lists_lost: bool


def run_execution(ports: Ports, directory: JobDirectory, **how: Unpack[How]) -> list[str]:
    """Run the machine for the job until it ends; return the names of the states it entered.

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
    lists_lost: bool = False,
) -> Iterator[str]:
    """As `run_execution`, state by state: each is given before it runs."""
    begun = execution_input(directory, gives_up, lists_lost=lists_lost)
    ticket = decode_ticket(begun, execution=execution)
    name = "SealJob"
    while name:
        yield name
        try:
            ticket = _attempt(ports, name, ticket, complete)
            if ticket.pause:
                ports.clock.sleep(ticket.pause) if pause is None else pause()
            name = ROUTES[name](ticket)
        except LostRaceError:
            yield SUPERSEDED
            return
        except HeldError:
            name = "AcquireDestination"
        except (JobRefusedError, InvalidInputError) as error:
            if name not in REFUSING:
                raise
            ticket = replace(ticket, refusal=Failure(error.code, error.message))
            name = "AbortJob"


def _attempt(
    ports: Ports, name: str, ticket: Ticket, complete: CompleteUnits = one_by_one
) -> Ticket:
    for attempt in range(RETRIES):
        try:
            if name == "CompleteUploads":
                return _complete_uploads(ports, ticket, complete)
            with retrying_if_twin_won(ticket):
                return STEPS[name](ports, ticket)
        except TransientError:
            if attempt == RETRIES - 1:
                raise
    raise AssertionError("unreachable")


def _complete_uploads(ports: Ports, ticket: Ticket, complete: CompleteUnits) -> Ticket:
    """The states CompleteFew, whose units the ticket has, and CompleteUploads."""
    try:
        units = [*ticket.few]
        if not units:
            stored = ports.store.get(ticket.bucket, ticket.plan, max_bytes=MAX_INDEX_BYTES)
            units = [UNIT.read(unit) for unit in json.loads(stored.body)]
    except (NotFoundError, AccessError, InvalidInputError, ValueError):
        return ticket  # the machine's catch of States.ItemReaderFailed: without results
    return replace(ticket, completed=tuple(complete(ports, ticket, units)))
