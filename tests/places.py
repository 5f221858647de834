"""The table of what lies at a destination, ``tests/golden/places.json``, as tests try it.

A place's ``keys`` begin with ``t``, the destination's directory; those that end with ``.parquet``
are files of one row. Three rows are written, of the days d0, d1 and d2, ``by`` these columns. Of
each mode it says how many rows Spark reads in the end, or the code with which the write is refused
before its first task, or ``at the decision``; ``KEPT``: nothing is written, and that is no error;
``COMMITTED``: readers may not read both. ``unlike`` are the clients that answer otherwise, with the
sentence of the guide that says so. The jar's own tests read it as well (``PlaceTest``).
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

ROOT = Path(__file__).parents[1]
TABLE: dict[str, Any] = json.loads((ROOT / "tests" / "golden" / "places.json").read_text())
PLACES: dict[str, dict[str, Any]] = {one["place"]: one for one in TABLE["places"]}
UNLIKE: list[dict[str, Any]] = TABLE["unlike"]
MODES = ("append", "overwrite", "overwrite dynamic", "error", "error dynamic", "ignore")
LATE = " at the decision"


@dataclass(frozen=True)
class Cell:
    """A mode of one client at one place."""

    keys: tuple[str, ...]
    by: list[str]
    mode: str
    overwrite_mode: str | None
    answer: str | int


def cells(name: str, client: str) -> Iterator[Cell]:
    """Those of a client at a place; each mode that the place has."""
    place = PLACES[name]
    for mode in MODES:
        if mode in place:
            kind, _, dynamic = mode.partition(" ")
            answer = _answer(place, client, mode)
            yield Cell(tuple(place["keys"]), place["by"], kind, dynamic or None, answer)


def _answer(place: dict[str, Any], client: str, mode: str) -> str | int:
    answer: str | int = place[mode]
    for one in UNLIKE:
        if (
            client in one["clients"]
            and mode in one.get("modes", MODES)
            and one.get("instead of", answer) == answer
            and one.get("by", place["by"]) == place["by"]
            and (place["keys"] or "where" not in one)
        ):
            return str(one["answer"])
    return answer


def put(cell: Cell, directory: str, put: Callable[[str, bytes], object]) -> set[str]:
    """Lay the place at the directory, whose name has no slash at its end, and give the keys."""
    keys = [directory + key.removeprefix("t") for key in cell.keys]
    for key in keys:
        is_file = key.endswith(".parquet")
        put(key, one_row() if is_file else b"" if key.endswith("/") else b"x")
    return set(keys)


def one_row(*ids: int) -> bytes:
    """A file."""
    sink = io.BytesIO()
    parquet.write_table(pa.table({"id": pa.array(ids or [100], pa.int64())}), sink)
    return sink.getvalue()


def read_as_spark(names: Sequence[str], rows_of: Callable[[str], int]) -> int:
    """The rows below a directory: of files in partitions, else of those directly in it."""
    hidden = [one for one in names if re.search(r"(^|/)[_.]", one)]
    inside = [one for one in names if "=" in one.partition("/")[0]]
    flat = [one for one in names if "/" not in one]
    return sum(rows_of(one) for one in (inside or flat) if one not in hidden)
