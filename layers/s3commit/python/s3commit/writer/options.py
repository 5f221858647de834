"""The options of a write: one vocabulary, parsed once into one frozen value."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeVar, get_args

from s3commit.aws.clients import Boto3Session, Encryption
from s3commit.core.documents.job_json import (
    LABEL,
    MAX_KEY_CHARACTERS,
    MAX_LABELS,
    MAX_NOTE,
    NOTE,
    Conditions,
)
from s3commit.core.formats.layout import hides_files, parse_destination
from s3commit.core.formats.skipped_names import is_pattern, is_skipped
from s3commit.core.model.checks import MAX_COLUMN_NAME
from s3commit.core.model.destination import Conflict, Destination, Scope
from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.model.limits import MAX_WAIT_SECONDS
from s3commit.writer.access import OWN, Access
from s3commit.writer.transfer import UploadSettings

# Seconds: as long as a job may wait for its locks, and what it then takes at most.
DEFAULT_COMMIT_TIMEOUT: Final = MAX_WAIT_SECONDS + 900.0

Mode = Literal["append", "error", "errorifexists", "overwrite"]
"""How a job treats files that are there."""
OverwriteMode = Literal["static", "dynamic"]
"""Where files count: in all of the destination, or in the partitions that the job writes."""
Compression = Literal["snappy", "zstd", "gzip", "lz4", "none"]
"""Of the columns of a Parquet file; ``lz4`` is Parquet's ``LZ4_RAW``."""

# As Spark's writer reads them; no job can do `ignore`.
MODES: Final[Mapping[str, Conflict]] = {
    "append": Conflict.APPEND,
    "error": Conflict.FAIL,
    "errorifexists": Conflict.FAIL,
    "overwrite": Conflict.REPLACE,
}
SCOPES: Final[Mapping[str, Scope]] = {"static": Scope.DIRECTORY, "dynamic": Scope.PARTITION}
COMPRESSIONS: Final[Mapping[str, str]] = {name: name for name in get_args(Compression)}
NOT_EMPTY: Final = "DESTINATION_NOT_EMPTY"
COUNTS: Final = ("min_rows", "max_rows", "min_files")
WAY_OUT: Final = "give mode='append' to add files, or mode='overwrite' to replace those"
ABORTED: Final = "The job is aborted; none of its files becomes visible"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Options:
    """The program's options. Times are in seconds; None means no limit.

    Of a Spark write ``compression``, ``max_records_per_file`` (0: no limit) and ``scope`` are None
    where the session decides (`s3commit.spark.settings`, `scope_in`). ``conflict`` is the
    mode's. ``checks`` are the program's own; those of the conditions are made by the schema.
    """

    destination: Destination
    conflict: Conflict
    scope: Scope | None
    partition_by: tuple[str, ...] = ()
    idempotency_key: str | None = None
    conditions: Conditions = field(default_factory=Conditions)
    checks: Mapping[str, Mapping[str, Any]] | None = None
    commit_timeout: float = DEFAULT_COMMIT_TIMEOUT
    compression: str | None = None
    max_records_per_file: int | None = None
    check_partitions: bool = True
    check_names: bool = True
    check_schema: bool = True
    uploads: UploadSettings = field(default_factory=UploadSettings)
    encryption: Encryption | None = None
    note: str = ""
    labels: tuple[str, ...] = ()
    access: Access = field(default=OWN, repr=False, compare=False)

    def elsewhere(self, session: Boto3Session | None = None) -> "Options":
        """The same for tasks in another process, or with another session (`Access.elsewhere`)."""
        return replace(self, access=self.access.elsewhere(session), idempotency_key=None)

    @property
    def files_stay(self) -> bool:
        """True if files of others may stay beside the job's."""
        return self.conflict is Conflict.APPEND or self.scope is Scope.PARTITION

    @property
    def adds(self) -> bool:
        """False if the job replaces all that is at its destination."""
        return self.conflict is not Conflict.REPLACE or self.scope is Scope.PARTITION

    @property
    def codec(self) -> str:
        """The requested compression, else Spark's own default."""
        return self.compression or next(iter(COMPRESSIONS))

    def scope_in(self, session_scope: str | None) -> Scope:
        """Where existing files count, by the keyword, else by the session's setting.

        Spark's own default is all of the destination.
        """
        if not self.partition_by or self.conflict is Conflict.APPEND:
            return Scope.DIRECTORY
        if self.scope is None and session_scope:
            return meaning("spark.sql.sources.partitionOverwriteMode", session_scope, SCOPES)
        return self.scope or Scope.DIRECTORY


def make_options(
    path: str, *, mode: str = "append", boto3_session: Boto3Session | None = None, **others: Any
) -> Options:
    """The options of one write to ``path``; None is a keyword that is not given.

    Raises `InvalidInputError`: ``BAD_OPTION`` for a value that is not one of the keyword's,
    ``BAD_CONDITION`` for bounds that nothing can meet, and as `_check_names`.
    """
    given = {name: value for name, value in others.items() if value is not None}
    for name, value in given.items():
        if name in _WORDS:
            given[name] = meaning(name, value, _WORDS[name])
        elif not _KINDS[name][1](value):
            raise bad(name, value, _KINDS[name][0])
    if (key := given.get("idempotency_key")) is not None:
        check_key(key)
    if "{{" in str(path):
        raise bad("path", path, _FILLED_IN)
    destination, columns = parse_destination(path), _names(given.pop("partition_by", ()))
    conditions = Conditions(**{name: given.pop(name, None) for name in COUNTS})
    _check_names(destination, columns, for_all=given.get("check_names", True))
    return Options(
        destination=destination,
        conflict=meaning("mode", mode, MODES),
        scope=given.pop("partition_overwrite_mode", None),
        partition_by=columns,
        conditions=conditions,
        labels=tuple(map("=".join, given.pop("labels", {}).items())),
        access=OWN if boto3_session is None else Access(boto3_session),
        **given,
    )


def _check_names(destination: Destination, columns: Sequence[str], *, for_all: bool) -> None:
    """Refuse names by which all readers would miss rows, and ``for_all`` those by which some would.

    Raises `InvalidInputError`, for a column (``BAD_SCHEMA``) and for the path (``BAD_PATH``).
    """
    anyway = "to write it anyway, give check_names=False"
    for name in columns:
        if hides_files(directory := f"{name}="):
            why = "starts with a dot, so that readers skip its directories: rename it"
        elif for_all and is_skipped(directory):
            why = (
                "starts with '_', so that pyarrow and pandas skip its directories: rename it;"
                f" {anyway} (Spark, polars and DuckDB read it)"
            )
        else:
            continue
        raise InvalidInputError(f"partition_by column {name[:80]!r} {why}", code="BAD_SCHEMA")
    if for_all and is_pattern(destination.prefix):
        raise InvalidInputError(
            f"path {destination.uri!r} has one of * ? [ {{ \\ # %, so that some readers would read"
            f" other files instead: write to another path; {anyway}",
            code="BAD_PATH",
        )


@contextmanager
def nothing_written() -> Iterator[None]:
    """Have each error say so, as long as no file of the job is begun."""
    try:
        yield
    except S3CommitError as error:
        error.guarantee("Nothing was written.")
        raise


def keywords_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Of the arguments of a call, its ``locals()`` at first, the keywords of every write."""
    return {name: value for name, value in arguments.items() if name in KEYWORDS}


def for_a_table(options: Options) -> Options:
    """The same, for rows whose columns make the partitions. Raises `InvalidInputError`."""
    if options.scope is Scope.PARTITION and not options.partition_by:
        raise refused(
            "partition_overwrite_mode='dynamic' needs the partitions' columns: give partition_by,"
            " such as partition_by='dt'"
        )
    return options


def meaning(name: str, text: str, meanings: Mapping[str, _T]) -> _T:
    """The meaning of one of these words, in capitals or not. Raises `InvalidInputError`."""
    found = meanings.get(str(text).lower())
    if found is None:
        raise bad(name, text, "one of " + ", ".join(meanings))
    return found


def refused(why: str) -> InvalidInputError:
    """The error of a write that can't be made as it was requested."""
    return InvalidInputError(f"{why}", code="BAD_OPTIONS")


def bad(name: str, value: object, wanted: str) -> InvalidInputError:
    """The error of a keyword or an option with a value that it can't have."""
    why = f"{name}={repr(value)[:80]}: give {wanted}"
    return InvalidInputError(why, code="BAD_OPTION")


def _names(columns: str | Sequence[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= MAX_COLUMN_NAME


def _are_labels(value: object) -> bool:
    if not isinstance(value, Mapping) or len(value) > MAX_LABELS:
        return False
    texts = all(isinstance(one, str) for pair in value.items() for one in pair)
    return texts and all("=" not in one and LABEL.fullmatch(f"{one}={value[one]}") for one in value)


def _is_sound(encryption: object) -> bool:
    if not isinstance(encryption, Encryption) or encryption.algorithm not in ALGORITHMS:
        return False
    return encryption.algorithm != ALGORITHMS[0] or encryption == Encryption(ALGORITHMS[0])


def _are_checks(checks: object) -> bool:
    """True if each column has bounds of known names; the schema decides which values they have."""
    return isinstance(checks, Mapping) and all(
        _is_name(column) and isinstance(bounds, Mapping) and {*bounds} <= {"min", "max", "nulls"}
        for column, bounds in checks.items()
    )


ALGORITHMS: Final = ("AES256", "aws:kms", "aws:kms:dsse")
# Of a keyword that is one of some words, their meanings.
_WORDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "partition_overwrite_mode": SCOPES,
    "compression": COMPRESSIONS,
}
# The values of a keyword, in words, and whether a value is one.
_KINDS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "partition_by": (
        f"a column's name, or a list of names, each of 1 to {MAX_COLUMN_NAME} characters",
        lambda value: isinstance(value, Sequence) and all(map(_is_name, _names(value))),
    ),
    "idempotency_key": ("a text", lambda value: isinstance(value, str)),
    "note": (
        f"a text of at most {MAX_NOTE} characters, none of them a control character",
        lambda value: isinstance(value, str) and NOTE.fullmatch(value) is not None,
    ),
    "labels": (
        f"at most {MAX_LABELS} names (1 to 64 of A-Z a-z 0-9 _ . : / -), each with a text of at"
        " most 256 characters, none of them a control character",
        _are_labels,
    ),
    "commit_timeout": (
        "seconds, more than 0",
        lambda value: type(value) in {int, float} and 0 < value < math.inf,
    ),
    "max_records_per_file": (
        "a number of rows, or 0 for no limit",
        lambda value: type(value) is int and value >= 0,
    ),
    **dict.fromkeys(
        ("check_partitions", "check_names", "check_schema"),
        ("True or False", lambda value: isinstance(value, bool)),
    ),
    "uploads": ("s3commit.UploadSettings(...)", lambda value: isinstance(value, UploadSettings)),
    **dict.fromkeys(
        COUNTS, ("a whole number from 0", lambda value: type(value) is int and value >= 0)
    ),
    "checks": ("a dict of columns, each with a dict of min, max or nulls", _are_checks),
    "encryption": (
        "s3commit.Encryption(...), with AES256, aws:kms or aws:kms:dsse, and a key for KMS alone",
        _is_sound,
    ),
}


KEYWORDS: Final = frozenset({"mode", "boto3_session", *_WORDS, *_KINDS})


# Of Airflow and dbt, of a shell, of Python: what was to be filled in.
_TEMPLATE: Final = re.compile(r"\{\{|\$\{|%\(\w+\)|\{\w*\}")
_FILLED_IN: Final = "a value: the template was not filled in"


def check_key(key: str, name: str = "idempotency_key") -> None:
    """A template that was not filled in would be one key for all runs."""
    if not isinstance(key, str):
        raise bad(name, key, "a text")
    if _TEMPLATE.search(key):
        raise bad(name, key, _FILLED_IN)
    if key != key.encode(errors="replace").decode():
        raise bad(name, key, "characters that UTF-8 has")
    if not 1 <= len(key) <= MAX_KEY_CHARACTERS:
        raise bad(name, key, f"1 to {MAX_KEY_CHARACTERS:,} characters, not {len(key):,}")
