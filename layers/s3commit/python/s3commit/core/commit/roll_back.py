"""RollBack: a decided job of which a file is lost is undone."""

from contextlib import suppress
from functools import partial
from itertools import chain

from s3commit.core.documents.decision_json import note_end
from s3commit.core.documents.pages import Unit, read_index, whole_pages
from s3commit.core.documents.pendingset import PendingFile, expected_etag
from s3commit.core.documents.plan import files_of_unit
from s3commit.core.documents.ticket import Ticket
from s3commit.core.jobs.conclusion import conclude
from s3commit.core.jobs.guards import known_record, unless_overtaken
from s3commit.core.jobs.lost_lists import has_plan, is_given_up, told
from s3commit.core.jobs.ownership import abort, abort_uploads
from s3commit.core.jobs.rounds import next_round
from s3commit.core.model.errors import AccessError, InvalidInputError, PreconditionError
from s3commit.core.model.limits import ABORT_ROUNDS, FUNCTION_CLOCKS, LONGEST_CALL
from s3commit.core.model.moments import seconds
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.clock import CallTime
from s3commit.core.ports.objects import ObjectFacts, ObjectStore, listed_at


def roll_back(ports: Ports, ticket: Ticket) -> Ticket:
    """Undo a decided job of which a file is lost: afterwards none of its files are visible (I2).

    The files that the plan names are undone one by one; then every other upload of the job is
    aborted. While uploads are still being opened, or a call has no time for all, the job stays
    ROLLING_BACK, and the caller comes again. Raises `AccessError` where deleting a file is denied,
    and as `read_index`: the step resumes there when that is fixed.
    """
    record = known_record(ports, ticket, JobState.ROLLING_BACK, JobState.ROLLED_BACK)
    if record.state is JobState.ROLLING_BACK:
        time = CallTime(ports.clock)
        if is_given_up(record) and not has_plan(ports, record):
            return _without_plan(ports, ticket, record, time)
        with unless_overtaken(ports, ticket, JobState.ROLLING_BACK):
            # Twice, since S3 may let a completion take effect late (docs/adr/0007).
            units = read_index(ports.store, ticket.directory, record.planned.sha256)
            pages = 2 * whole_pages(units)
            reached = _undo_pages(ports, ticket, pages, time)
        if reached == len(pages) and record.locks:
            # All is undone: the locks protect nothing, and uploads may be opened on without end.
            note_end(ports, record, JobState.ROLLED_BACK)
            record = ports.ledger.release(record)
        if reached < len(pages) or not abort_uploads(ports, ticket.directory, time):
            return next_round(ports, ticket, record, page=reached, is_cut=time.is_cut)
        record = _end(ports, record)
    return conclude(ports, ticket, record)


def _without_plan(ports: Ports, ticket: Ticket, record: JobRecord, time: CallTime) -> Ticket:
    """End a job whose plan is lost. A name alone proves no object to be its own: none is deleted.

    It keeps its locks until all its uploads are aborted, and no call is left that knew the plan.
    """
    left = LONGEST_CALL + FUNCTION_CLOCKS - seconds(record.updated_at, ports.clock.now())
    if not abort_uploads(ports, ticket.directory, time) or left > 0:
        return next_round(ports, ticket, record, is_cut=time.is_cut)
    return conclude(ports, ticket, _end(ports, record))


def _end(ports: Ports, record: JobRecord) -> JobRecord:
    note_end(ports, record, JobState.ROLLED_BACK)
    failure, now = told(ports, record) if is_given_up(record) else None, ports.clock.now()
    return ports.ledger.advance(record, JobState.ROLLED_BACK, now=now, failure=failure)


def _undo_pages(ports: S3Ports, ticket: Ticket, pages: list[Unit], time: CallTime) -> int:
    """Undo the files from the ticket's page on; return how far this is, in pages."""
    read = partial(files_of_unit, ports.store, ticket.directory)
    files = chain.from_iterable(map(read, time.take(pages[ticket.page :])))
    left = sum(not done for done in ports.parallel(lambda file: _undo(ports.store, file), files))
    return ticket.page if left else ticket.page + time.taken


def _undo(store: ObjectStore, file: PendingFile) -> bool:
    """Abort the file's upload, then delete the file; False if S3 still holds parts of the upload.

    The abort fences off a worker that still completes: once the upload is aborted, nothing makes
    the file visible. The deleted object has the key, the length and the etag of a file of the plan,
    and no object had the key at the decision, so the job's own completion made it visible (I5). On
    a versioned bucket it stays as a version that is not current.
    """
    if not any(abort(store, file.bucket, file.key, file.upload_id) for _ in range(ABORT_ROUNDS)):
        return False
    try:
        facts = store.head(file.bucket, file.key)
    except (AccessError, InvalidInputError):  # it can't be read: its length alone can be seen
        seen = listed_at(store, file.bucket, file.key)
        facts = ObjectFacts(seen.key, seen.etag, seen.length, opaque=True) if seen else None
    if facts is not None and facts.matches(file.length, expected_etag(file)):
        with suppress(PreconditionError):  # another object, which is not the job's
            store.delete(file.bucket, file.key, if_match=facts.etag)
    return True
