"""Output: JSON for programs, aligned text for people. The only module that knows rich."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import click

from s3commit.cli.text import printable

# A table is never cut or folded: a terminal wraps long lines by itself, and an id stays whole.
_WIDTH = 10_000
_STYLES = {
    "COMMITTED": "green",
    "ABORTED": "yellow",
    "ROLLED_BACK": "red",
    "ROLLING_BACK": "red",
    "ABORTING": "yellow",
    "!": "bold red",
}


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

    def table(
        self, headers: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[str] = ()
    ) -> None:
        """Print aligned columns; those named in ``right`` are flushed right."""
        from rich.table import Table  # noqa: PLC0415 - 50 ms that `--help` does not need
        from rich.text import Text  # noqa: PLC0415

        grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for header in headers:
            grid.add_column(
                header, justify="right" if header in set(right) else "left", no_wrap=True
            )
        for row in rows:
            cells = [printable(cell) for cell in row]
            grid.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
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


def _print(grid: Any) -> None:
    from rich.console import Console  # noqa: PLC0415

    # rich itself sees to NO_COLOR and to what is no terminal
    console = Console(file=sys.stdout, width=_WIDTH, highlight=False, markup=False)
    with console.capture() as captured:
        console.print(grid)
    for line in captured.get().splitlines():
        click.echo(line.rstrip(), color=True)
