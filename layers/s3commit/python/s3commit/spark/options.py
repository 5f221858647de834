"""The options of `write`, parsed once into one frozen value.

As Spark's own, names are compared without case, and shown in the spelling of the documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from s3commit.aws.session import Encryption
from s3commit.core.formats.layout import parse_destination
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conditions, Conflict, Destination, Scope
from s3commit.spark.frames import refused
from s3commit.spark.parquet import CODECS
from s3commit.writer.job import DEFAULT_COMMIT_TIMEOUT
from s3commit.writer.transfer import (
    DEFAULT_PART_BYTES,
    DEFAULT_THREADS,
    PartSizes,
    UploadSettings,
)

MB: Final = 1024 * 1024
SESSION_SCOPE: Final = "spark.sql.sources.partitionOverwriteMode"
# As org.apache.spark.sql.DataFrameWriter reads them; `ignore` has no job that could do it.
MODES: Final = {
    "error": Conflict.FAIL,
    "errorifexists": Conflict.FAIL,
    "default": Conflict.FAIL,
    "append": Conflict.APPEND,
    "overwrite": Conflict.REPLACE,
}
ALGORITHMS: Final = ("AES256", "aws:kms", "aws:kms:dsse")
KNOWN: Final = (
    "partitionBy",
    "compression",
    "conflict",
    "partitionOverwriteMode",
    "checkPartitions",
    "conditions.minRows",
    "conditions.maxRows",
    "conditions.minFiles",
    "idempotencyKey",
    "maxRecordsPerFile",
    "partSize",
    "threads",
    "encryption",
    "encryptionKeyId",
    "bucketKey",
    "commitTimeout",
)
# Units as Spark spells them.
_SIZES: Final = {"": 1, "b": 1, "m": MB, "mb": MB, "g": 1024 * MB, "gb": 1024 * MB}
_TIMES: Final = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}

_T = TypeVar("_T")
_D = TypeVar("_D")


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for. Sizes are in bytes, times in seconds; None means no limit.

    ``compression`` and ``max_records_per_file`` are None where the session may say
    (`s3commit.spark.session`, `scope_in`), as is ``scope``; 0 records mean no limit, whatever it
    says. ``conflict`` is the mode's.
    """

    destination: Destination
    compression: str | None = None
    partition_by: tuple[str, ...] = ()
    conflict: Conflict = Conflict.APPEND
    scope: Scope | None = None
    max_records_per_file: int | None = None
    commit_timeout: float = DEFAULT_COMMIT_TIMEOUT
    idempotency_key: str | None = None
    check_partitions: bool = True
    conditions: Conditions = field(default_factory=Conditions)
    uploads: UploadSettings = field(default_factory=UploadSettings)
    encryption: Encryption | None = None

    @property
    def codec(self) -> str:
        """The compression that is asked for, else Spark's own default."""
        return self.compression or next(iter(CODECS))

    def scope_in(self, session_scope: str | None) -> Scope:
        """Where existing files count, by the option, else by the session's setting.

        Spark's own default is all of the destination.
        """
        if not self.partition_by or self.conflict is Conflict.APPEND:
            return Scope.DIRECTORY
        if self.scope is None and session_scope:
            return _scope_of(SESSION_SCOPE, session_scope)
        return self.scope or Scope.DIRECTORY


def parse_options(
    path: str,
    raw: Mapping[str, object],
    *,
    mode: str = "append",
    partition_by: tuple[str, ...] = (),
) -> Options:
    """The options of one write to ``path``; None stands for an option that is not given.

    Raises `InvalidInputError` for a mode or an option that is not known, for a value out of its
    range, for options that contradict each other or the mode (``BAD_OPTIONS``), and for a bad path.
    """
    mode = str(mode).lower()
    if mode not in MODES:
        raise refused(f"mode {mode!r} is none of {', '.join(MODES)}")
    said = _said(raw)

    def given(name: str, parse: Callable[[str, str], _T], default: _D) -> _T | _D:
        text = said.get(name.lower())
        return default if text is None else parse(name, text)

    columns = given("partitionBy", _columns, ())
    if partition_by and columns not in ((), partition_by):
        raise refused(
            f"partition_by is {', '.join(partition_by)} and the option partitionBy"
            f" {', '.join(columns)}: give one of them"
        )
    options = Options(
        destination=parse_destination(path),
        compression=given("compression", codec_of, None),
        partition_by=partition_by or columns,
        conflict=given("conflict", _one_of({str(one): one for one in Conflict}), MODES[mode]),
        scope=given("partitionOverwriteMode", _scope_of, None),
        max_records_per_file=given("maxRecordsPerFile", limit_of, None),
        commit_timeout=given("commitTimeout", _seconds, DEFAULT_COMMIT_TIMEOUT),
        idempotency_key=given("idempotencyKey", _key, None),
        check_partitions=given("checkPartitions", _truth, True),
        conditions=Conditions(
            min_rows=given("conditions.minRows", _whole, None),
            max_rows=given("conditions.maxRows", _whole, None),
            min_files=given("conditions.minFiles", _whole, None),
        ),
        uploads=UploadSettings(
            parts=PartSizes(first=given("partSize", _bytes, DEFAULT_PART_BYTES)),
            threads=given("threads", _whole, DEFAULT_THREADS),
        ),
        encryption=_encryption(
            given("encryption", _one_of({name: name for name in ALGORITHMS}), None),
            said.get("encryptionkeyid"),
            given("bucketKey", _truth, None),
        ),
    )
    if (options.conflict is Conflict.REPLACE) != (mode == "overwrite"):
        raise refused(
            f"option conflict={options.conflict} contradicts mode {mode!r}: leave the option out,"
            " and use mode='append' or mode='overwrite'"
        )
    if options.scope is Scope.PARTITION and not options.partition_by:
        raise refused(
            "option partitionOverwriteMode=dynamic needs the partitions' columns: give"
            " partition_by, such as partition_by='dt'"
        )
    return options


def _said(raw: Mapping[str, object]) -> dict[str, str]:
    """The options by their names in lower case; each once, and known."""
    said = dict[str, str]()
    known = {name.lower() for name in KNOWN}
    for name, value in raw.items():
        if name.lower() not in known:
            raise InvalidInputError(
                f"s3commit has no option {name!r}. Known options: {', '.join(KNOWN)}",
                code="UNKNOWN_OPTION",
            )
        if value is not None:
            text = str(value).strip()
            if said.setdefault(name.lower(), text) != text:
                raise refused(f"option {name} is given twice, with different values")
    return said


# The values of single options; each raises `InvalidInputError` (``BAD_OPTION``).


def _one_of(meanings: Mapping[str, _T]) -> Callable[[str, str], _T]:
    """What parses one of these words, in capitals or not, and returns what it means."""
    by_word = {word.lower(): meaning for word, meaning in meanings.items()}

    def parse(name: str, text: str) -> _T:
        if text.lower() not in by_word:
            raise _bad(name, text, "one of " + ", ".join(meanings))
        return by_word[text.lower()]

    return parse


codec_of: Final = _one_of(
    {**{name: name for name in CODECS}, "uncompressed": "none", "lz4_raw": "lz4"}
)
_truth: Final = _one_of({"true": True, "false": False})
_scope_of: Final = _one_of({"static": Scope.DIRECTORY, "dynamic": Scope.PARTITION})


def limit_of(name: str, text: str) -> int:
    """A number of records, or 0 for no limit: Spark takes a negative number for that too."""
    return max(0, _whole(name, text))


def _key(name: str, text: str) -> str:
    """Any text but a template that nobody filled in, under which all runs would count as one."""
    if "{{" in text or "{airflow}" in text:
        raise _bad(name, text, "what the template stands for: nobody has filled it in")
    return text


def _columns(name: str, text: str) -> tuple[str, ...]:
    columns = tuple(column.strip() for column in text.split(",")) if text else ()
    if "" in columns:
        raise _bad(name, text, "column names with a comma between them, such as dt,hour")
    return columns


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise _bad(name, text, "a whole number")
    return int(text)


def _bytes(name: str, text: str) -> int:
    return _measured(name, text, _SIZES, "a size such as 134217728, 128MB or 1g")


def _seconds(name: str, text: str) -> int:
    return _measured(name, text, _TIMES, "a time such as 600 (seconds), 90s, 10m or 1h")


def _measured(name: str, text: str, units: Mapping[str, int], wanted: str) -> int:
    """A whole number, more than none, of one of the units."""
    found = re.fullmatch(r"([0-9]{1,18})([a-z]*)", text.lower())
    if not found or found[2] not in units or not int(found[1]):
        raise _bad(name, text, wanted)
    return int(found[1]) * units[found[2]]


def _encryption(
    algorithm: str | None, key_id: str | None, bucket_key: bool | None
) -> Encryption | None:
    """How objects are encrypted; None means the bucket's own way."""
    if (key_id is not None or bucket_key is not None) and algorithm in {None, ALGORITHMS[0]}:
        raise InvalidInputError(
            "encryptionKeyId and bucketKey are KMS's: give encryption='aws:kms' beside them",
            code="BAD_OPTION",
        )
    return None if algorithm is None else Encryption(algorithm, key_id, bucket_key)


def _bad(name: str, text: str, wanted: str) -> InvalidInputError:
    return InvalidInputError(f"option {name}={text[:80]!r}: give {wanted}", code="BAD_OPTION")
