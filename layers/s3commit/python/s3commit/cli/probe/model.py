"""A probe: what it asks of AWS, what must be seen, and what was seen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from enum import StrEnum
from functools import wraps
from typing import Any, TypeVar

from s3commit.cli.probe.target import Target

T = TypeVar("T")


class Verdict(StrEnum):
    """How a case came out. Only ``DIFFERS`` and ``FAILED`` are bad."""

    OK = "ok"
    HARMLESS = "harmless"  # not as expected, and nothing of ours relies on it
    DIFFERS = "DIFFERS"
    FAILED = "FAILED"  # it was tried, and nothing was seen
    NOT_PROBED = "not probed"


BAD = (Verdict.DIFFERS, Verdict.FAILED)


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
    """What was seen in one case: an answer, or all of several. ``detail`` is not compared.

    In a round `True` stands for "as it should be".
    """

    case: str
    answer: str | tuple[str, ...] | bool
    detail: str = ""

    @property
    def answers(self) -> tuple[str, ...]:
        """Every different answer once."""
        found = self.answer if isinstance(self.answer, tuple) else (str(self.answer),)
        return tuple(sorted(set(found)))


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
        return Cost(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def __mul__(self, times: int) -> Cost:
        return Cost(*(count * times for count in astuple(self)))

    @property
    def price(self) -> float:
        """In USD, in us-east-1, with every S3 request at the price of a PUT.

        https://aws.amazon.com/s3/pricing/, https://aws.amazon.com/step-functions/pricing/,
        https://aws.amazon.com/dynamodb/pricing/on-demand/; what is copied is stored for minutes.
        """
        stored = self.copied / 2**30 * 0.023 / (30 * 24)
        billed = self.requests * 0.005 + self.transitions * 0.025 + self.writes * 0.00125
        return billed / 1000 + stored


def needs(*options: str) -> Callable[[Target], str]:
    """What a target lacks that was not given these options."""

    def lacks(target: Target) -> str:
        given = target.given
        missing = [name for name in options if not getattr(given, name.replace("-", "_"))]
        return f"give {' and '.join(f'--{name}' for name in missing)}" if missing else ""

    return lacks


Run = Callable[[Target], Iterator[Seen]]


@dataclass(frozen=True, slots=True)
class Probe:
    """One behaviour of AWS. ``run`` yields what it sees, case by case.

    ``relies`` names what of ours rests on it: assumptions of docs/proof.md, decisions in docs/adr,
    or a module or page. A race takes ``each_round`` besides its ``cost``. ``lacks`` says why it
    can't be probed on a target, or nothing.
    """

    name: str
    what: str
    relies: tuple[str, ...]
    source: str
    cases: Mapping[str, Case]
    run: Run
    cost: Cost = Cost()
    each_round: Cost = Cost()
    lacks: Callable[[Target], str] = lambda _target: ""

    @property
    def on_both(self) -> tuple[Probe, Probe]:
        """The probe, and the same in the bucket with versions."""
        return self, replace(
            self,
            name=f"{self.name}-versioned",
            what=f"{self.what}, with versions",
            run=lambda target: self.run(target.on_versions()),
            lacks=needs("versioned-bucket"),
        )


def probe(
    *, relies: tuple[str, ...], source: str, cases: Mapping[str, Case], **besides: Any
) -> Callable[[Run], Probe]:
    """Make a `Probe` of a function: its name is the probe's, its docstring's first line what is so.

    ``besides`` are ``cost``, ``each_round`` and ``lacks`` of `Probe`.
    """

    def decorate(run: Run) -> Probe:
        what = (run.__doc__ or "?").splitlines()[0].rstrip(".")
        name = run.__name__.replace("_", "-")
        return Probe(name, what[0].lower() + what[1:], relies, source, cases, run, **besides)

    return decorate


def in_rounds(detail: str) -> Callable[[Callable[[Target, int], Iterator[Seen]]], Run]:
    """Run a function once for each round; of each case all that was seen counts together.

    ``detail`` says what was repeated; its ``{rounds}`` and ``{parts}`` are the target's.
    """

    def decorate(one_round: Callable[[Target, int], Iterator[Seen]]) -> Run:
        @wraps(one_round)
        def run(target: Target) -> Iterator[Seen]:
            found: dict[str, list[Seen]] = defaultdict(list)
            for number in range(target.rounds):
                for seen in one_round(target, number):
                    found[seen.case].append(seen)
            told = detail.format(rounds=target.rounds, parts=target.parts)
            for case, each in found.items():
                yield Seen(case, _together(each), told)

        return run

    return decorate


def _together(found: list[Seen]) -> str | tuple[str, ...]:
    """``always``, or how many times of how many; or all answers."""
    kept = [seen.answer for seen in found if isinstance(seen.answer, bool)]
    if kept:
        return "always" if all(kept) else f"{sum(kept)} of {len(kept)} times"
    return tuple(answer for seen in found for answer in seen.answers)


def race(calls: Sequence[Callable[[], str]], read: Callable[[], str], whose: str) -> Iterator[Seen]:
    """Make calls at once of which one is to win: how many do, and what the others are told.

    ``whose`` is the case that says whether what is there then, a caller's number by ``read``, is a
    winner's.
    """
    answers = at_once(*calls)
    winners = [str(racer) for racer, answer in enumerate(answers) if answer == "200"]
    yield Seen("winners of each race", str(len(winners)))
    yield Seen("what the others are told", tuple(each for each in answers if each != "200"))
    yield Seen(whose, "yes" if read() in winners else "no")


def at_once(*calls: Callable[[], T]) -> list[T]:
    """Make the calls on a thread each; what each returned, in their order."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [started.result() for started in [pool.submit(call) for call in calls]]


@dataclass(frozen=True, slots=True)
class Row:
    """One case of a probe, judged. ``seen`` says why if it is not probed or failed."""

    case: str
    expected: tuple[str, ...]
    seen: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Report:
    """A probe with all of its cases."""

    probe: Probe
    rows: tuple[Row, ...]


def judge(case: Case, seen: Seen) -> Row:
    """The row of what was seen."""
    shown = ", ".join(seen.answers) + (f" ({seen.detail})" if seen.detail else "")
    if seen.answers and set(seen.answers) <= set(case.expected):
        verdict = Verdict.OK
    else:
        verdict = Verdict.DIFFERS if case.matters else Verdict.HARMLESS
    return Row(seen.case, case.expected, shown or "nothing", verdict)
