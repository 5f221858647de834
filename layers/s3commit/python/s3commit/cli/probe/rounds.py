"""Several calls at once, several times: what was seen in all of the rounds together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

from s3commit.cli.probe.model import Answers, Run, Seen
from s3commit.cli.probe.place import Place
from s3commit.cli.probe.world import World

T = TypeVar("T")

RACERS, THREADS = 4, 8
RACES = f"{{rounds}} races of {RACERS}"

# What one round tells of one case: whether it was so, an answer, or those of several.
Told = bool | str | list[str]
Round = Callable[[World, Place, int], Iterator[Told]]


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make the calls, `THREADS` at a time; what each returned, in their order."""
    with ThreadPoolExecutor(THREADS) as pool:
        return [started.result() for started in [pool.submit(call) for call in calls]]


def rounds(detail: str = "") -> Callable[[Round], Run]:
    """Run the function below in each round, and gather the answers of each case.

    ``detail`` goes with the first case; it may name ``{rounds}`` and ``{parts}``.
    """

    def repeated(one: Round) -> Run:
        def run(world: World, place: Place) -> Answers:
            told = [tuple(one(world, place, number)) for number in range(world.rounds)]
            shown = detail.format(rounds=world.rounds, parts=world.parts)
            for answers in zip(*told, strict=True):
                yield _together(answers, shown)
                shown = ""

        return run

    return repeated


def _together(answers: tuple[Told, ...], detail: str) -> Seen:
    if isinstance(answers[0], bool):
        done, all_of = sum(map(bool, answers)), len(answers)
        always = "always" if done == all_of else f"{done} of {all_of} times"
        return Seen([always], f"{all_of} times")
    several = [told if isinstance(told, list) else [str(told)] for told in answers]
    return Seen(list(chain(*several)), detail)


def race_of(calls: Sequence[Callable[[], str]], holder: Callable[[], str]) -> Iterator[Told]:
    """Make the calls at once, of which each writes its number if nothing is there.

    Tells how many won, what the others were told, and whether what is there is a winner's.
    """
    answers = at_once(calls)
    winners = [str(racer) for racer, answer in enumerate(answers) if answer == "200"]
    yield str(len(winners))
    yield [answer for answer in answers if answer != "200"]
    yield "yes" if holder() in winners else "no"
