"""What is committed at a destination, or by one job: the files that a read takes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.formats.layout import SUCCESS, JobDirectory, is_hidden
from s3commit.core.formats.locations import location_of
from s3commit.core.formats.published import MAX_SUCCESS_BYTES, success_files
from s3commit.core.job.documents import read_commit_manifest
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.core.model.job import Destination
from s3commit.core.ports.objects import ListedObject
from s3commit.spark.discover import FoundFile, data_files
from s3commit.spark.footer import other_format
from s3commit.spark.options import Options
from s3commit.writer.connect import shared_client

_TRIED: Final = 3
_LISTED: Final = 10_000


def committed_files(options: Options) -> list[FoundFile]:
    """The data files that are visible now, or those of the job ``options.job_id``.

    Raises `NotFoundError` if there is no such job, else as `data_files`.
    """
    destination = options.destination
    store = S3ObjectStore(shared_client())
    if options.job_id is None:
        listed = _listed(store, options)
        objects = ((one.key, one.length, one.etag) for one in listed)
        return data_files(destination, objects, options.locations)
    directory = JobDirectory(destination, options.job_id)
    try:
        header, entries = read_commit_manifest(store, directory)
    except NotFoundError as error:
        raise NotFoundError(
            f"job {options.job_id} is not committed at {destination.uri}: there is no"
            f" {directory.commits}"
        ) from error
    objects = ((one.key, one.length, one.etag) for one in entries)
    return data_files(destination, objects, header.locations)


def newest_file(destination: Destination, file_format: str) -> FoundFile | None:
    """A data file of that format, if possible of the job that was committed last; None: no file.

    Two requests if ``_SUCCESS`` names one; else a listing, of which the first 10,000 names are
    looked at. Raises S3's errors.
    """
    store = S3ObjectStore(shared_client())
    bucket, prefix = destination.bucket, destination.prefix
    try:
        marker = store.get(bucket, prefix + SUCCESS, max_bytes=MAX_SUCCESS_BYTES).body
    except (NotFoundError, InvalidInputError):
        marker = b""
    named = [key for key in success_files(marker) if _is_data(destination, key, file_format)]
    for key in named[:_TRIED]:
        facts = store.head(bucket, key)
        if facts is not None and facts.length:
            return data_files(destination, [(key, facts.length, facts.etag)])[0]
    for one in itertools.islice(store.list(bucket, prefix), _LISTED):
        if one.length and _is_data(destination, one.key, file_format):
            return data_files(destination, [(one.key, one.length, one.etag)])[0]
    return None


def _is_data(destination: Destination, key: str, file_format: str) -> bool:
    below = key.startswith(destination.prefix) and not is_hidden(key[len(destination.prefix) :])
    return below and not other_format(key, file_format)


def _listed(store: S3ObjectStore, options: Options) -> Iterator[ListedObject]:
    """What lies at the destination, but for partitions with a location; and what lies there."""
    destination, locations = options.destination, options.locations
    for listed in store.list(destination.bucket, destination.prefix):
        if not location_of(locations, listed.key[len(destination.prefix) :]):
            yield listed
    for prefix in locations.values():
        yield from store.list(destination.bucket, prefix)


def nothing_committed(options: Options) -> NotFoundError:
    """The error of a read that finds no file."""
    job = f" by job {options.job_id}" if options.job_id else ""
    where = options.destination.uri
    return NotFoundError(f"no data file is committed at {where}{job}: there is nothing to read")
