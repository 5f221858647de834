"""A probe: what it asks of AWS, what must be seen, and what was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

W = TypeVar("W")


class Verdict(StrEnum):
    """How a case came out. Only ``DIFFERS`` and ``FAILED`` are bad."""

    OK = "ok"
    HARMLESS = "harmless"  # not as expected, and nothing of ours relies on it
    DIFFERS = "DIFFERS"
    FAILED = "FAILED"  # it was tried, and nothing was seen
    NOT_PROBED = "not probed"


BAD = frozenset({Verdict.DIFFERS, Verdict.FAILED})


@dataclass(frozen=True, slots=True)
class Case:
    """The answers of which each one is as it should be.

    ``matters`` says that correctness rests on it: another answer then differs, otherwise it is
    reported as harmless.
    """

    expected: tuple[str, ...]
    matters: bool = True


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen in one case: every different answer once. ``detail`` is not compared."""

    case: str
    answers: tuple[str, ...]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a probe takes at most: S3 requests, and what AWS bills for the others."""

    requests: int = 0  # but those of the end
    deletes: int = 0  # at the end, with aborts; S3 does not bill them
    transitions: int = 0  # of standard state machines
    writes: int = 0  # write units of a table
    sent: int = 0  # bytes
    copied: int = 0  # bytes, within S3

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.requests + other.requests,
            self.deletes + other.deletes,
            self.transitions + other.transitions,
            self.writes + other.writes,
            self.sent + other.sent,
            self.copied + other.copied,
        )

    def __mul__(self, times: int) -> Cost:
        return Cost(
            self.requests * times,
            self.deletes * times,
            self.transitions * times,
            self.writes * times,
            self.sent * times,
            self.copied * times,
        )

    @property
    def price(self) -> float:
        """In USD, in us-east-1, with every S3 request at the price of a PUT.

        https://aws.amazon.com/s3/pricing/, https://aws.amazon.com/step-functions/pricing/,
        https://aws.amazon.com/dynamodb/pricing/on-demand/; what is copied is stored for minutes.
        """
        stored = self.copied / 2**30 * 0.023 / (30 * 24)
        billed = self.requests * 0.005 + self.transitions * 0.025 + self.writes * 0.00125
        return billed / 1000 + stored


@dataclass(frozen=True, slots=True)
class Probe(Generic[W]):
    """One behaviour of AWS. ``run`` yields what it sees, case by case.

    ``relies`` names what of ours rests on it: assumptions of docs/proof.md, decisions in docs/adr,
    or a module or page. A race takes ``each_round`` besides its ``cost``. ``lacks`` says why it
    can't be probed in a world, or nothing.
    """

    name: str
    what: str
    relies: tuple[str, ...]
    source: str
    cases: Mapping[str, Case]
    run: Callable[[W], Iterator[Seen]]
    cost: Cost = Cost()
    each_round: Cost = Cost()
    lacks: Callable[[W], str] = field(default=lambda _world: "")


@dataclass(frozen=True, slots=True)
class Row:
    """One case of a probe, judged. ``seen`` says why if it is not probed or failed."""

    case: str
    expected: tuple[str, ...]
    seen: str
    verdict: Verdict

    @property
    def says_all(self) -> bool:
        """Whether what was seen is all that was expected."""
        return self.verdict is Verdict.OK and len(self.expected) == 1


@dataclass(frozen=True, slots=True)
class Report(Generic[W]):
    """A probe with all of its cases."""

    probe: Probe[W]
    rows: tuple[Row, ...]


def judge(case: Case, seen: Seen) -> Row:
    """The row of what was seen."""
    shown = ", ".join(seen.answers) + (f" ({seen.detail})" if seen.detail else "")
    if seen.answers and set(seen.answers) <= set(case.expected):
        verdict = Verdict.OK
    else:
        verdict = Verdict.DIFFERS if case.matters else Verdict.HARMLESS
    return Row(seen.case, case.expected, shown or "nothing", verdict)
