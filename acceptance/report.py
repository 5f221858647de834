"""The report of a run, for people and for programs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from acceptance.measures import Measure
from acceptance.run import BROKEN, NOT_SEEN, SEEN, Result
from s3commit.version import __version__

FILE: Final = "acceptance_report"


@dataclass
class Report:
    """What a run has seen so far; ``problem`` is what ended it early."""

    name: str
    place: str
    started: str
    seconds: float = 0.0
    results: list[Result] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    problem: str = ""
    left: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)  # of the removal

    @property
    def is_well(self) -> bool:
        """True if nothing is broken, the run came to its end, and nothing is left."""
        return not (self.problem or self.left or any(one.verdict == BROKEN for one in self.results))

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"version": __version__, "ok": self.is_well, **asdict(self)}

    def summary(self) -> str:
        """The outcome in a line."""
        counts = Counter(one.verdict for one in self.results)
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in (SEEN, NOT_SEEN, BROKEN))
        ended = f" The run did not come to its end: {self.problem}." if self.problem else ""
        left = "Something is left (below)." if self.left else "Nothing is left in the account."
        return f"{len(self.results)} promises tried: {said}.{ended} {left}"

    def page(self) -> str:
        """As Markdown."""
        lines = [
            "# Report of an acceptance run",
            "",
            f"Run `{self.name}` of s3commit {__version__} on {self.place}, begun {self.started}, in"
            f" {self.seconds / 60:.0f} minutes.",
            "",
            f"**{self.summary()}**",
            "",
            "*Seen*: the promise was tried and kept. *Not seen here*: this place cannot try it, and"
            " the report says why; it is neither kept nor broken. *Broken*: look at it.",
            "",
            "| promise | verdict | what was seen | seconds |",
            "|---|---|---|---|",
            *(
                f"| {one.promise} | {_strong(one.verdict)} | {_cell(one.detail)} |"
                f" {one.seconds:g} |"
                for one in self.results
            ),
            "",
            "## Figures",
            "",
            "The assumptions of `bench/limits.py`, in seconds, beside what was measured. A person"
            " puts a better figure there, and runs `python -m bench.model`. Those of the embedded"
            " runtime show that they are measured, and nothing of AWS.",
            "",
            "| figure | what | assumed | measured | how |",
            "|---|---|---|---|---|",
            *(
                f"| `{one.name}` | {one.what} | {one.assumed:g} | {_number(one.seconds)} |"
                f" {_cell(one.how)} |"
                for one in self.measures
            ),
        ]
        if self.left:
            lines += [
                "",
                "## Left in the account",
                "",
                f"Remove it with `--clean {self.name}`:",
                "",
            ]
            lines += [f"- {_cell(one)}" for one in (*self.left, *self.errors)]
        return "\n".join(lines) + "\n"

    def keep(self, directory: Path) -> Path:
        """Write both; the path of the page."""
        directory.mkdir(parents=True, exist_ok=True)
        document = json.dumps(self.document(), indent=2, ensure_ascii=False)
        (directory / f"{FILE}.json").write_text(f"{document}\n")
        page = directory / f"{FILE}.md"
        page.write_text(self.page())
        return page


def _strong(verdict: str) -> str:
    return verdict if verdict == SEEN else f"**{verdict}**"


def _number(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
