"""Output: JSON for programs, aligned text for people. The only module that knows rich."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from s3commit.cli.text import age, moment, printable, size

# A table is never cut or folded: a terminal wraps long lines by itself, and an id stays whole.
_WIDTH = 10_000
SHOWN = 5  # elements of a list
SHORT = 40  # characters
_WHOLE = {"next", "problems"}  # lists that are always shown whole
_STYLES = {
    "COMMITTED": "green",
    "ABORTED": "yellow",
    "ROLLED_BACK": "red",
    "ROLLING_BACK": "red",
    "ABORTING": "yellow",
    "!": "bold red",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of documents: its header, the field that it shows, and in which words.

    Without a field ``text`` gets the whole document. One that is ``optional`` is left out where no
    document has anything in it.
    """

    header: str
    field: str = ""
    text: Callable[[Any], str] = lambda value: "" if value is None else str(value)
    right: bool = False
    optional: bool = False

    def cell(self, document: dict[str, Any]) -> str:
        """What the column shows of a document."""
        return self.text(document[self.field] if self.field else document)


@dataclass(frozen=True, slots=True)
class Printer:
    """Where the verbs' output goes: data to stdout, everything else to stderr."""

    json: bool

    def document(self, value: dict[str, Any]) -> None:
        """Print one JSON document, for people's eyes too."""
        click.echo(json.dumps(value, indent=2))

    def record(self, value: dict[str, Any]) -> None:
        """Print one JSON document on one line, of several."""
        click.echo(json.dumps(value))

    def line(self, text: str) -> None:
        """Print a line of data."""
        click.echo(printable(text))

    def note(self, text: str) -> None:
        """Print a line that is no data, to stderr."""
        click.echo(printable(text), err=True)

    def summary(self, text: str) -> None:
        """Print a line that sums up what was printed, for people."""
        if not self.json:
            self.note(text)

    def listing(
        self,
        about: dict[str, Any],
        name: str,
        documents: Sequence[dict[str, Any]],
        columns: Iterable[Column],
    ) -> None:
        """Print documents: as a table, or below ``name`` in one that says what they are about."""
        if self.json:
            self.document({**about, name: documents})
        elif documents:
            self.table(columns, documents)

    def table(self, columns: Iterable[Column], documents: Sequence[dict[str, Any]]) -> None:
        """Print aligned columns."""
        from rich.table import Table  # noqa: PLC0415 - 50 ms that `--help` does not need
        from rich.text import Text  # noqa: PLC0415

        grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        cells = {}
        for column in columns:
            shown = [printable(column.cell(document)) for document in documents]
            if column.optional and not any(shown):
                continue
            grid.add_column(
                column.header, justify="right" if column.right else "left", no_wrap=True
            )
            cells[column.header] = shown
        for row in zip(*cells.values(), strict=True):
            grid.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
        _print(grid)

    def pairs(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Print names and values, one a line; a repeated name is left out."""
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(no_wrap=True)
        before = ""
        for name, value in pairs:
            shown = "" if name == before else name
            text = printable(value)
            grid.add_row(shown, Text(text, style=_STYLES.get(text, "")))
            before = name
        _print(grid)

    def facts(self, document: dict[str, Any]) -> None:
        """Print a document of facts as names and values; what is null or empty is left out."""
        self.pairs(_rows(document))


def _rows(document: dict[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    for name, value in document.items():
        row = f"{within}{words(name)}"
        if isinstance(value, dict) and not _is_short(value):
            yield from _rows(value, f"{row} ")
        else:
            yield from ((row, line) for line in lines(value, name))


def _is_short(value: dict[str, Any]) -> bool:
    """True if all members fit on a line; a sentence has one of its own."""
    return "message" not in value and not any(
        isinstance(one, dict | list | tuple) or len(str(one)) > SHORT for one in value.values()
    )


def words(name: str) -> str:
    """A member's name as people read it: ``updatedAt`` is ``updated``."""
    bare = re.sub("(At|Since|Seconds)$", "", name)
    return re.sub("([A-Z])", r" \1", bare).lower()


def lines(value: Any, name: str = "") -> Iterator[str]:
    """A member of a document, a line for each element of a list."""
    if isinstance(value, dict):
        parts = (f"{words(key)} {text}" for key, one in value.items() for text in lines(one, key))
        yield from filter(None, [", ".join(parts)])
    elif isinstance(value, list | tuple):
        shown = value if name in _WHOLE else value[:SHOWN]
        yield from (line for one in shown for line in lines(one))
        if len(value) > len(shown):
            yield f"and {len(value) - len(shown)} more; --output json has them all"
    elif name.endswith(("At", "Since")) and value:
        yield f"{moment(value)} UTC"
    elif name.endswith("Seconds") and value is not None:
        yield age(value)
    elif name == "bytes" and value is not None:
        yield size(value)
    elif isinstance(value, bool):
        yield "yes" if value else "no"
    elif value not in {None, ""}:
        yield str(value)


def _print(grid: Any) -> None:
    from rich.console import Console  # noqa: PLC0415

    # rich itself sees to NO_COLOR and to what is no terminal
    console = Console(file=sys.stdout, width=_WIDTH, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(grid)
    for line in captured.get().splitlines():
        click.echo(line.rstrip(), color=True)
