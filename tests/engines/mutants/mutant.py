"""Deliberate bugs, as the lists beside this module have them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: in each file, of the package, ``tests/`` or ``stacks/``, old text becomes new."""

    name: str
    edits: tuple[tuple[str, str, str], ...]  # file, old, new: two where one guard backs another
    by: str = "sim"


def mutants(path: Path) -> list[Mutant]:
    """The bugs of a list: its paragraphs that take lines away."""
    paragraphs = path.read_text().strip().split("\n\n")
    return [_mutant(text.split("\n")) for text in paragraphs if "\n-" in text]


def _mutant(lines: list[str]) -> Mutant:
    name, *lines = lines
    by = lines.pop(0).removeprefix("by ") if lines[0].startswith("by ") else "sim"
    return Mutant(name, tuple(_edits(lines)), by)


def _edits(lines: list[str]) -> Iterator[tuple[str, str, str]]:
    starts = [number for number, line in enumerate(lines) if line[:1] not in "-+"]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        file, *changed = lines[start:end]
        old, new = (
            "".join(f"{line[1:]}\n" for line in changed if line[0] == sign) for sign in "-+"
        )
        yield file, old, new
