"""The options of the format, parsed once into one frozen value.

Spark lower-cases the keys of a data source's options and makes every value a string, so names are
compared in lower case and shown in the spelling of the documentation.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from s3commit.core.errors import InvalidInputError
from s3commit.core.layout import check_job_id, parse_destination
from s3commit.core.model import Conflict, Destination, Scope

MB: Final = 1024 * 1024

COMPRESSIONS: Final = ("snappy", "zstd", "gzip", "lz4", "none")
FILE_FORMATS: Final = ("parquet",)
CONDITION_PREFIX: Final = "conditions."

KNOWN: Final = (
    "path",
    "fileFormat",
    "compression",
    "partitionBy",
    "conflict",
    "partitionOverwriteMode",
    "maxRecordsPerFile",
    "targetFileBytes",
    "commitTimeout",
    "idempotencyKey",
    "conditions.minRows",
    "memoryBudget",
    "jobId",
    "version",
)
_SPELLING: Final = {name.lower(): name for name in KNOWN}
# Spark's own way to hand over load([p, q]); never typed by a person.
_PATHS: Final = "paths"

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)i?b?", re.IGNORECASE)
_SIZE_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|sec|m|min|h|d)?", re.IGNORECASE)
_DURATION_SECONDS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for. Sizes are in bytes, times in seconds; None means no limit."""

    destination: Destination
    file_format: str = "parquet"
    compression: str = "snappy"
    partition_by: tuple[str, ...] = ()
    conflict: Conflict = Conflict.APPEND
    scope: Scope = Scope.DIRECTORY
    max_records_per_file: int | None = None
    target_file_bytes: int | None = None
    commit_timeout: float = 900.0
    idempotency_key: str | None = None
    conditions: dict[str, Any] = field(default_factory=dict)
    memory_budget: int = 256 * MB
    job_id: str | None = None


def parse_options(raw: Mapping[str, str]) -> Options:
    """The options of one read or write.

    Raises `InvalidInputError` for an option that is not known (with the nearest known name), for
    a value out of its range, and for a missing or bad path.
    """
    values = {key.lower(): value for key, value in raw.items()}
    for key in values:
        if key not in _SPELLING and key != _PATHS:
            raise InvalidInputError(_unknown(key), code="UNKNOWN_OPTION")

    def take(name: str, parse: Callable[[str, str], _T], default: _T) -> _T:
        text = values.get(name.lower())
        return default if text is None else parse(name, text.strip())

    return Options(
        destination=parse_destination(_path(values)),
        file_format=take("fileFormat", _one_of(FILE_FORMATS), "parquet"),
        compression=take("compression", _compression, "snappy"),
        partition_by=take("partitionBy", _columns, ()),
        conflict=Conflict(take("conflict", _one_of(tuple(Conflict)), Conflict.APPEND.value)),
        scope=take("partitionOverwriteMode", _scope, Scope.DIRECTORY),
        max_records_per_file=take("maxRecordsPerFile", _limit, None),
        target_file_bytes=take("targetFileBytes", _size_limit, None),
        commit_timeout=take("commitTimeout", _duration, 900.0),
        idempotency_key=take("idempotencyKey", _text, None),
        conditions=take(
            "conditions.minRows", lambda name, text: {"minRows": _count(name, text)}, {}
        ),
        memory_budget=take("memoryBudget", _memory, 256 * MB),
        job_id=take("jobId", _job_id, None) or take("version", _job_id, None),
    )


def _job_id(_: str, text: str) -> str | None:
    return check_job_id(text)


def parse_size(name: str, text: str) -> int:
    """``134217728``, ``128MB``, ``1g``: bytes, in powers of 1024 as Spark's own sizes are."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise _bad(name, text, "a size such as 134217728, 128MB or 1g")
    return int(found[1]) * int(1024 ** _SIZE_POWERS[found[2].lower()])


def _duration(name: str, text: str) -> float:
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * _DURATION_SECONDS[(found[2] or "s").lower()] if found else 0.0
    if seconds <= 0:
        raise _bad(name, text, "a time such as 600 (seconds), 90s, 10m or 1h")
    return seconds


def _unknown(key: str) -> str:
    close = difflib.get_close_matches(key, list(_SPELLING), n=1, cutoff=0.6)
    hint = f" Did you mean {_SPELLING[close[0]]!r}?" if close else ""
    return f"s3commit has no option {key!r}.{hint} Known options: {', '.join(KNOWN)}"


def _bad(name: str, text: str, wanted: str) -> InvalidInputError:
    return InvalidInputError(f"option {name}={text[:80]!r}: give {wanted}", code="BAD_OPTION")


def _path(values: Mapping[str, str]) -> str:
    several = values.get(_PATHS)
    if several is not None:
        raise InvalidInputError(
            f"s3commit reads one path at a time, not {len(json.loads(several))}: load each path "
            "and union the DataFrames",
            code="BAD_PATH",
        )
    path = values.get("path", "").strip()
    if not path:
        raise InvalidInputError(
            "no path: give one, as in .save('s3://bucket/prefix') or .load('s3://bucket/prefix')",
            code="BAD_PATH",
        )
    return path


def _one_of(allowed: tuple[str, ...]) -> Callable[[str, str], str]:
    def parse(name: str, text: str) -> str:
        if text.lower() not in allowed:
            raise _bad(name, text, "one of " + ", ".join(allowed))
        return text.lower()

    return parse


def _compression(name: str, text: str) -> str:
    return "none" if text.lower() == "uncompressed" else _one_of(COMPRESSIONS)(name, text)


def _columns(name: str, text: str) -> tuple[str, ...]:
    columns = tuple(column.strip() for column in text.split(",")) if text else ()
    if "" in columns:
        raise _bad(name, text, "column names with a comma between them, such as dt,hour")
    return columns


def _scope(name: str, text: str) -> Scope:
    static_or_dynamic = _one_of(("static", "dynamic"))(name, text)
    return Scope.PARTITION if static_or_dynamic == "dynamic" else Scope.DIRECTORY


def _count(name: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,18}", text):
        raise _bad(name, text, "a whole number")
    return int(text)


def _limit(name: str, text: str) -> int | None:
    # Zero and less mean "no limit", as for Spark's own maxRecordsPerFile.
    return limit if (limit := _count(name, text)) > 0 else None


def _size_limit(name: str, text: str) -> int | None:
    size = parse_size(name, text)
    if 0 < size < MB:
        raise _bad(name, text, "at least 1MB, or 0 for no limit")
    return size or None


def _memory(name: str, text: str) -> int:
    size = parse_size(name, text)
    if size < 16 * MB:
        raise _bad(name, text, "at least 16MB")
    return size


def _text(name: str, text: str) -> str:
    if not text or len(text) > 512:
        raise _bad(name, text, "1 to 512 characters")
    return text
