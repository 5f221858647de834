"""PublishSuccess: all files are visible; now say so."""

from functools import partial
from itertools import islice

from s3commit.core.documents.commit_manifest import SUCCESS_FILES, publish_manifest
from s3commit.core.documents.decision_json import note_end, note_publishing
from s3commit.core.documents.pendingset import PendingFile
from s3commit.core.documents.plan import planned_files
from s3commit.core.documents.success_marker import encode_success
from s3commit.core.documents.ticket import Found, Marker, Ticket
from s3commit.core.jobs.conclusion import conclude
from s3commit.core.jobs.guards import known_record, own_record, unless_overtaken
from s3commit.core.jobs.idempotency import free_key, note_key
from s3commit.core.jobs.lost_lists import has_plan, is_given_up, told
from s3commit.core.jobs.to_publish import found_before, marker
from s3commit.core.model.errors import NotFoundError, PreconditionError
from s3commit.core.model.limits import LONGEST_MARKER_PAUSE, MARKER_PAUSE, MARKER_ROUNDS
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.parallel import together


def publish_success(ports: Ports, ticket: Ticket) -> Ticket:
    """Commit manifest, key, marker, ledger, result: in this order, each step repeatable (I9)."""
    with unless_overtaken(ports, ticket, JobState.PUBLISHING, JobState.COMMITTED):
        record, found = together(
            ports.parallel,
            partial(known_record, ports, ticket, JobState.PUBLISHING, JobState.COMMITTED),
            lambda: ticket.known.found or found_before(ports, ticket),
        )
    return _publish(ports, ticket, record, found)


def _publish(ports: Ports, ticket: Ticket, record: JobRecord, found: Found) -> Ticket:
    """Publish a job in PUBLISHING; of one that is COMMITTED write the result."""
    if record.state is JobState.PUBLISHING:
        # Others act on the commit from here on: it stays, even if the ledger is lost.
        names, *_ = together(
            ports.parallel,
            partial(_list_files, ports, ticket, record, found.few),
            partial(note_publishing, ports, record, found.decision),
            partial(own_record, ports, ticket, JobState.PUBLISHING),
        )
        if record.idempotency_key is not None:
            note_key(ports, record, record.idempotency_key)
        if record.undoes:
            free_key(ports, record)
        _put_marker(ports, ticket, record, names, found.marker)
        note_end(ports, record, JobState.COMMITTED)
        failure, now = told(ports, record) if is_given_up(record) else None, ports.clock.now()
        record = ports.ledger.advance(record, JobState.COMMITTED, now=now, failure=failure)
    return conclude(ports, ticket, record)


def _list_files(
    ports: Ports, ticket: Ticket, record: JobRecord, few: list[PendingFile]
) -> list[str]:
    """Put the commit manifest, unless RemoveReplaced has; the first keys."""
    with unless_overtaken(ports, ticket, JobState.PUBLISHING):
        files = few or planned_files(ports, ticket.directory, record)
        if is_given_up(record):  # RemoveReplaced has not put it, and the plan may be lost
            if not has_plan(ports, record):
                return []
        elif record.replaced is not None and record.replaced.files:
            return [file.key for file in islice(files, SUCCESS_FILES)]
        return publish_manifest(ports, ticket.directory, record, files)


def _put_marker(
    ports: Ports, ticket: Ticket, record: JobRecord, names: list[str], seen: Marker
) -> None:
    """Put ``_SUCCESS`` on condition that it replaces the very marker that was ``seen`` (I9).

    Between looking and putting, the ledger is asked again, for what was ``seen`` by the caller: a
    late waker whose job has moved on loses there, and one that stalls after that loses the
    condition.
    """
    directory = ticket.directory
    body = encode_success(record, names, ports.clock.now())
    for lost in range(MARKER_ROUNDS):
        etag, job_id = marker(ports, directory) if lost else seen
        if job_id == record.job_id:
            return
        if lost:
            own_record(ports, ticket, JobState.PUBLISHING)
        try:
            ports.store.put(
                directory.bucket, directory.success, body, if_absent=etag is None, if_match=etag
            )
        except (PreconditionError, NotFoundError):
            # Another job has just put its marker, or someone removed it: look again.
            ports.clock.sleep(min(MARKER_PAUSE * 2**lost, LONGEST_MARKER_PAUSE))
            continue
        return
    # A client that keeps writing over it, or removing it, could also do so a moment later (I12).
