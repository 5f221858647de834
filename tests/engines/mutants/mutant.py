"""What a deliberate bug is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: in ``file``, of the package, ``tests/`` or ``stacks/``, ``old`` becomes ``new``."""

    name: str
    file: str
    old: str
    new: str
    by: str = "sim"
    also: tuple[tuple[str, str, str], ...] = ()

    @property
    def edits(self) -> tuple[tuple[str, str, str], ...]:
        """Every change of the bug: file, old text, new text. Two where one guard backs another."""
        return ((self.file, self.old, self.new), *self.also)
