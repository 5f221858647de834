"""BeginPublish and PublishSuccess in one call, for a job that removes nothing in between."""

from functools import partial

from s3commit.core.commit.begin_publish import begin_publish
from s3commit.core.commit.publish_success import publish, read
from s3commit.core.documents.ticket import Ticket
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.parallel import together


def begin_and_publish(ports: Ports, ticket: Ticket) -> Ticket:
    """As `begin_publish`; a job in PUBLISHING is published by the same call, and ends.

    Repeated after a lost answer, it finds how far it was. Raises as both steps.
    """
    if ticket.replaces:
        return begin_publish(ports, ticket)[0]
    begun: tuple[Ticket, JobRecord]
    begun, found = together(
        ports.parallel, partial(begin_publish, ports, ticket), partial(read, ports, ticket)
    )
    after, record = begun
    if record.state in {JobState.PUBLISHING, JobState.COMMITTED}:
        return publish(ports, after, record, found)
    return after
