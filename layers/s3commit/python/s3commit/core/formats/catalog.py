"""What a partition's directory says to a catalog, and the note of a job that no catalog knows yet.

The note lies at `JobDirectory.catalog` from the first try until a try that went through: so `show`
tells of a failure, and of a function that died as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from s3commit.core.formats.codec import Codec
from s3commit.core.formats.documents import MAX_LINE_BYTES, CommitHeader, decode_commit_header
from s3commit.core.formats.layout import JobDirectory, partition_of
from s3commit.core.formats.manifest import check_contained
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.fields import Text
from s3commit.core.model.job import JobId

NULL: Final = "__HIVE_DEFAULT_PARTITION__"
MAX_NOTE_BYTES: Final = 16 * 1024
_ESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")
# What Athena and Spark can read as a value of the type; of others nothing is said here.
_WHOLE: Final = re.compile(r"[+-]?\d+")
_FORMS: Final = {
    **dict.fromkeys(("tinyint", "smallint", "int", "integer", "bigint"), _WHOLE),
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "boolean": re.compile("true|false", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class _Line:
    key: str


_LINE: Final = Codec(_Line, "commit manifest", max_bytes=MAX_LINE_BYTES)


def directories_of(
    lines: Iterator[bytes], directory: JobDirectory, root: str
) -> tuple[CommitHeader, set[str]]:
    """The header of a commit manifest, and in which directories below ``root`` its files lie.

    Raises `InvalidInputError` as `decode_commit_header`, and for a file that is none of the job's.
    """
    header, found = decode_commit_header(next(lines, b""), directory), set()
    for line in lines:
        key = _LINE.decode(line).key
        check_contained(key, directory)
        found.add(partition_of(key[len(root) :]))
    return header, found


def values_for(directory: str, keys: Sequence[tuple[str, str]]) -> list[str]:
    """The values of ``dt=2026-11-21/hour=3/`` in a table with the partition columns ``keys``.

    These are names and types. ``%XX`` is one character, and others are as they are, as Spark's
    `ExternalCatalogUtils.unescapePathName` reads them. Raises `InvalidInputError` for other
    columns, and for a value that the column's type has not.
    """
    elements = [one.partition("=") for one in directory.split("/")[:-1]]
    names = [_unescaped(name) if equals else f"{name}/" for name, equals, _ in elements]
    # Glue has its names in lower case, and Spark compares them without case.
    if [name.lower() for name in names] != [name.lower() for name, _ in keys]:
        raise InvalidInputError(
            f"{directory[:200]!r} has the partition columns {', '.join(names) or 'none'}, and the"
            f" table {', '.join(name for name, _ in keys) or 'none'}"
        )
    values = [_unescaped(value) for _, _, value in elements]
    for value, (name, kind) in zip(values, keys, strict=True):
        form = _FORMS.get(kind.lower())
        if form and value != NULL and not form.fullmatch(value):
            raise InvalidInputError(f"column {name} is {kind} in the table, and not {value[:80]!r}")
    return values


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


@dataclass(frozen=True, slots=True)
class CatalogNote:
    """``_catalog.json``: the table that does not know the job yet, since when, and why."""

    job_id: JobId
    table: Annotated[str, Text(600)]
    tried_at: Annotated[str, Text(100)]
    error: Annotated[str, Text(4000)] = ""


NOTE: Final = Codec(CatalogNote, "_catalog.json", 1, max_bytes=MAX_NOTE_BYTES)
