"""Tells a table of the Glue Data Catalog which partitions a commit has made, and which are empty.

It may be repeated, runs in any order of the commits and beside itself, and changes no file. A new
partition is there when a call ends. Where a table drops empty partitions, the catalog is compared
with S3 after each commit that has removed files, and again after each drop: so a partition whose
files came meanwhile is there again, even if the call dies in between and another try ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from s3commit.aws.clock import SystemClock
from s3commit.aws.env import Catalog
from s3commit.aws.failures import translated
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.formats.catalog import NOTE, CatalogNote, directories_of, values_for
from s3commit.core.formats.layout import JobDirectory, directories_above, is_data, partition_of
from s3commit.core.formats.strict_json import one_line
from s3commit.core.job.plan import in_groups
from s3commit.core.model.errors import InvalidInputError, S3CommitError, TransientError
from s3commit.core.ports.objects import ListedObject

# https://docs.aws.amazon.com/glue/latest/webapi/API_BatchCreatePartition.html
CREATED_AT_ONCE: Final = 100
# https://docs.aws.amazon.com/glue/latest/webapi/API_BatchDeletePartition.html
DROPPED_AT_ONCE: Final = 25


@dataclass(frozen=True, slots=True)
class GlueTable:
    """A table as Glue has it: ``location`` with its ``/``, ``keys`` with their types."""

    glue: Any
    catalog: Catalog
    bucket: str
    location: str
    keys: tuple[tuple[str, str], ...]
    storage: dict[str, Any]

    @property
    def _names(self) -> dict[str, str]:
        database, _, table = self.catalog.table.partition(".")
        return {"DatabaseName": database, "TableName": table}

    def values(self, path: str) -> list[str]:
        """The values of a directory below the table. Raises as `values_for`."""
        return values_for(path, self.keys)

    def has(self, path: str) -> bool:
        """Whether a directory can be a partition of the table: others' files may lie anywhere."""
        with suppress(InvalidInputError):
            return bool(self.values(path))
        return False

    def create(self, paths: Iterable[str]) -> None:
        """Create the partitions that are not there; each has the format of the table."""
        inputs = (
            {
                "Values": self.values(path),
                "StorageDescriptor": {**self.storage, "Location": self.location + path},
            }
            for path in sorted(paths)
        )
        for some in in_groups(inputs, CREATED_AT_ONCE):
            with translated(f"creating partitions of {self.catalog.table}"):
                answer = self.glue.batch_create_partition(**self._names, PartitionInputList=some)
            self._refuse(answer, "AlreadyExistsException")

    def registered(self, below: str) -> dict[str, list[str]]:
        """The values of the partitions whose location is ``below`` the table, by location."""
        asked, start = {**self._names, "ExcludeColumnSchema": True}, len(self.location)
        found: dict[str, list[str]] = {}
        with translated(f"reading the partitions of {self.catalog.table}"):
            for page in self.glue.get_paginator("get_partitions").paginate(**asked):
                for one in page["Partitions"]:
                    at = f"{one['StorageDescriptor']['Location'].rstrip('/')}/"
                    if at.startswith(self.location + below):
                        found[at[start:]] = one["Values"]
        return found

    def drop(self, partitions: Iterable[list[str]]) -> None:
        """Take partitions out of the catalog; their location is left alone."""
        for some in in_groups(({"Values": values} for values in partitions), DROPPED_AT_ONCE):
            with translated(f"dropping partitions of {self.catalog.table}"):
                answer = self.glue.batch_delete_partition(**self._names, PartitionsToDelete=some)
            self._refuse(answer, "EntityNotFoundException")

    def _refuse(self, answer: dict[str, Any], harmless: str) -> None:
        errors = [one["ErrorDetail"] for one in answer.get("Errors", ())]
        for one in errors:
            if one["ErrorCode"] != harmless:
                raise TransientError(
                    f"Glue refused a partition of {self.catalog.table}:"
                    f" {one.get('ErrorMessage', 'no message')} ({one['ErrorCode']})"
                )


def read_table(glue: Any, catalog: Catalog, bucket: str) -> GlueTable:
    """The table, if it lies where the parameter says. Raises `InvalidInputError` if elsewhere."""
    database, _, name = catalog.table.partition(".")
    with translated(f"reading table {catalog.table} of the Glue Data Catalog"):
        found = glue.get_table(DatabaseName=database, Name=name)["Table"]
    storage = found["StorageDescriptor"]
    location = f"{storage.get('Location', '').rstrip('/')}/"
    # A catalog may say ``s3a://``.
    if location.partition("://")[2] != f"{bucket}/{catalog.prefix}":
        raise InvalidInputError(
            f"table {catalog.table} lies at {location}, and the parameter catalogs says"
            f" s3://{bucket}/{catalog.prefix}: mend one of them"
        )
    keys = tuple((one["Name"], one.get("Type", "")) for one in found.get("PartitionKeys", ()))
    return GlueTable(glue, catalog, bucket, location, keys, storage)


def tell(store: S3ObjectStore, glue: Any, catalog: Catalog, directory: JobDirectory) -> int:
    """Tell the table of a committed job; return in how many partitions the job has files.

    Raises `S3CommitError`: perhaps some partitions were created or dropped; repeat it.
    """
    table = read_table(glue, catalog, directory.bucket)
    lines = store.lines(directory.bucket, directory.commits)
    header, paths = directories_of(lines, directory, catalog.prefix)
    if not table.keys and not any("=" in path for path in paths):
        return 0
    table.create(paths)
    # What the job has written may be gone by now: a later job's event may have come before.
    removed = header.replaced is not None and header.replaced.files
    if catalog.drops_empty and (removed or not all(map(partial(_is_full, store, table), paths))):
        _compare(store, table, directory.destination.prefix)
    return len(paths)


def _full(store: S3ObjectStore, table: GlueTable, prefix: str) -> Iterator[str]:
    """The directory of each data file there; some come again and again."""
    keys = (one.key[len(table.catalog.prefix) :] for one in store.list(table.bucket, prefix))
    return (partition_of(key) for key in keys if is_data(key))


def _is_full(store: S3ObjectStore, table: GlueTable, path: str) -> bool:
    return next(_full(store, table, table.catalog.prefix + path), None) is not None


def _compare(store: S3ObjectStore, table: GlueTable, destination: str) -> None:
    """Make the partitions below a destination those that have files, and look again."""
    while True:
        registered = table.registered(destination[len(table.catalog.prefix) :])
        full = set(_full(store, table, destination))
        table.create(filter(table.has, full - registered.keys()))
        above = {outer for path in full for outer in directories_above(path)}
        empty = registered.keys() - full - above
        if not empty:
            return
        table.drop(registered[path] for path in sorted(empty))


@contextmanager
def noted(store: S3ObjectStore, catalog: Catalog, directory: JobDirectory) -> Iterator[None]:
    """While it lasts, and when it failed, a note says that the table does not know the job."""
    note = CatalogNote(directory.job_id, catalog.table, SystemClock().now())
    etag = store.put(directory.bucket, directory.catalog, NOTE.encode(note))
    try:
        yield
    except S3CommitError as error:
        failed = CatalogNote(note.job_id, note.table, note.tried_at, one_line(error.message))
        store.put(directory.bucket, directory.catalog, NOTE.encode(failed))
        raise
    # A second delivery of the event may have put its own by now, and deletes that itself.
    store.delete_seen(directory.bucket, [ListedObject(directory.catalog, etag, 0)])
