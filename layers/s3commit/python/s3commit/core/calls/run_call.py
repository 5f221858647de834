"""One call of a function: the step of its state, and those that follow as far as it can go."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Final

from s3commit.core.calls.routes import following
from s3commit.core.documents.ticket import UNKNOWN, Ticket
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.limits import are_few
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.clock import CallTime

GOING_ON: Final = 30  # seconds of a call after which it begins no other step: each may take its own

Step = Callable[[Ports, Ticket], Ticket]


def run_call(
    ports: Ports, name: str, ticket: Ticket, steps: Mapping[str, Step], *, goes_on: bool = True
) -> tuple[Ticket, str]:
    """As `walk_call`, to its end."""
    call = walk_call(ports, name, ticket, steps, goes_on=goes_on)
    while True:
        try:
            next(call)
        except StopIteration as end:
            ended: tuple[Ticket, str] = end.value
            return ended


def walk_call(
    ports: Ports, name: str, ticket: Ticket, steps: Mapping[str, Step], *, goes_on: bool = True
) -> Generator[str, None, tuple[Ticket, str]]:
    """Run the step of state ``name``; if it ``goes_on``, those that follow among ``steps``, too.

    Yields the name of each before it runs; returns the ticket, and the state that follows. A call
    stops where the job has to wait, where the next step is another function's or comes again, where
    the job is large, so that each of its steps has all the time of a call, and where time is over.
    An error of the first step is raised. An error of a later one leads to the state of that step:
    it judges again, with its own retries and ways out, and people see its name (docs/adr/0039).
    """
    time = CallTime(ports.clock, GOING_ON)
    yield name
    ticket = steps[name](ports, ticket)
    then = following(name, ticket)
    while goes_on and then in steps and then != name and _is_small(ticket) and not time.is_over():
        name = then
        yield name
        try:
            ticket = steps[name](ports, ticket)
        except S3CommitError:
            break
        then = following(name, ticket)
    if ticket.known.is_unnoted and ticket.state is JobState.SEALED:
        record = ticket.known.record
        assert record is not None  # noqa: S101 - what is not noted is in it
        ports.ledger.note(record, now=ports.clock.now(), plan=record.plan)
    return replace(ticket, known=UNKNOWN), then


def _is_small(ticket: Ticket) -> bool:
    """False as well if the call has read neither the request nor the plan that it needs."""
    if ticket.known.request is not None:
        return are_few(ticket.known.request.files)
    return are_few(ticket.files) and (bool(ticket.plan) or ticket.state is not JobState.SEALED)
