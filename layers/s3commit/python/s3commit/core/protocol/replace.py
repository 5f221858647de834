"""What a job that replaces removes: noted before the decision, deleted after it (I5, I10).

Nothing is deleted that is not on a page of the list that was decided
(`s3commit.core.protocol.replace_list`), and only as it was seen then. A list that somebody has
deleted or changed is written again where what lies at the destination proves what it said: the same
files in their order make the same pages, and their names are digests (docs/adr/0016).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain, islice

from s3commit.core.errors import JobRefusedError
from s3commit.core.layout import JobDirectory, belongs_to_job, is_data, partition_of
from s3commit.core.manifest import digest
from s3commit.core.model import JobRecord, Names, PendingFile, ReplacedFacts, Scope
from s3commit.core.policy import REMOVE_SECONDS
from s3commit.core.ports import ListedObject
from s3commit.core.protocol.partitions import read_partitions
from s3commit.core.protocol.pipeline import Pipeline
from s3commit.core.protocol.places import planned_files
from s3commit.core.protocol.replace_list import (
    LIST_CHANGED,
    in_pages,
    index_body,
    page_body,
    put_page,
    read_index,
    read_page,
)

LISTED_AHEAD = 5_000  # files of a partition, while others are listed

_Reach = tuple[JobDirectory, str, bool]  # a place, a prefix in it, and whether that reaches down


def files_of_before(
    pipeline: Pipeline, place: JobDirectory, record: JobRecord
) -> Iterator[ListedObject]:
    """The visible files in the reach of the job's policy that are not the job's own.

    Hidden names are no data. In scope partition a partition reaches down to every depth; the root
    as a partition means the files directly in it. A partition at a location is all that lies there,
    and in scope directory all of the job's locations are in reach. The partitions are listed side
    by side: thousands of them are more than one listing after the other could take. In memory is
    the beginning of each, so that one of millions of files fits as well.
    """
    locations = record.plan.locations if record.plan else {}
    if record.scope is Scope.DIRECTORY:
        for one in (place, *map(place.at, locations.values())):
            yield from _in_reach(pipeline, one, one.destination.prefix, deep=True)
        return

    def begin(reach: _Reach) -> tuple[list[ListedObject], Iterator[ListedObject]]:
        found = _in_reach(pipeline, reach[0], reach[1], deep=reach[2])
        return list(islice(found, LISTED_AHEAD)), found

    partitions = _partitions(pipeline, place, record, locations)
    for beginning, rest in pipeline.parallel(begin, partitions):
        yield from beginning
        yield from rest


def _in_reach(
    pipeline: Pipeline, place: JobDirectory, prefix: str, *, deep: bool
) -> Iterator[ListedObject]:
    for listed in pipeline.store.list(place.bucket, prefix):
        relative = place.relative(listed.key)
        if not is_data(relative) or belongs_to_job(listed.key, place.job_id):
            continue
        if deep or not partition_of(relative):
            yield listed


def _partitions(
    pipeline: Pipeline, place: JobDirectory, record: JobRecord, locations: Mapping[str, str]
) -> Iterator[_Reach]:
    """The prefixes to list."""
    root = place.destination.prefix
    covered = ""
    for name in sorted(read_partitions(pipeline, place, record)):
        if not name:
            yield place, root, False
        elif name in locations:
            yield place.at(locations[name]), locations[name], True
        elif not covered or not name.startswith(covered):  # one inside another is listed already
            covered = name
            yield place, root + name, True


def files_to_replace(
    pipeline: Pipeline, place: JobDirectory, record: JobRecord
) -> Iterator[ListedObject]:
    """`files_of_before` without the job's own, where their names do not tell."""
    own = own_files(pipeline, place, record)
    return (one for one in files_of_before(pipeline, place, record) if one.key not in own)


def own_files(pipeline: Pipeline, place: JobDirectory, record: JobRecord) -> dict[str, PendingFile]:
    """The job's own files where their names do not tell, by key."""
    if record.names is not Names.EXACT:
        return {}
    return {file.key: file for file in planned_files(pipeline, place, record)}


def remove_listed(
    pipeline: Pipeline, place: JobDirectory, record: JobRecord, *, first: int = 0
) -> int:
    """Delete what the decided list names from page ``first`` on; repeatable.

    Each file only with the etag that was seen. Returns the page to go on with when
    `REMOVE_SECONDS` are over, 0 when all is done. Raises `JobRefusedError` (``LIST_CHANGED``) if
    the list is not the one that was decided, and nothing proves what that said.
    """
    if record.replaced is None or not record.replaced.files:
        return 0
    removal = _Removal(pipeline, place, record, record.replaced)
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
        self, pipeline: Pipeline, place: JobDirectory, record: JobRecord, replaced: ReplacedFacts
    ) -> None:
        self.reading = 0
        self._pipeline = pipeline
        self._place = place
        self._record = record
        self._replaced = replaced
        self._pages: Sequence[str] = ()
        self._until = self._now() + timedelta(seconds=REMOVE_SECONDS)
        self._following = 0

    def run(self, first: int) -> int:
        """Delete from page ``first`` on; the page to go on with, or 0."""
        pipeline, place = self._pipeline, self._place
        self.reading = first
        if not self._pages:
            self._pages = read_index(pipeline.store, place, self._replaced)
        for _done in pipeline.parallel(
            lambda group: pipeline.store.delete_seen(place.bucket, group), self._groups(first)
        ):
            pass
        return self._following

    def restore(self, error: JobRefusedError) -> bool:
        """Write again what is gone; False if nothing is left that it could have named.

        Raises ``error`` if what is left is not what it named.
        """
        pipeline, place = self._pipeline, self._place
        left = in_pages(files_to_replace(pipeline, place, self._record))
        page = next(left, None)
        if page is None:
            return False
        if self._pages:
            body = page_body(page)
            if digest(body) == self._pages[self.reading]:
                put_page(pipeline, place, body)
                return True
        else:
            pages = [(len(one), digest(page_body(one))) for one in chain([page], left)]
            index = index_body(place, sum(n for n, _ in pages), [sha256 for _, sha256 in pages])
            if digest(index) == self._replaced.sha256:
                pipeline.store.put(place.bucket, place.replaced(digest(index)), index)
                return True
        raise JobRefusedError(
            f"{error.message}, and what lies there is not what it named: {page[0].key} for one."
            " Bring it back, or remove by hand what is to be replaced; then the job goes on",
            code=LIST_CHANGED,
        ) from error

    def _groups(self, first: int) -> Iterator[list[ListedObject]]:
        plan = self._record.plan
        places = (self._place, *map(self._place.at, plan.locations.values() if plan else ()))
        for number in range(first, len(self._pages)):
            if number > first and self._now() >= self._until:
                self._following = number
                return
            self.reading = number
            yield from read_page(self._pipeline.store, places, self._pages[number])

    def _now(self) -> datetime:
        return datetime.fromisoformat(self._pipeline.clock.now())
