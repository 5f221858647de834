"""CheckConditions: conditions, key and policy against what is at the destination."""

from __future__ import annotations

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.documents import read_spec_of
from s3commit.core.job.idempotency_key import check_key, reserve_key
from s3commit.core.job.record import planned_record, unless_overtaken
from s3commit.core.job.replace_list import write_list
from s3commit.core.job.replaced_files import files_of_before
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.job import Conflict
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports


def check_conditions(ports: Ports, ticket: Ticket) -> Ticket:
    """Judge the job's conditions, its key and its policy against what is at the destination.

    Under the job's locks, so that what is seen stays so for all jobs until it has ended. Writes the
    replace list of a job that replaces. Raises `JobRefusedError` with the figure that failed it.
    """
    directory = ticket.directory
    record = planned_record(ports, ticket, JobState.SEALED)
    with unless_overtaken(ports, ticket, JobState.SEALED):
        # First, so that a job that is run again is told that, not that its files are in the way.
        check_key(ports, directory, record)
        _judge_counts(ports, directory, record)
        if record.conflict is Conflict.FAIL:
            _refuse_files(ports, directory, record)
        if record.conflict is Conflict.REPLACE:
            record = _note_replaced(ports, directory, record)
        reserve_key(ports, directory, record)
    return ticket.after(record)


def _judge_counts(ports: Ports, directory: JobDirectory, record: JobRecord) -> None:
    plan = record.plan
    conditions = read_spec_of(ports, directory, record).conditions
    failed = plan and conditions.failed(plan.files, plan.rows)
    if failed:
        raise JobRefusedError(failed, code="CONDITION_FAILED")


def _refuse_files(ports: Ports, directory: JobDirectory, record: JobRecord) -> None:
    found = next(files_of_before(ports, directory, record), None)
    if found is not None:
        raise JobRefusedError(
            f"conflict 'fail': {found.key} is there already", code="DESTINATION_NOT_EMPTY"
        )


def _note_replaced(ports: Ports, directory: JobDirectory, record: JobRecord) -> JobRecord:
    facts = write_list(ports, directory, files_of_before(ports, directory, record))
    return ports.ledger.note(
        record.ref, generation=record.generation, now=ports.clock.now(), replaced=facts
    )
