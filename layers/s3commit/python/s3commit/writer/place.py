"""Checks of the place where a job is going to write, before its first task.

All looks are bounded. Without the right to list the bucket nothing is looked at. The jar looks at
the same (``Place.java``).
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol

from s3commit.core.formats.layout import SUMMARIES, hides_files, is_data, partition_of
from s3commit.core.model.destination import Conflict, Destination, Scope
from s3commit.core.model.errors import AccessError, InvalidInputError, NotFoundError
from s3commit.core.ports.objects import ListedObject, ObjectReader, listed_at
from s3commit.writer.options import NOT_EMPTY, WAY_OUT, Options

LOOKED_AT: Final = 5_000  # names or objects: five pages of a listing
PAGE: Final = 1_000
PARTITIONS: Final = 5  # in which a file is looked for: in all of them may be markers alone
# Ends of names: a directory, and the marker of one that EMRFS and s3n leave beside it.
_DIRECTORIES: Final = ("/", "_$folder$")


class Log(NamedTuple):
    """A name that another writer leaves in a directory, whose readers then see its own files alone.

    ``holds`` is found in a name in it, where the name of the log alone says nothing.
    """

    name: str
    advice: str
    holds: str = ""


# The same as Place.java's. Spark's readers ask only whether the first exists
# (org.apache.spark.sql.execution.streaming.FileStreamSink.hasMetadata).
LOGS: Final = (
    Log(
        "_spark_metadata",
        "is written by a stream of Spark's file sink, and readers see its files alone: write to"
        " another path, or, if that stream will not run again, delete the log with the stream's"
        " checkpoint",
    ),
    Log("_delta_log", "is a table of Delta Lake: write with format('delta')"),
    Log(".hoodie", "is a table of Apache Hudi: write with format('hudi')"),
    Log(
        "metadata",
        "is a table of Apache Iceberg: write to it by its name in a catalog of Iceberg's, or"
        " to another path",
        r"^(v[0-9]+|[0-9]{5,}-[0-9a-f-]{36})(\.gz)?\.metadata\.json|-m[0-9]+\.avro$",
    ),
)

SUMMARY_ADVICE: Final = (
    "the summary of other Parquet files, by which some readers go, and would not see new files or"
    " columns: delete it unless a reader of yours needs it, or permit it with"
    " check_partitions=False"
)

NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"  # its name as a value
# org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.charToEscape
_ESCAPED: Final = frozenset(map(chr, range(1, 0x20))) | frozenset("\"#%'*/:=?\\\x7f{[]^")
_ESCAPES: Final = str.maketrans({char: f"%{ord(char):02X}" for char in _ESCAPED})


class TailReader(ObjectReader, Protocol):
    """A store that can read a file's end."""

    def last_bytes(self, bucket: str, key: str, count: int) -> bytes:
        """The last ``count`` bytes of the object, or all that it has.

        Raises as `first_bytes`, but for an object that is empty some stores give no bytes.
        """


def escape(name: str) -> str:
    """``name`` with the characters that Spark and Hive escape in a path, as ``%XX``."""
    return name.translate(_ESCAPES)


def check_place(
    store: TailReader, options: Options, *, compares: bool = True
) -> ListedObject | None:
    """Refuse a place where readers would not find all rows. Raises `InvalidInputError`.

    ``PATH_IS_OBJECT``: an object has a directory's own name, the destination's (``t`` beside
    ``t/``), or that of a partition of the first column. Spark reads the directory, other readers
    the object. ``OTHER_LOG``: readers go by the log of another writer, or, if the job adds to what
    is there, by a summary of the files. ``OTHER_PARTITIONS``: the files that are there stay, and
    have other partition columns, or the same in other capitals, so that readers could not read both
    as one table. As Spark reads a table, files outside of partitions don't count if others are in
    one.

    Returns the newest of the data files seen, if they stay and it ``compares`` them; None without
    one.

    Requests: listings of one object, and beside it of the names in the destination; then, if it
    compares, one of a few partitions, until one has a file, for each name of their column.
    """
    destination, columns = options.destination, [*map(escape, options.partition_by)]
    bucket, prefix = destination.bucket, destination.prefix
    try:
        own, found = side_by_side(
            partial(listed_at, store, bucket, prefix[:-1]),
            lambda: list(islice(store.below(bucket, prefix), LOOKED_AT)),
        )
        names = [one.key[len(prefix) :] for one in found]
        _refuse_objects(destination, own is not None, names, columns)
        _refuse_other_log(store, destination, names)
        if options.adds and options.check_partitions:
            _refuse_summary(destination, names)
        stay = compares and options.files_stay
        files = list(_newest(store, destination, found)) if stay else []
    except (AccessError, NotFoundError):
        return None  # without the right to list, the first document fails, as without a bucket
    for file in files if options.check_partitions else ():
        _refuse_other_columns(destination, file, columns)
    return max(files, key=_age, default=None)


def refuse_files(store: TailReader, options: Options) -> None:
    """Raise `InvalidInputError` if the mode refuses a file that is there: better now than later.

    The pipeline checks again at the decision; only that check counts. Only it knows, too, which
    partitions the job has.
    """
    if options.conflict is not Conflict.FAIL or options.scope is Scope.PARTITION:
        return
    bucket, prefix = options.destination.bucket, options.destination.prefix
    try:
        listed = islice(store.list(bucket, prefix), LOOKED_AT)
        found = next((one.key for one in listed if is_data(one.key[len(prefix) :])), None)
    except (AccessError, NotFoundError):  # the right to write is another; no bucket
        return
    if found is not None:
        raise InvalidInputError(
            f"mode 'error': s3://{bucket}/{found} already exists; {WAY_OUT}.", code=NOT_EMPTY
        )


def side_by_side(*calls: Callable[[], Any]) -> list[Any]:
    """The answers of calls that wait for a server. Raises the first one's error of those raised."""
    with ThreadPoolExecutor(len(calls), thread_name_prefix="s3commit-look") as threads:
        return [answer.result() for answer in [threads.submit(call) for call in calls]]


def _refuse_objects(
    destination: Destination, own: bool, names: Sequence[str], columns: Sequence[str]
) -> None:
    found = [destination.prefix[:-1]] if own else []
    if columns:
        start = columns[0] + "="
        here = (one for one in names if one.startswith(start) and not one.endswith(_DIRECTORIES))
        found += (destination.prefix + one for one in here)
    if found:
        raise InvalidInputError(
            f"an object is at s3://{destination.bucket}/{found[0]}, where this write may need a"
            " directory, and some readers would read the object instead: move or delete it, or"
            " write to another path.",
            code="PATH_IS_OBJECT",
        )


def _refuse_other_log(store: TailReader, destination: Destination, names: Sequence[str]) -> None:
    seen = {name.removesuffix("/") for name in names}
    is_cut = len(names) == LOOKED_AT  # then it may be behind those that were seen
    for log in LOGS:
        if (is_cut or log.name in seen) and _has(store, destination, log):
            raise InvalidInputError(
                f"{destination.uri}{log.name} exists: the directory {log.advice}.", code="OTHER_LOG"
            )


def _refuse_summary(destination: Destination, names: Sequence[str]) -> None:
    for name in SUMMARIES:
        if name in names:
            raise InvalidInputError(
                f"{destination.uri}{name} exists: {SUMMARY_ADVICE}.", code="OTHER_LOG"
            )


def _has(store: TailReader, destination: Destination, log: Log) -> bool:
    bucket, key = destination.bucket, destination.prefix + log.name
    if log.holds:
        found = islice(store.below(bucket, key + "/"), LOOKED_AT)
        return any(re.search(log.holds, one.key[len(key) + 1 :]) for one in found)
    inside = next(iter(store.list(bucket, key + "/")), None)
    return inside is not None or listed_at(store, bucket, key) is not None


def _refuse_other_columns(
    destination: Destination, file: ListedObject, columns: Sequence[str]
) -> None:
    """``columns`` and those of the file's directories are escaped."""
    directories = partition_of(file.key[len(destination.prefix) :]).split("/")
    found = [each.partition("=")[0] for each in directories if "=" in each]
    if found != list(columns):
        raise InvalidInputError(
            f"the files at {destination.uri} are partitioned by {_listed(found)}, this write by"
            f" {_listed(columns)}, and readers could not read both as one table: give the same"
            " columns, in the same capitals, or check_partitions=False.",
            code="OTHER_PARTITIONS",
        )


def newest_beside(
    store: TailReader, destination: Destination, partitions: Collection[str]
) -> ListedObject | None:
    """As `check_place`, the newest data file seen outside of ``partitions``, whole prefixes.

    As there, files outside of all partitions don't count.
    """
    those = tuple(partitions)
    below = islice(store.below(destination.bucket, destination.prefix), LOOKED_AT)
    left = [one for one in below if one.key.endswith("/") and not one.key.startswith(those)]
    return max(_newest(store, destination, left, without=those), key=_age, default=None)


def _newest(
    store: TailReader,
    destination: Destination,
    below: Sequence[ListedObject],
    without: tuple[str, ...] = (),
) -> Iterator[ListedObject]:
    """The newest data file on the first page of the last partition that has one.

    One for each spelling of the first column. Of those ``below`` where there are no partitions.
    """
    bucket, start = destination.bucket, len(destination.prefix)

    def newest(found: Iterable[ListedObject]) -> ListedObject | None:
        data = (one for one in found if is_data(one.key[start:]))
        left = (one for one in data if not one.key.startswith(without))
        return max(left, key=_age, default=None)

    partitions: dict[str, list[str]] = {}
    for name in (one.key[start:] for one in below):
        if name[-1] == "/" and "=" in name and not hides_files(name):
            partitions.setdefault(name.partition("=")[0], []).append(name)
    if not partitions and (file := newest(below)) is not None:
        yield file
    for those in [*partitions.values()][:PARTITIONS]:
        those.sort(
            key=lambda name: not name.endswith(f"={NULL_PARTITION}/")
        )  # it is not the last day
        for name in those[: -PARTITIONS - 1 : -1]:
            file = newest(islice(store.list(bucket, destination.prefix + name), PAGE))
            if file is not None:
                yield file
                break


def _age(file: ListedObject) -> tuple[str, str]:
    return file.modified, file.key


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns) or "no column"
