"""``options`` of `write`: Spark's names of some keywords, for programs that are ported.

As Spark's own, names are compared without case, and values are texts or plain values.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from s3commit.core.model.errors import InvalidInputError
from s3commit.writer.options import (
    COMPRESSIONS,
    SCOPES,
    Options,
    bad,
    for_a_table,
    make_options,
    meaning,
    refused,
)

SESSION_SCOPE: Final = "spark.sql.sources.partitionOverwriteMode"
# Units as Spark spells them.
_TIMES: Final = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def limit_of(name: str, text: str) -> int:
    """A number of records, or 0 for no limit: Spark takes a negative number for that too."""
    return max(0, _whole(name, text))


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise bad(name, text, "a whole number")
    return int(text)


def _seconds(name: str, text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,18})([a-z]*)", text.lower())
    if not found or found[2] not in _TIMES or not int(found[1]):
        raise bad(name, text, "a time such as 600 (seconds), 90s, 10m or 1h")
    return int(found[1]) * _TIMES[found[2]]


def _one_of(meanings: Mapping[str, Any]) -> Callable[[str, str], Any]:
    return lambda name, text: meaning(name, text, meanings)


codec_of: Final = _one_of({**COMPRESSIONS, "uncompressed": "none", "lz4_raw": "lz4"})
# What Spark's own writer and the jar read: the keyword for it, and what reads the text.
KNOWN: Final[Mapping[str, tuple[str, Callable[[str, str], Any]]]] = {
    "compression": ("compression", codec_of),
    "partitionOverwriteMode": ("partition_overwrite_mode", _one_of({one: one for one in SCOPES})),
    "maxRecordsPerFile": ("max_records_per_file", limit_of),
    "idempotencyKey": ("idempotency_key", lambda _, text: text),
    "conditions.minFiles": ("min_files", _whole),
    "checkPartitions": ("check_partitions", _one_of({"true": True, "false": False})),
    "commitTimeout": ("commit_timeout", _seconds),
}


def parse_options(path: str, options: Mapping[str, object] | None, **keywords: Any) -> Options:
    """The keywords of a write to ``path`` together with its ``options``; None is not given.

    Raises `InvalidInputError` as `make_options`, and for an option that is not known
    (``UNKNOWN_OPTION``) or given twice (``BAD_OPTIONS``).
    """
    known = {name.lower(): name for name in KNOWN}
    if not isinstance(options, Mapping | None):
        raise bad("options", options, "a mapping, such as {'maxRecordsPerFile': 1000}")
    for name, value in (options or {}).items():
        if str(name).lower() not in known:
            raise InvalidInputError(
                f"unknown option {name!r}. Known options: {', '.join(KNOWN)}. All other options"
                " are keywords of the call.",
                code="UNKNOWN_OPTION",
            )
        keyword, parse = KNOWN[known[name.lower()]]
        if value is not None and keywords.get(keyword) is not None:
            raise refused(f"{keyword} and the option {name} mean the same: give one of them")
        if value is not None:
            keywords[keyword] = parse(name, str(value).strip())
    return for_a_table(make_options(path, **keywords))
