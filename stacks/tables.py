"""Which tables of the Glue Data Catalog a deployment tells of commits: the parameter `catalogs`."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

from s3commit.aws.env import Catalog

_FORM = (
    'must be {"PREFIX/": "DATABASE.TABLE"}, or {"PREFIX/": {"table": "DATABASE.TABLE",'
    ' "dropEmpty": true}}'
)
# IAM would take *, ? and $ in a policy for other names too, and no table lies below the others.
_PREFIX = re.compile(
    r"(?:(?!\.{1,2}/|_commits/|_s3commit/|_SUCCESS/|__magic)[^/*?$\x00-\x1f\x7f]+/)+"
)
# In lower case, as Glue has all names.
_TABLE = re.compile(r"[a-z0-9_\-]{1,255}\.[a-z0-9_\-]{1,255}")
MOST_BYTES = 1_500  # of a function's environment, which has 4 KB in all


def catalogs(value: Any) -> tuple[Catalog, ...]:
    """Read the parameter, an object or its JSON. Raises `ValueError` that says what it must be."""
    if isinstance(value, str):
        try:
            value = strict_json(value)
        except ValueError as error:
            raise _error(str(error)) from None
    if not isinstance(value, dict):
        raise _error("it is no object")
    found = tuple(_catalog(prefix, entry) for prefix, entry in value.items())
    for one, other in combinations(found, 2):
        if are_nested(one.prefix, other.prefix):
            raise _error(f"{one.prefix} and {other.prefix} lie in each other")
        if one.table == other.table:
            raise _error(f"{one.table} has two prefixes, and a table lies at one place")
    if len(json.dumps(found)) > MOST_BYTES:
        raise _error(f"in all at most {MOST_BYTES:,} bytes")
    return found


def strict_json(text: str) -> Any:
    """Parse JSON. Raises `ValueError`, also for a name that is there twice: one would be lost."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        for name, _ in pairs if len(found) < len(pairs) else ():
            if [other for other, _ in pairs].count(name) > 1:
                raise ValueError(f"{name} is there twice")
        return found

    return json.loads(text, object_pairs_hook=unique)


def are_nested(one: str, other: str) -> bool:
    """Whether two prefixes are the same, or one lies in the other; the empty one has them all."""
    return one.startswith(other) or other.startswith(one)


def _catalog(prefix: str, entry: Any) -> Catalog:
    if not _PREFIX.fullmatch(prefix) or len(prefix.encode()) > 800:
        raise _error(f"{prefix!r} can be no table's prefix, which ends with one '/'")
    given = {"table": entry} if isinstance(entry, str) else entry
    if not isinstance(given, dict) or not {"table"} <= set(given) <= {"table", "dropEmpty"}:
        raise _error(f"the value of {prefix} is another")
    table, drops = given["table"], given.get("dropEmpty", False)
    if not isinstance(table, str) or not _TABLE.fullmatch(table):
        raise _error(f"{table!r} is not DATABASE.TABLE in lower case")
    if not isinstance(drops, bool):
        raise _error(f"dropEmpty of {prefix} is true or false")
    return Catalog(prefix, table, drops)


def _error(why: str) -> ValueError:
    return ValueError(f"{_FORM}: {why}")
