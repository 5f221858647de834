"""RemoveReplaced: what the decided replace list names is deleted (I5, I10)."""

from dataclasses import replace
from functools import partial

from s3commit.core.documents.commit_manifest import publish_manifest
from s3commit.core.documents.decision_json import note_publishing
from s3commit.core.documents.pages import Unit, read_index, read_unit
from s3commit.core.documents.pendingset import PendingFile
from s3commit.core.documents.plan import planned_files
from s3commit.core.documents.replace_list import decode_replaced
from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs.guards import known_record, unless_overtaken
from s3commit.core.jobs.lost_lists import is_given_up
from s3commit.core.jobs.to_publish import found_before
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.clock import CallTime
from s3commit.core.ports.parallel import together


def remove_replaced(ports: Ports, ticket: Ticket) -> Ticket:
    """Delete what the decided replace list names, as it was seen then, and nothing else (I5, I10).

    All files of the job are visible now. Without a list, as in every appending job, there is
    nothing to delete. A long list takes several calls: while ``page`` of the ticket is not 0 the
    caller comes again. Raises as `read_index`.
    """
    directory = ticket.directory
    record, found = together(
        ports.parallel,
        partial(known_record, ports, ticket, JobState.PUBLISHING, JobState.COMMITTED),
        lambda: ticket.known.found or found_before(ports, ticket),
    )
    if record.state is JobState.COMMITTED:  # by a twin, which continues
        return replace(ticket.after(record), page=0)
    if record.replaced is None or not record.replaced.files or is_given_up(record):
        return replace(ticket, page=0)
    with unless_overtaken(ports, ticket, JobState.PUBLISHING):
        # After the first delete the job is never rolled back, even if the ledger is lost (I8):
        # otherwise old and new files could both be lost. And the new files are listed for readers
        # before an old one is deleted.
        index, *_ = together(
            ports.parallel,
            partial(read_index, ports.store, directory.of_replaced, record.replaced.sha256),
            partial(note_publishing, ports, record, found.decision),
            *([] if ticket.page else [partial(_list_files, ports, directory, record, found.few)]),
        )
        page = _remove(ports, directory, index, first=ticket.page)
    noted = found._replace(decision=None)
    return replace(ticket, page=page, known=replace(ticket.known, found=noted))


def _list_files(
    ports: S3Ports, directory: JobDirectory, record: JobRecord, few: list[PendingFile]
) -> None:
    publish_manifest(ports, directory, record, few or planned_files(ports, directory, record))


def _remove(ports: Ports, directory: JobDirectory, index: list[Unit], *, first: int) -> int:
    """Delete from page ``first`` on; the page with which another call resumes, 0 when all is done.

    Repeatable: each file is deleted only with the etag that was seen.
    """
    time = CallTime(ports.clock)
    pages = time.take(index[first:])
    decode = partial(decode_replaced, directory=directory)
    lists = (read_unit(ports.store, directory.of_replaced, page, decode) for page in pages)
    for _done in ports.parallel(partial(ports.store.delete_seen, directory.bucket), lists):
        pass
    return first + time.taken if time.is_cut else 0
