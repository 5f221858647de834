"""Notifies a table of the Glue Data Catalog of a commit's new partitions, and of empty ones.

It may be repeated, runs in any order of the commits and beside itself, and changes no file. A new
partition is there when a call ends. Where a table drops empty partitions, the catalog is compared
with S3 after each commit that has removed files, and again after each drop: so a partition whose
files came in between is there again, even if the call dies in between and another try ends it.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, filterfalse
from typing import Any, Final
from urllib.parse import unquote

from s3commit.aws.env import Catalog
from s3commit.aws.failures import translated
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.documents.catalog_note import CATALOG_NOTE, LONGEST_ERROR, CatalogNote
from s3commit.core.documents.commit_manifest import MAX_WHOLE_BYTES, stream_commit_manifest
from s3commit.core.documents.pages import in_groups
from s3commit.core.formats.layout import JobDirectory, directories_above, is_data, partition_of
from s3commit.core.model.errors import InvalidInputError, S3CommitError, TransientError

# The limit of BatchDeletePartition; that of BatchCreatePartition is 100:
# https://docs.aws.amazon.com/glue/latest/webapi/API_BatchDeletePartition.html
AT_ONCE: Final = 25
_AS_WANTED: Final = {"AlreadyExistsException", "EntityNotFoundException"}


class GlueTable:
    """A table as Glue has it. Raises `InvalidInputError` if its location is not the parameter's."""

    def __init__(self, glue: Any, catalog: Catalog, bucket: str) -> None:
        self.catalog, self._glue = catalog, glue
        database, _, name = catalog.table.partition(".")
        self._names = {"DatabaseName": database, "TableName": name}
        with translated(f"reading table {catalog.table} of the Glue Data Catalog"):
            found = glue.get_table(DatabaseName=database, Name=name)["Table"]
        self._storage = found["StorageDescriptor"]
        self._location = f"{self._storage.get('Location', '').rstrip('/')}/"
        self._columns = [one["Name"].lower() for one in found.get("PartitionKeys", ())]
        # A catalog may say ``s3a://``.
        if self._location.partition("://")[2] != f"{bucket}/{catalog.prefix}":
            raise InvalidInputError(
                f"table {catalog.table} is at {self._location}, but the parameter catalogs says"
                f" s3://{bucket}/{catalog.prefix}: correct one of them"
            )

    def values(self, path: str) -> list[str]:
        """The values of ``dt=2026-11-21/hour=3/``, as Spark's `unescapePathName` reads them.

        Raises `InvalidInputError` if the table has other partition columns.
        """
        elements = [unquote(one, "latin-1").partition("=") for one in path.split("/")[:-1]]
        # Glue has its names in lower case, and Spark compares them without case.
        names = [name.lower() if equals else "" for name, equals, _ in elements]
        if names != self._columns:
            raise InvalidInputError(
                f"{path[:200]!r} is not a partition of table {self.catalog.table}, whose partition"
                f" columns are {', '.join(self._columns) or 'none'}: write with these, or correct"
                " the table"
            )
        return [value for _, _, value in elements]

    def has(self, path: str) -> bool:
        """True if a directory can be a partition: other people's files may be anywhere.

        An empty value is none: botocore refuses it, by Glue's model (`ValueString`), and Spark
        writes `__HIVE_DEFAULT_PARTITION__` in its place.
        """
        try:
            values = self.values(path)
        except InvalidInputError:
            return False
        return bool(values) and all(values)

    def create(self, paths: Iterable[str]) -> None:
        """Create the partitions that are not there; each has the format of the table.

        One that Glue refuses is reported when all others are there.
        """
        found = ((path, self.values(path)) for path in sorted(paths))
        created = (
            {"Values": values, "StorageDescriptor": {**self._storage, "Location": at}}
            for path, values in found
            if (at := self._location + path) and values
        )
        self._change("batch_create_partition", PartitionInputList=created)

    def drop(self, partitions: Iterable[list[str]]) -> None:
        """Take partitions out of the catalog; their location is left alone."""
        dropped = ({"Values": values} for values in partitions)
        self._change("batch_delete_partition", PartitionsToDelete=dropped)

    def _change(self, operation: str, **given: Iterable[Any]) -> None:
        ((argument, partitions),) = given.items()
        refused: list[Any] = []
        for some in in_groups(partitions, AT_ONCE):
            with translated(f"{operation} of table {self.catalog.table}"):
                answer = getattr(self._glue, operation)(**self._names, **{argument: some})
            refused += (
                one
                for one in answer.get("Errors", ())
                if one["ErrorDetail"]["ErrorCode"] not in _AS_WANTED
            )
        if refused:
            one = refused[0]
            raise TransientError(
                f"{operation} of table {self.catalog.table}: {len(refused)} partitions refused, as"
                f" {one.get('PartitionValues')}: {one['ErrorDetail']}"
            )

    def registered(self, below: str) -> dict[str, list[str]]:
        """The values of the partitions whose location is ``below`` the table, by location."""
        asked, start = {**self._names, "ExcludeColumnSchema": True}, len(self._location)
        found: dict[str, list[str]] = {}
        with translated(f"reading the partitions of {self.catalog.table}"):
            for page in self._glue.get_paginator("get_partitions").paginate(**asked):
                for one in page["Partitions"]:
                    at = f"{one['StorageDescriptor']['Location'].rstrip('/')}/"
                    if at.startswith(self._location + below):
                        found[at[start:]] = one["Values"]
        return found


def full(store: S3ObjectStore, bucket: str, catalog: Catalog, below: str) -> Iterator[str]:
    """The directory of each data file ``below`` the table; some come again and again."""
    keys = (one.key[len(catalog.prefix) :] for one in store.list(bucket, catalog.prefix + below))
    return (partition_of(key) for key in keys if is_data(key))


def tell(store: S3ObjectStore, glue: Any, catalog: Catalog, directory: JobDirectory) -> int:
    """Tell the table of a committed job; return in how many partitions the job has files.

    Until that went through, a `CatalogNote` says that the table does not know the job. Raises
    `S3CommitError`: perhaps some partitions were created or dropped; repeat it.
    """
    bucket = directory.bucket
    store.put(bucket, directory.catalog, CATALOG_NOTE.encode(CatalogNote(catalog.table)))
    try:
        table = GlueTable(glue, catalog, bucket)
        header, files = stream_commit_manifest(store, directory, max_bytes=MAX_WHOLE_BYTES)
        paths = {partition_of(file.key[len(catalog.prefix) :]) for file in files}
        table.create(filter(table.has, paths))
        # The job's files may have been removed: a later job's event may have come before.
        gone = (path for path in paths if next(full(store, bucket, catalog, path), None) is None)
        removed = header.replaced_files > 0
        again = catalog.drops_empty and (removed or any(True for _ in gone))
        while again:
            below = directory.destination.prefix[len(catalog.prefix) :]
            registered = table.registered(below)
            there = set(full(store, bucket, catalog, below))
            table.create(path for path in there - registered.keys() if table.has(path))
            # Hive and Athena read below a location too.
            there.update([*chain.from_iterable(map(directories_above, there))])
            empty = registered.keys() - there
            table.drop(registered[path] for path in empty)
            again = bool(empty)
        table.create(filterfalse(table.has, paths))  # that may be refused
    except S3CommitError as error:
        note = CatalogNote(catalog.table, error.message[:LONGEST_ERROR])
        store.put(bucket, directory.catalog, CATALOG_NOTE.encode(note))
        raise
    store.delete(bucket, directory.catalog)
    return len(paths)
