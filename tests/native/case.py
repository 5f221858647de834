"""One row of the table of what Spark writes, and what s3commit does with it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.native.s3a import ROOT
from tests.native.sides import Side

GUIDE = Path(ROOT, "docs", "guide", "native.md")

# SQL, or a function of a side.
Program = str | Callable[[Side], object]


@dataclass(frozen=True)
class Same:
    """As Spark's own: the same ends of all statements, the same rows, the same partitions."""

    jobs: bool = True  # False where Spark's own protocol commits at our side, too
    says: str = ""


@dataclass(frozen=True)
class Refused:
    """Refused by one line before a task runs; Spark's own writes it."""

    code: str
    line: str  # an expression that is found in it
    says: str = ""


@dataclass(frozen=True)
class Differs:
    """How many rows there are in the end at our side and at the control's."""

    ours: int
    control: int
    says: str


@dataclass(frozen=True)
class Case:
    """``before`` is run at both sides, then ``write``."""

    name: str
    write: Program
    verdict: Same | Refused | Differs = field(default_factory=Same)
    before: Program = ""
    form: str = "parquet"
    settings: Mapping[str, str] = field(default_factory=dict)
    by_s3: bool = False  # it is run at s3://, too: one case of each kind of write is

    def documented(self) -> bool:
        """The guide has the verdict's sentence, however its lines are broken."""
        page = re.sub(r"\s+", " ", GUIDE.read_text())
        return re.sub(r"\s+", " ", self.verdict.says) in page


def run(program: Program, side: Side) -> None:
    if isinstance(program, str):
        side.script(program)
    else:
        program(side)
