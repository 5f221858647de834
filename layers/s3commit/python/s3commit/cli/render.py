"""Output: a document as JSON for programs, or the same facts, aligned, for people."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from textwrap import fill
from typing import Any

import click

from s3commit.aws import env
from s3commit.aws.failures import NO_TABLE
from s3commit.core.formats.strict_json import member_name, printable
from s3commit.core.model.amounts import size
from s3commit.core.model.errors import AccessError, S3CommitError
from s3commit.core.model.moments import read_moment, seconds

KEY_DIGITS = 8  # of a digest, or an id, where it need not be typed
WIDTH = 120  # characters of a line below a table's row
SHOWN = 50  # elements of a list
LONGEST = 160  # characters of a note, or of who writes, in a table
_SHORT = 120  # characters of an object on one line
_COLOURS = {
    "COMMITTED": "green",
    **dict.fromkeys(("ABORTED", "ABORTING"), "yellow"),
    **dict.fromkeys(("ROLLED_BACK", "ROLLING_BACK", "!", "fix"), "red"),
}
_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


class Output:
    """Where the verbs' output goes: data to stdout, notes for people to stderr."""

    json = False
    warning = ""

    def warn(self, text: str) -> None:
        """Say it before all else, once; a program finds it in each document as ``warning``."""
        if text and text != self.warning:
            click.echo(f"Warning: {printable(text)}", err=True)
        self.warning = text

    def _said(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"warning": self.warning, **document} if self.warning else document

    def facts(self, document: Mapping[str, Any]) -> None:
        """Print a document: for people a row for each fact, without those that are not known."""
        if self.json:
            click.echo(json.dumps(self._said(document), indent=2))
            return
        found = list(rows(document))
        width = max(len(label) for label, _ in found)
        before = ""
        for label, text in found:
            shown = "" if label == before else label
            _print([click.style(shown.ljust(width), bold=True), _coloured(printable(text))])
            before = label

    def table(self, document: Mapping[str, Any], name: str, columns: str, below: str = "") -> None:
        """Print a document: for people the objects below ``name`` as a table.

        ``columns`` are the members to show, with commas: ``state, jobId as JOB``. A column without
        a value is left out. Those of ``below`` are printed on lines of their own below the object's
        row, each with its name, without those that have no value. Of a long note, and of the ids
        of other jobs, people see a part.
        """
        if self.json:
            click.echo(json.dumps(self._said(document), indent=2))
            return
        rows, shown = [*map(_brief, document[name])], []
        for member, header in _named(columns):
            cells = [printable(_cell(header, member, row[member])) for row in rows]
            if any(cells):
                is_number = any(isinstance(row[member], int | float) for row in rows)
                width = max(map(len, (header, *cells)))
                column = [click.style(header, bold=True), *map(_coloured, cells)]
                blanks = [" " * (width - len(cell)) for cell in (header, *cells)]
                pairs = zip(blanks, column, strict=True)
                shown.append([a + b if is_number else b + a for a, b in pairs])
        under = ["", *(_under(row, below) for row in rows)]
        for line, text in zip(zip(*shown, strict=True), under, strict=False):
            _print(line)
            if text:
                click.echo(fill(text, WIDTH, initial_indent="  ", subsequent_indent="  "))

    def line(self, document: Mapping[str, Any], *lines: str) -> None:
        """Print a document on one line: for people the ``lines``, which say the same."""
        for line in [json.dumps(self._said(document))] if self.json else map(printable, lines):
            click.echo(line)

    def note(self, *lines: str) -> None:
        """Print lines beside the data, for people."""
        for line in () if self.json else lines:
            click.echo(printable(line), err=True)


class CommandError(click.ClickException):
    """The end of the command: one line on stderr, and the exit code."""

    def __init__(self, line: str, exit_code: int) -> None:
        super().__init__(printable(" ".join(line.split())))
        # click declares it for the class and reads it from the instance
        self.exit_code = exit_code  # type: ignore[misc]


def coded(text: str, error: S3CommitError) -> str:
    """The text of an error, with its code unless the text has it."""
    bare = error.code == S3CommitError.code or error.code in text
    return text if bare else f"{text} [{error.code}]"


def cures(error: S3CommitError) -> list[str]:
    """The check that may help after an error that does not pass by itself, if one is known."""
    if error.code == NO_TABLE:
        return [f"check the table name (--table, {env.TABLE}) and the region"]
    return ["check your identity: aws sts get-caller-identity"] * isinstance(error, AccessError)


def age(seconds: float) -> str:
    """The two largest units: ``2d 3h``, ``5m 10s``, ``<1s``."""
    left, found = max(0, int(seconds)), list[tuple[int, str]]()
    for unit, length in _UNITS:
        count, left = divmod(left, length)
        if count or found:
            found.append((count, unit))
    return " ".join(f"{count}{unit}" for count, unit in found[:2] if count) or "<1s"


def moment(text: str) -> str:
    """RFC 3339 in UTC, to the second: ``2026-11-21 22:07:22Z``."""
    return f"{text[:19].replace('T', ' ')}Z"


def shortened(text: str, most: int) -> str:
    """The text as it is printed; of a longer one its beginning and its end."""
    text = printable(text)
    end = (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - end]}…{text[-end:]}"


def epoch_of(text: str) -> float:
    """RFC 3339 as seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def took(began: str | None, ended: str | None) -> int | None:
    """The whole seconds between two moments, which a client may name; None if one is not known.

    Clocks that differ give 0.
    """
    known = [read_moment(one or "") for one in (began, ended)]
    return max(0, int(seconds(*known))) if all(known) else None


def some(names: Iterable[str], shown: int = 3) -> str:
    """The first names in their order, and how many more there are."""
    found = sorted(map(printable, names))
    more = f" and {len(found) - shown} more" if len(found) > shown else ""
    return ", ".join(found[:shown]) + more


def fields(thing: object, *names: str) -> dict[str, Any]:
    """The named attributes for programs, as JSON spells them: ``job_id`` is ``jobId``.

    All are null where there is no thing.
    """
    return {member_name(name): thing if thing is None else getattr(thing, name) for name in names}


def rows(document: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """A row for each fact: its label and its text."""
    for name, value in document.items():
        label = within + _words(name)
        if isinstance(value, dict):
            is_nested = any(isinstance(one, dict | list) for one in value.values())
            lines = [] if is_nested else [_text(name, value)]
            if is_nested or len(lines[0]) > _SHORT:
                yield from rows(value, f"{label} ")
                continue
        elif isinstance(value, list | tuple):
            lines = [_text(name, one) for one in value[:SHOWN]]
            if len(value) > SHOWN:
                lines.append(f"and {len(value) - SHOWN} more; --output json has them all")
        else:
            lines = [_text(name, value)]
        yield from ((label, line) for line in lines if line)


def _text(name: str, value: Any) -> str:
    """A member of a document as people read it.

    JSON has neither times nor durations, so a member's name ends in what it is, in all documents of
    the verbs: ``At`` and ``Since`` are times, ``Seconds`` a duration. Programs read it there too.
    """
    if isinstance(value, dict):
        parts = ((_words(key), _text(key, one)) for key, one in value.items())
        return ", ".join(f"{key} {text}" for key, text in parts if text)
    if value in (None, ""):
        return ""
    if isinstance(value, list | tuple):
        return some(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith(("At", "Since")):
        return moment(value)
    if name.endswith("Seconds"):
        return age(value)
    if name.startswith("usd"):
        return usd(value)
    return size(value) if name == "bytes" else str(value)


def usd(amount: float) -> str:
    """In USD, to the cent."""
    return "<0.01" if 0 < amount < 0.005 else f"{amount:.2f}"


def _brief(row: Mapping[str, Any]) -> dict[str, Any]:
    ids = {name: row[name][:KEY_DIGITS] for name in ("undoes", "undoneBy") if row.get(name)}
    note = {"note": shortened(row["note"], LONGEST)} if row.get("note") else {}
    return {**row, **ids, **note}


def _named(columns: str) -> Iterator[tuple[str, str]]:
    """Each column's member and header."""
    for each in columns.split(", ") if columns else ():
        member, _, named = each.partition(" as ")
        yield member, named or _words(member).upper()


def _under(row: Mapping[str, Any], columns: str) -> str:
    cells = ((header.lower(), _text(member, row[member])) for member, header in _named(columns))
    return printable("; ".join(f"{header} {cell}" for header, cell in cells if cell))


def _words(name: str) -> str:
    """A member's name as people read it: ``updatedAt`` is ``updated``."""
    bare = re.sub("(At|Seconds)$", "", name)
    return re.sub("([A-Z])", r" \1", bare).lower()


def _cell(header: str, member: str, value: Any) -> str:
    """The cell of an object in a column; for a yes or no its header."""
    if isinstance(value, bool):
        return header.lower() if value else ""
    return _text(member, value)


def _coloured(cell: str) -> str:
    colour = _COLOURS.get(cell)
    return click.style(cell, fg=colour) if colour else cell


def _print(cells: Iterable[str]) -> None:
    # click leaves colours out where there is no terminal
    click.echo("  ".join(cells).rstrip(), color=False if os.environ.get("NO_COLOR") else None)
