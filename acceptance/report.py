"""The report of a run, for people and for programs."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from acceptance.measures import Measure
from acceptance.run import BROKEN, NOT_SEEN, SEEN, Result
from s3commit.version import __version__

FILE: Final = "acceptance_report"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


_PAGES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    trim_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
)
_PAGES.filters["cell"] = _cell
_TEMPLATE: Final = _PAGES.get_template("report.md.jinja")


@dataclass
class Report:
    """What a run has seen so far; ``problem`` is what ended it early."""

    name: str
    place: str
    started: str
    commit: str
    is_aws: bool
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

    def summary(self) -> str:
        """The outcome in a line."""
        counts = Counter(one.verdict for one in self.results)
        said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in (SEEN, NOT_SEEN, BROKEN))
        ended = f" The run did not come to its end: {self.problem}." if self.problem else ""
        left = (
            "Something is left (below)."
            if self.left
            else "Nothing with the name of the run is left."
        )
        return f"{len(self.results)} promises: {said}.{ended} {left}"

    def page(self) -> str:
        """As Markdown."""
        return _TEMPLATE.render(run=self, version=__version__, SEEN=SEEN)

    def keep(self, directory: Path) -> Path:
        """Write both; the path of the page."""
        directory.mkdir(parents=True, exist_ok=True)
        facts = {"version": __version__, "ok": self.is_well, **asdict(self)}
        document = json.dumps(facts, indent=2, ensure_ascii=False)
        (directory / f"{FILE}.json").write_text(f"{document}\n")
        page = directory / f"{FILE}.md"
        page.write_text(self.page())
        return page
