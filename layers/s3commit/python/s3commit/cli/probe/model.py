"""A probe: what it asks of AWS, what must be seen, and what was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from s3commit.cli.probe.place import Place
from s3commit.cli.probe.world import World


class Verdict(StrEnum):
    """How a case came out. Only those of `BAD` are bad."""

    OK = "ok"
    HARMLESS = "harmless"  # not as expected, and nothing of ours relies on it
    DIFFERS = "DIFFERS"
    FAILED = "FAILED"  # it was tried, and nothing was seen
    NOT_PROBED = "not probed"


BAD = (Verdict.DIFFERS, Verdict.FAILED)


class Case(NamedTuple):
    """What is looked at, and the answers of which each one is as it should be.

    ``matters`` says that correctness rests on it: another answer then differs, otherwise it is
    reported as harmless.
    """

    name: str
    expected: tuple[str, ...]
    matters: bool = True


class Seen(NamedTuple):
    """What was seen in one case, if not one answer alone. ``detail`` is not compared."""

    answers: Sequence[str]
    detail: str = ""


class Cost(NamedTuple):
    """What a probe takes at most: S3 requests, and what AWS bills for the others."""

    requests: int = 0  # but those of the end
    deletes: int = 0  # at the end, with aborts; S3 does not bill them
    transitions: int = 0  # of standard state machines
    writes: int = 0  # write units of a table
    sent: int = 0  # bytes
    copied: int = 0  # bytes, within S3

    @property
    def price(self) -> float:
        """In USD, in us-east-1, with every S3 request at the price of a PUT.

        https://aws.amazon.com/s3/pricing/, https://aws.amazon.com/step-functions/pricing/,
        https://aws.amazon.com/dynamodb/pricing/on-demand/; what is copied is stored for minutes.
        """
        stored = self.copied / 2**30 * 0.023 / (30 * 24)
        billed = self.requests * 0.005 + self.transitions * 0.025 + self.writes * 0.00125
        return billed / 1000 + stored


NOTHING = Cost()


def total(costs: Iterable[Cost]) -> Cost:
    """The sum of some costs."""
    return Cost(*map(sum, zip(NOTHING, *costs, strict=True)))


Answers = Iterator[str | Seen]
Run = Callable[[World, Place], Answers]
Watched = tuple[Run, tuple[Case, ...]]


@dataclass(frozen=True, slots=True)
class Probe:
    """One behaviour of AWS. ``run`` yields the answer of each case, in their order.

    ``relies`` names what of ours rests on it: assumptions of docs/proof.md, decisions in docs/adr,
    or a module or page. A race takes ``each_round`` besides its ``cost``. ``lacks`` says why it
    can't be probed in a world, or nothing. ``versioned`` is for the bucket with versions.
    """

    name: str
    what: str
    relies: tuple[str, ...]
    source: str
    cases: tuple[Case, ...]
    run: Run
    cost: Cost = NOTHING
    each_round: Cost = NOTHING
    lacks: Callable[[World], str] = lambda _world: ""
    versioned: bool = False

    def cost_in(self, world: World) -> Cost:
        """What it takes with all of its rounds."""
        return total([self.cost, *[self.each_round] * world.rounds])


def sees(name: str, *expected: str, matters: bool = True) -> Callable[[Run | Watched], Watched]:
    """Name the answers of the function below, one by one; see `Case`."""

    def watch(below: Run | Watched) -> Watched:
        run, cases = below if isinstance(below, tuple) else (below, ())
        return run, (Case(name, expected, matters), *cases)

    return watch


def probe(
    name: str, what: str, relies: str, source: str, cost: Cost = NOTHING, **more: Any
) -> Callable[[Watched], Probe]:
    """Make a probe of the function below and its cases; see `Probe`."""

    def make(watched: Watched) -> Probe:
        run, cases = watched
        return Probe(name, what, tuple(relies.split(", ")), source, cases, run, cost, **more)

    return make


def with_versions(plain: Probe) -> tuple[Probe, Probe]:
    """The probe, and the same in the bucket with versions."""
    versioned = replace(
        plain,
        name=f"{plain.name}-versioned",
        what=f"{plain.what}, with versions",
        lacks=needs("versioned-bucket"),
        versioned=True,
    )
    return plain, versioned


def needs(*names: str) -> Callable[[World], str]:
    """What a world lacks that was not given each ``--name``."""

    def lacks(world: World) -> str:
        missing = [name for name in names if not getattr(world.given, name.replace("-", "_"))]
        return f"give {' and '.join(f'--{name}' for name in missing)}" if missing else ""

    return lacks


class Row(NamedTuple):
    """One case of a probe, judged. ``seen`` says why if it is not probed or failed."""

    case: str
    expected: tuple[str, ...]
    seen: str
    verdict: Verdict


class Report(NamedTuple):
    """A probe with all of its cases."""

    probe: Probe
    rows: list[Row]


def judge(case: Case, answer: str | Seen) -> Row:
    """The row of what was seen."""
    seen = Seen((answer,)) if isinstance(answer, str) else answer
    answers = sorted(set(seen.answers))
    shown = ", ".join(answers) + (f" ({seen.detail})" if seen.detail else "")
    if answers and set(answers) <= set(case.expected):
        verdict = Verdict.OK
    else:
        verdict = Verdict.DIFFERS if case.matters else Verdict.HARMLESS
    return Row(case.name, case.expected, shown or "nothing", verdict)
