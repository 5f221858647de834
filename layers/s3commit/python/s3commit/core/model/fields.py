"""The values that a field of a record may hold, declared beside the field.

``title: Annotated[str, Text(80)]``. `s3commit.core.formats.codec` reads and writes records by it. A
text without limits has at most 4,096 characters, a number is from 0 to below 2**63.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Final


@dataclass(frozen=True, slots=True)
class Text:
    """How many characters a text has, and the pattern that it matches whole."""

    longest: int = 4096
    least: int = 0
    pattern: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Whole:
    """The least and the largest whole number, both allowed."""

    least: int = 0
    most: int = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Several:
    """How many elements a list or an object with free names has."""

    most: int
    least: int = 0


@dataclass(frozen=True, slots=True)
class Name:
    """The name in documents, where it is not the field's own."""

    name: str


@dataclass(frozen=True, slots=True)
class _Mark:
    name: str


SPARSE: Final = _Mark("not written where it has its default")

_SHA256 = re.compile("[0-9a-f]{64}")
Sha256 = Annotated[str, Text(64, pattern=_SHA256)]
