"""RemoveReplaced: what the decided replace list names is deleted (I5, I10).

Nothing is deleted that is not on a page of the list that was decided
(`s3commit.core.job.replace_list`), and only as it was seen then. A list that somebody has deleted
or changed is written again where what lies at the destination proves what it said: the same files
in their order make the same pages, and their names are digests (docs/adr/0016).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from s3commit.core.ending.commit_manifest import publish_manifest
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.manifest import digest
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.decision_record import note_publishing
from s3commit.core.job.record import own_record, unless_overtaken
from s3commit.core.job.replace_list import (
    LIST_CHANGED,
    in_pages,
    index_body,
    page_body,
    put_page,
    read_index,
    read_page,
)
from s3commit.core.job.replaced_files import files_of_before
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.record import JobRecord, ReplacedFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.clock import CallTime
from s3commit.core.ports.objects import ListedObject


def remove_replaced(ports: Ports, ticket: Ticket) -> Ticket:
    """Delete what the decided replace list says, and nothing else (I5, I10).

    All files of the job are visible now. Without a list, as in every appending job, there is
    nothing to delete. A long list takes several calls: while ``page`` of the ticket is not 0 the
    caller comes again.
    """
    record = own_record(ports, ticket, JobState.PUBLISHING)
    with unless_overtaken(ports, ticket, JobState.PUBLISHING):
        if record.replaced is not None and record.replaced.files:
            # From its first delete on nothing leads back, whatever the ledger forgets (I8): else
            # both old and new could be gone. Nor is anything deleted while nobody can list what
            # is new.
            note_publishing(ports, record)
            if not ticket.page:
                publish_manifest(ports, ticket, record)
        page = remove_listed(ports, ticket.directory, record, first=ticket.page)
    return replace(ticket, page=page)


def remove_listed(
    ports: Ports, directory: JobDirectory, record: JobRecord, *, first: int = 0
) -> int:
    """Delete what the decided list names from page ``first`` on; repeatable.

    Each file only with the etag that was seen. Returns the page to go on with when
    the call's time is over, 0 when all is done. Raises `JobRefusedError` (``LIST_CHANGED``) if
    the list is not the one that was decided, and nothing proves what that said.
    """
    if record.replaced is None or not record.replaced.files:
        return 0
    removal = _Removal(ports, directory, record, record.replaced)
    number = first
    while True:
        try:
            return removal.run(number)
        except JobRefusedError as error:
            if error.code != LIST_CHANGED:
                raise
            # What was under way is done by now, so what is left begins with the page that is gone.
            number = removal.reading
            if not removal.restore(error):
                return 0


class _Removal:
    """One call: ``reading`` is the page at which it is, -1 before the index is read."""

    def __init__(
        self, ports: Ports, directory: JobDirectory, record: JobRecord, replaced: ReplacedFacts
    ) -> None:
        self.reading = 0
        self._ports = ports
        self._directory = directory
        self._record = record
        self._replaced = replaced
        self._pages: Sequence[str] = ()
        self._time = CallTime(ports.clock)
        self._following = 0

    def run(self, first: int) -> int:
        """Delete from page ``first`` on; the page to go on with, or 0."""
        ports, directory = self._ports, self._directory
        self.reading = first
        if not self._pages:
            self._pages = read_index(ports.store, directory, self._replaced)
        for _done in ports.parallel(
            lambda group: ports.store.delete_seen(directory.bucket, group), self._groups(first)
        ):
            pass
        return self._following

    def restore(self, error: JobRefusedError) -> bool:
        """Write again what is gone; False if nothing is left that it could have named.

        Raises ``error`` if what is left is not what it named.
        """
        ports, directory = self._ports, self._directory
        left = in_pages(files_of_before(ports, directory, self._record))
        page = next(left, None)
        if page is None:
            return False
        if self._pages:
            body = page_body(page)
            if digest(body) == self._pages[self.reading]:
                put_page(ports, directory, body)
                return True
        else:
            pages = [(len(one), digest(page_body(one))) for one in chain([page], left)]
            index = index_body(directory, sum(n for n, _ in pages), [sha256 for _, sha256 in pages])
            if digest(index) == self._replaced.sha256:
                ports.store.put(directory.bucket, directory.replaced(digest(index)), index)
                return True
        raise JobRefusedError(
            f"{error.message}, and what lies there is not what it named: {page[0].key} for one."
            " Bring it back, or remove by hand what is to be replaced; then the job goes on",
            code=LIST_CHANGED,
        ) from error

    def _groups(self, first: int) -> Iterator[list[ListedObject]]:
        for number in range(first, len(self._pages)):
            if number > first and self._time.is_over():
                self._following = number
                return
            self.reading = number
            yield from read_page(self._ports.store, self._directory, self._pages[number])
