"""DecideCommit: the decision."""

from functools import partial

from s3commit.core.documents.decision_json import put_decision, refuse_unfit
from s3commit.core.documents.ticket import Ticket
from s3commit.core.jobs.guards import planned_record
from s3commit.core.jobs.healing import refuse_above
from s3commit.core.model.destination import Conflict
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.ports.parallel import together


def decide_commit(ports: Ports, ticket: Ticket) -> Ticket:
    """The decision: from here on the job is going to be committed (I1, I6).

    It takes the job's idempotency key as well (I11). Raises `LostRaceError` if the state,
    generation, plan or replace list is not what it was, and `HeldError` if another job has the key;
    nothing is decided then. Repeated after a lost response, it finds its own decision. Before
    anything is completed the decision is in S3 as well. Raises `NeedsOperatorError`
    (``LEDGER_RESTORED``) if the table was restored from a backup: a job that has locks there may
    have lost them since, ``OTHER_OWNER`` if the bucket was handed over; and as `refuse_unfit`,
    `refuse_above`.
    """
    # A job without locks has none to lose: who has looked in this call does not look again.
    is_known = ticket.known.is_healed and ticket.known.is_unnoted
    record, healing = together(
        ports.parallel,
        partial(planned_record, ports, ticket, JobState.SEALED, JobState.COMMITTING),
        lambda: is_known or ports.ledger.healing(ticket.bucket, now=ports.clock.now()),
    )
    if record.state is JobState.COMMITTING:
        put_decision(ports, record)
        return ticket.after(record)
    is_checked = record.conflict is not Conflict.REPLACE or record.replaced is not None
    is_locked = record.conflict is Conflict.APPEND or bool(record.locks)
    if not (is_checked and is_locked):
        raise LostRaceError(f"job {ticket.job_id} has no replace list or lock", record)
    if record.conflict is not Conflict.APPEND and healing.unread:
        refuse_above(ports, record, healing.unread)
    refuse_unfit(record, ports.clock.now())
    ports.check_owner(ticket.bucket)  # the new one heals its ledger when no call is left
    plan = record.plan if ticket.known.is_unnoted else None
    decided = ports.ledger.decide(record, now=ports.clock.now(), plan=plan)
    put_decision(ports, decided)
    return ticket.after(decided)
