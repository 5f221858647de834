"""What a suite of Spark's reports, held against what it should."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

GONE = "does not differ any more: take it out of differences.json"


@dataclass(frozen=True)
class Suite:
    """A suite, how many ``tests`` it has at least, and which of them fail.

    ``jar`` are those that fail by the jar alone, with what their message says; ``both`` those that
    fail with Spark's own protocol too, with the reason.
    """

    name: str
    tests: int
    jar: Mapping[str, str] = field(default_factory=dict)
    both: Mapping[str, str] = field(default_factory=dict)

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


def read(directory: Path) -> dict[str, str | None]:
    """Each test that ran, from the reports in JUnit's form: why it failed, or None."""
    found: dict[str, str | None] = {}
    for file in directory.glob("*.xml"):
        for case in ElementTree.parse(file).iter("testcase"):
            wrong = case.find("failure") if case.find("error") is None else case.find("error")
            if case.find("skipped") is None:
                why = None if wrong is None else wrong.get("message") or wrong.text or "?"
                found[case.attrib["name"]] = why
    return found


def problems(suite: Suite, found: Mapping[str, str | None], *, own: bool) -> Iterator[str]:
    """One line for each test that did not end as it should."""
    differ = {} if own else suite.jar
    if len(found) < suite.tests:
        yield f"only {len(found)} of {suite.tests} tests ran"
    for name, why in found.items():
        if why is not None and name not in suite.both and differ.get(name, "\0") not in why:
            yield f"{name}: {' '.join(why.split())[:300]}"
    for name in (*suite.both, *differ):
        if found.get(name) is None:
            yield f"{name}: {GONE}"
