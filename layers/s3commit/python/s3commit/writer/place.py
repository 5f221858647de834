"""What lies where a job is going to write, looked at before its first task.

Each look is bounded, and takes the right to list the bucket; without it nothing is looked at. The
jar looks at the same (``Place.java``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final, Protocol

from s3commit.core.formats.layout import hides_files, is_data, partition_of
from s3commit.core.model.errors import AccessError, InvalidInputError, NotFoundError
from s3commit.core.model.job import Destination
from s3commit.core.ports.objects import ObjectReader, listed_at

LOOKED_AT: Final = 5_000  # names or objects: five pages of a listing

# org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.charToEscape
_ESCAPED: Final = frozenset(map(chr, range(1, 0x20))) | frozenset("\"#%'*/:=?\\\x7f{[]^")
_ESCAPES: Final = str.maketrans({char: f"%{ord(char):02X}" for char in _ESCAPED})


class NamesReader(ObjectReader, Protocol):
    """Who can list a directory without what lies in those inside."""

    def names(self, bucket: str, prefix: str) -> Iterator[str]:
        """What lies directly below ``prefix``, a directory, with ``/`` behind a directory's name.

        In key order, each once; the directory's own marker is left out.
        """
        ...


def escape(name: str) -> str:
    """``name`` with the characters that Spark and Hive escape in a path, as ``%XX``."""
    return name.translate(_ESCAPES)


def refuse_objects(
    store: NamesReader, destination: Destination, partition_by: Sequence[str]
) -> None:
    """Raise `InvalidInputError` (``PATH_IS_OBJECT``) for an object at a directory's own name.

    At the destination's, ``t`` beside ``t/``, or at that of a partition of the first column. Spark
    would read the directory, other readers the object. Requests: a listing of one object; with
    ``partition_by`` one of the names in the destination.
    """
    bucket, prefix = destination.bucket, destination.prefix
    with _if_allowed():
        found = [prefix[:-1]] if listed_at(store, bucket, prefix[:-1]) else []
        if partition_by:
            start = escape(partition_by[0]) + "="
            names = islice(store.names(bucket, prefix), LOOKED_AT)
            found += [prefix + one for one in names if one.startswith(start) and one[-1] != "/"]
        if found:
            raise InvalidInputError(
                f"an object lies at s3://{bucket}/{found[0]}, where this write needs a directory,"
                " and some readers would read it instead: move or delete it, or write to another"
                " path. Nothing was written.",
                code="PATH_IS_OBJECT",
            )


def refuse_other_partitions(
    store: NamesReader, destination: Destination, partition_by: Sequence[str]
) -> None:
    """Raise `InvalidInputError` (``OTHER_PARTITIONS``) if files there have other columns.

    No reader could read both. As Spark reads a table: files that lie in no partition don't count
    if others do, and names are compared without case. Requests: two listings at most, of names and
    of the first partition.
    """
    with _if_allowed():
        found = _partitions_of_files(store, destination)
        ours = [escape(name) for name in partition_by]
        if found is not None and [*map(str.lower, found)] != [*map(str.lower, ours)]:
            raise InvalidInputError(
                f"the files at {destination.uri} are partitioned by {_listed(found)}, and this"
                f" write by {_listed(ours)}, so that no reader could read both: give the same"
                " columns, or checkPartitions=false. Nothing was written.",
                code="OTHER_PARTITIONS",
            )


def _partitions_of_files(store: NamesReader, destination: Destination) -> list[str] | None:
    """The partition columns of the first file, escaped; None if there seems to be no file."""
    bucket, prefix = destination.bucket, destination.prefix
    plain = False
    for name in islice(store.names(bucket, prefix), LOOKED_AT):
        if name.endswith("/") and "=" in name and not hides_files(name):
            for one in islice(store.list(bucket, prefix + name), LOOKED_AT):
                path = one.key[len(prefix) :]
                if is_data(path):
                    directories = partition_of(path).split("/")[:-1]
                    return [each.partition("=")[0] for each in directories if "=" in each]
        plain = plain or is_data(name)
    return [] if plain else None


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns) or "no column"


@contextmanager
def _if_allowed() -> Iterator[None]:
    """Whoever may not list finds out at the first document, and so does who has no bucket."""
    try:
        yield
    except (AccessError, NotFoundError):
        return
