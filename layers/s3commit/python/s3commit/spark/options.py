"""The options of `write`, parsed once into one frozen value.

As Spark's own, names are compared without case, and shown in the spelling of the documentation.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from s3commit.aws.s3_client import Encryption
from s3commit.core.formats.documents import MAX_KEY_CHARACTERS
from s3commit.core.formats.layout import parse_destination
from s3commit.core.model.conditions import Conditions
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conflict, Destination, Scope
from s3commit.spark.airflow import with_run
from s3commit.spark.formats import FORMATS
from s3commit.writer.config import Config
from s3commit.writer.options import (
    DEFAULT_COMMIT_TIMEOUT,
    NULL_FRACTION,
    OF_ENCRYPTION,
    bad_option,
    check_option,
    conditions_of,
    encryption_of,
    one_of,
    parse_duration,
    parse_scope,
    parse_size,
    upload_settings,
)
from s3commit.writer.options import (
    KNOWN as CONFIGURABLE,
)
from s3commit.writer.sizes import UploadSettings

MB: Final = 1024 * 1024
DEFAULT_MEMORY_BUDGET: Final = 256 * MB

# What belongs to one job; the rest may stand in a configuration too.
KNOWN: Final = (
    "path",
    "fileFormat",
    "compression",
    "partitionBy",
    "maxRecordsPerFile",
    "targetFileBytes",
    "idempotencyKey",
    *CONFIGURABLE,
)
_SPELLING: Final = {name.lower(): name for name in KNOWN if not name.startswith(NULL_FRACTION)}
_NULL_FRACTION: Final = NULL_FRACTION.lower()
_UPLOAD: Final = ("upload", "partSize", "threads", "spoolDirectory")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for. Sizes are in bytes, times in seconds; None means no limit.

    ``compression`` and ``max_records_per_file`` are None where the session may say
    (`s3commit.spark.session`); 0 records mean no limit, whatever it says.

    ``conflict`` and ``scope`` are the program's word, None without one; ``usual_conflict`` and
    ``usual_scope`` are the configuration's. `s3commit.spark.policy` makes one policy of them.
    """

    destination: Destination
    file_format: str = "parquet"
    compression: str | None = None
    partition_by: tuple[str, ...] = ()
    conflict: Conflict | None = None
    scope: Scope | None = None
    usual_conflict: Conflict | None = None
    usual_scope: Scope | None = None
    max_records_per_file: int | None = None
    target_file_bytes: int | None = None
    commit_timeout: float = DEFAULT_COMMIT_TIMEOUT
    idempotency_key: str | None = None
    conditions: Conditions = field(default_factory=Conditions)
    memory_budget: int = DEFAULT_MEMORY_BUDGET
    uploads: UploadSettings = field(default_factory=UploadSettings)
    encryption: Encryption | None = None

    @property
    def codec(self) -> str:
        """The compression that is asked for, else the format's usual one."""
        return self.compression or FORMATS[self.file_format].default


def parse_options(raw: Mapping[str, str], config: Config | None = None) -> Options:
    """The options of one write; what they leave open, ``config`` says.

    Raises `InvalidInputError` for an option that is not known (with the nearest known name), for
    a value out of its range, and for a missing or bad path.
    """
    said = {key.lower(): value.strip() for key, value in raw.items()}
    for key in said:
        _check_known(key)
    destination = parse_destination(said.get("path", ""))
    usual = config.settings_for(destination) if config else {}
    if "encryption" in said:  # another algorithm takes other keys
        usual = {name: usual[name] for name in usual.keys() - OF_ENCRYPTION}
    values = {**{key.lower(): value for key, value in usual.items()}, **said}

    def take(name: str, parse: Callable[[str, str], _T], default: _T) -> _T:
        text = values.get(name.lower())
        return default if text is None else parse(name, text)

    given = {name: values[key] for key, name in _SPELLING.items() if key in values}
    for name in given.keys() & set(CONFIGURABLE):
        check_option(name, given[name])
    file_format = take("fileFormat", one_of(tuple(FORMATS)), "parquet")
    budget = take("memoryBudget", parse_size, DEFAULT_MEMORY_BUDGET)
    return Options(
        destination=destination,
        file_format=file_format,
        compression=take("compression", codec_of(file_format), None),
        partition_by=take("partitionBy", _columns, ()),
        conflict=_conflict(said),
        scope=_scope(said),
        usual_conflict=_conflict(usual),
        usual_scope=_scope(usual),
        max_records_per_file=take("maxRecordsPerFile", limit_of, None),
        target_file_bytes=take("targetFileBytes", _size_limit, None),
        commit_timeout=take("commitTimeout", parse_duration, DEFAULT_COMMIT_TIMEOUT),
        idempotency_key=take("idempotencyKey", _key, None),
        conditions=_conditions(values, given),
        memory_budget=budget,
        uploads=_uploads(given, budget),
        encryption=encryption_of(given),
    )


def options_of(said: Mapping[str, object], config: Config | None = None) -> Options:
    """`parse_options` of Python's values; None stands for an option that is not given."""
    return parse_options({name: _text_of(v) for name, v in said.items() if v is not None}, config)


def _text_of(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _check_known(key: str) -> None:
    column = key.removeprefix(_NULL_FRACTION) if key.startswith(_NULL_FRACTION) else ""
    if key not in _SPELLING and not column:
        raise InvalidInputError(_unknown(key), code="UNKNOWN_OPTION")


def _unknown(key: str) -> str:
    close = difflib.get_close_matches(key, list(_SPELLING), n=1, cutoff=0.6)
    hint = f" Did you mean {_SPELLING[close[0]]!r}?" if close else ""
    return f"s3commit has no option {key!r}.{hint} Known options: {', '.join(KNOWN)}"


def _conflict(values: Mapping[str, str]) -> Conflict | None:
    text = values.get("conflict")
    return None if text is None else Conflict(text.lower())


def _scope(values: Mapping[str, str]) -> Scope | None:
    name = "partitionOverwriteMode"  # in lower case where Spark brings it, else as it stands
    text = values.get(name.lower(), values.get(name))
    return None if text is None else parse_scope(name, text)


def _conditions(values: Mapping[str, str], given: Mapping[str, str]) -> Conditions:
    """Spark knows the columns in lower case alone; the schema's spelling comes later."""
    shares = {
        NULL_FRACTION + key.removeprefix(_NULL_FRACTION): value
        for key, value in values.items()
        if key.startswith(_NULL_FRACTION)
    }
    for name, text in shares.items():
        check_option(name, text)
    return conditions_of({**given, **shares})


def _uploads(given: Mapping[str, str], budget: int) -> UploadSettings:
    """Encoded bytes that wait, and those on their way; beyond it they wait on disk."""
    chosen = upload_settings({name: given[name] for name in _UPLOAD if name in given})
    return replace(chosen, memory_bytes=budget // 8, in_flight_bytes=budget * 3 // 32)


def codec_of(file_format: str) -> Callable[[str, str], str]:
    """What parses a codec of the format."""

    def parse(name: str, text: str) -> str:
        codec = "none" if text.lower() == "uncompressed" else text.lower()
        codecs = FORMATS[file_format].codecs
        if codec not in codecs:
            raise bad_option(name, text, f"one of {', '.join(codecs)} (fileFormat {file_format})")
        return codec

    return parse


def _columns(name: str, text: str) -> tuple[str, ...]:
    columns = tuple(column.strip() for column in text.split(",")) if text else ()
    if "" in columns:
        raise bad_option(name, text, "column names with a comma between them, such as dt,hour")
    return columns


def limit_of(name: str, text: str) -> int:
    """A number of records, or 0 for no limit: Spark takes a negative number for that too."""
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise bad_option(name, text, "a whole number")
    return max(0, int(text))


def _size_limit(name: str, text: str) -> int | None:
    size = parse_size(name, text)
    if 0 < size < MB:
        raise bad_option(name, text, "at least 1MB, or 0 for no limit")
    return size or None


def _key(name: str, text: str) -> str:
    text = with_run(text)
    if not 1 <= len(text) <= MAX_KEY_CHARACTERS:
        raise bad_option(name, text, f"1 to {MAX_KEY_CHARACTERS} characters")
    return text
