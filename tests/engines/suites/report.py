"""What a suite of Spark's reports, held against what it should."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

GONE = "does not differ any more: take it out of differences.json"
NOT_RUN = "was not run"
# ScalaTest's line of a test that ended. Below a failure are its message and stack, further in.
TEST = re.compile(
    r"- (?P<name>.+?)(?: (?P<end>\*\*\* FAILED \*\*\*|!!! (?:IGNORED|CANCELED) !!!))?"
)
Results = Mapping[str, str | None]  # each test that ran: why it failed, or None


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


def read(text: str) -> Results:
    """Each test that ran, from ScalaTest's text: it has a line as soon as the test has ended."""
    found: dict[str, str | None] = {}
    failed = ""
    for line in text.rpartition("\n")[0].splitlines():  # the last one may be cut
        if test := TEST.fullmatch(line):
            failed = test["name"] if "FAILED" in (test["end"] or "") else ""
            if failed or not test["end"]:
                found[test["name"]] = "" if failed else None
        elif failed and line.startswith("  ") and not line.startswith("  at "):
            found[failed] = f"{found[failed]} {line.strip()}".lstrip()
    return found


def odd(suite: Suite, found: Results, *, own: bool) -> dict[str, str]:
    """The tests that fail, and are no known difference, or fail otherwise: why."""
    known = dict.fromkeys(suite.both, "") | ({} if own else dict(suite.jar))
    return {
        name: why
        for name, why in found.items()
        if why is not None and known.get(name, "\0") not in why
    }


def problems(
    suite: Suite, found: Results, *, own: bool, control: Results | None = None
) -> Iterator[str]:
    """One line for each thing that is not as it should be.

    ``control`` are the results of the same suite by Spark's own protocol: what fails there too is
    no fault, and in `shared`.
    """
    if (missing := suite.tests - len(found)) > 0:
        yield f"{missing} of {suite.tests} tests were not run"
    for name, why in odd(suite, found, own=own).items():
        if control is None:
            yield f"{name}: {why[:300]}"
        elif (verdict := _verdict(why, name, control)) is not None:
            yield f"{name}, {verdict}: {why[:300]}"
    for name in (*suite.both, *({} if own else suite.jar)):
        if found.get(name) is None:
            yield f"{name}: {GONE if name in found else NOT_RUN}"


def _verdict(why: str, name: str, control: Results) -> str | None:
    """What is wrong with a test that fails; None if it fails for that reason by Spark's own too."""
    if name not in control:
        return "not run by Spark's own"
    own = control[name]
    if own is None:
        return "by the jar alone"
    return (
        None if _reason(own) == _reason(why) else f"by Spark's own for another reason ({own[:100]})"
    )


def _reason(why: str) -> str:
    """The words of a failure, without the paths and numbers that differ from run to run."""
    return re.sub(r"\S*/\S*|[\d.-]+", "", why)


def shared(suite: Suite, found: Results, control: Results) -> Iterator[str]:
    """One line for each test that fails, as no known difference, by Spark's own protocol too."""
    for name, why in odd(suite, found, own=False).items():
        if name in control and _verdict(why, name, control) is None:
            yield f"{name}, by Spark's own too: {why[:300]}"
