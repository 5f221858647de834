"""The keys of a job's files are free, or one is not."""

from bisect import bisect_right
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice

from s3commit.core.documents.pages import Unit, read_index, whole_pages
from s3commit.core.documents.plan import files_of_unit, planned_files
from s3commit.core.formats.layout import JobDirectory, owner_of
from s3commit.core.jobs.listings import PAGE, list_objects
from s3commit.core.model.limits import FILES_LOOKED_AT
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import listed_at


def taken_name(ports: S3Ports, record: JobRecord, keys: list[list[str]] | None = None) -> str:
    """The key of one of the job's files that an object has; empty if there is none.

    ``keys`` are those of a small plan in order, page by page; without them the plan is read.
    """
    directory = JobDirectory.of(record)
    if keys is None and record.planned.files > FILES_LOOKED_AT:
        return next(_listed(ports, directory, record), "")
    if keys is None:
        pages = whole_pages(read_index(ports.store, directory, record.planned.sha256))
        taken = ports.parallel(partial(_planned, ports, directory), pages)
    else:
        taken = ports.parallel(partial(_taken, ports, directory), keys)
    return next(chain.from_iterable(taken), "")


def _listed(ports: S3Ports, directory: JobDirectory, record: JobRecord) -> Iterator[str]:
    """As `_planned`, of all pages: few keys of a listing of the destination carry the job's id."""
    prefixes = (directory.destination.prefix,)
    named = {
        listed.key
        for listed in list_objects(ports, directory.bucket, prefixes)
        if owner_of(listed.key) == directory.job_id
    }
    files = planned_files(ports, directory, record) if named else ()
    return (file.key for file in files if file.key in named)


def _planned(ports: S3Ports, directory: JobDirectory, page: Unit) -> list[str]:
    """The keys of a page of the plan that an object has. Requests: a GET, and as `_taken`."""
    files = files_of_unit(ports.store, directory, page)
    return _taken(ports, directory, sorted(file.key for file in files))


def _taken(ports: S3Ports, directory: JobDirectory, keys: list[str]) -> list[str]:
    """Those of the keys, which are in order, that an object has.

    Requests: a listing; where a page of it does not reach as far as the files, a listing for each
    of the others.
    """
    prefix = directory.destination.prefix
    listing = ports.store.list(directory.bucket, prefix, after=keys[0][:-1])
    listed = [one.key for one in islice(listing, PAGE)]
    taken = set(keys).intersection(listed)
    if len(listed) == PAGE:
        unseen = keys[bisect_right(keys, listed[-1]) :]
        taken.update([key for key in unseen if listed_at(ports.store, directory.bucket, key)])
    return sorted(taken)
