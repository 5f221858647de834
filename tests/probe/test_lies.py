"""A store that does not keep a promise is found out by the probe of that promise."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from s3commit.cli.probe import run
from s3commit.cli.probe.model import BAD, Answers, Case, Probe, Seen, Verdict, judge
from s3commit.cli.probe.place import Place, Upload
from s3commit.cli.probe.uploads import SETTLE_SECONDS
from s3commit.cli.probe.world import World
from s3commit.writer.environment import SystemEnvironment


@pytest.fixture
def world(moto_world: World) -> Iterator[World]:
    """A world whose place a test replaces by one that lies."""
    yield moto_world
    assert moto_world.clean() == []


class Unconditional(Place):
    """Ignores every condition."""

    def put(self, key: str, body: bytes = b"first", **_condition: str) -> str:
        return super().put(key, body)

    def delete(self, key: str, **_condition: str) -> str:
        return super().delete(key)

    def completed(self, upload: Upload, **_named: Any) -> tuple[str, int]:
        return super().completed(upload)


class Reappearing(Place):
    """A completion that is repeated puts its object again."""

    def completed(self, upload: Upload, **named: Any) -> tuple[str, int]:
        told = super().completed(upload, **named)
        if told[0] != "200" or self.body(upload.key) != "first":
            super().put(upload.key)
        return told


class Undead(Place):
    """An abort is answered, and not carried out."""

    def abort(self, upload: Upload) -> str:
        return "204"


class Both(Undead):
    """Completes, and says that it was aborted."""

    def completed(self, upload: Upload, **named: Any) -> tuple[str, int]:
        super().completed(upload, **named)
        return "404 NoSuchUpload", 0


class Neither(Place):
    """Says that it has completed, and does not."""

    def completed(self, upload: Upload, **_named: Any) -> tuple[str, int]:
        super().abort(upload)
        return "200", 0


class Stuck(Undead):
    """Neither completes nor aborts."""

    def completed(self, upload: Upload, **_named: Any) -> tuple[str, int]:
        return "404 NoSuchUpload", 0


class Later(Stuck):
    """Says that the upload is gone, and completes it later."""

    def parts_of(self, upload: Upload) -> str:
        return "404 NoSuchUpload"


class Waking(SystemEnvironment):
    """Whoever waits for things to settle sees the object come."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.rounds = itertools.count()

    def sleep(self, seconds: float) -> None:
        if seconds == SETTLE_SECONDS:
            self.place.put(f"raced-{next(self.rounds)}")


class Blind(Place):
    """Listings show nothing."""

    def listed(self, below: str = "") -> list[str]:
        return []

    def listed_uploads(self, below: str = "") -> list[dict[str, Any]]:
        return [] if below else super().listed_uploads(below)


LIES: list[tuple[Callable[..., Place], str, set[str]]] = [
    (
        Unconditional,
        "conditional-put",
        {
            "put if none, an object there",
            "put if match, changed",
            "the object after both refusals",
            "put if match, nothing there",
            "nothing there after that",
        },
    ),
    (
        Unconditional,
        "conditional-delete",
        {"delete if match, changed", "the object after both refusals"},
    ),
    (Unconditional, "put-race", {"winners of each race"}),
    (
        Reappearing,
        "completion-again",
        {"what reappears", "the object after that"},
    ),
    (
        Undead,
        "abort",
        {"complete after it", "what appears"},
    ),
    (
        Blind,
        "uploads-seen",
        {"upload listed after its start", "object listed and read after completion"},
    ),
    (Blind, "objects-seen", {"listed after a put"}),
]


@pytest.mark.parametrize(
    ("liar", "name", "cases"), LIES, ids=[f"{lie[0].__name__}-{lie[1]}" for lie in LIES]
)
def test_a1_a2_a4_a_broken_promise_differs(
    world: World, liar: Callable[..., Place], name: str, cases: set[str]
) -> None:
    honest = world.place
    world.__dict__["place"] = liar(honest.client, honest.bucket, honest.prefix)

    (probe,) = [each for each in run.PROBES if each.name == name]
    rows = run._probed(probe, world)

    world.__dict__["place"] = honest
    found = {row.case for row in rows if row.verdict in BAD}
    assert cases <= found, rows
    if name != "completion-again":  # more versions and answers than those differ as well
        assert all(row.verdict is not Verdict.FAILED for row in rows)


RACES: list[tuple[Callable[..., Place], str]] = [
    (Both, "both: refused with 404 NoSuchUpload, and visible"),
    (Neither, "neither: completed, and nothing is visible"),
    (Stuck, "neither: the upload is open (complete 404 NoSuchUpload, abort 204)"),
    (Later, "both: aborted, and visible later"),
]


@pytest.mark.parametrize(("liar", "told"), RACES, ids=[liar.__name__ for liar, _ in RACES])
def test_a4_an_abort_and_a_completion_that_both_count_or_neither_differ(
    world: World, liar: Callable[..., Place], told: str
) -> None:
    honest = world.place
    world.__dict__["place"] = place = liar(honest.client, honest.bucket, honest.prefix)
    if liar is Later:
        world.environment = Waking(place)
    (probe,) = [each for each in run.PROBES if each.name == "abort-race"]

    (row,) = run._probed(probe, world)

    world.__dict__["place"] = honest
    assert (row.seen, row.verdict) == (f"{told} (2 races with 2 parts of 5 MiB)", Verdict.DIFFERS)


def test_a_probe_that_dies_keeps_what_it_has_seen(world: World) -> None:
    def dying(_world: World, _place: Place) -> Answers:
        yield "1"
        raise RuntimeError("no more\nof it")

    cases = (Case("first", ("1",)), Case("second", ("2",)))
    rows = run._probed(Probe("dying", "", (), "", cases, dying), world)
    verdicts = [(row.case, row.verdict, row.seen) for row in rows]
    assert verdicts == [
        ("first", Verdict.OK, "1"),
        ("second", Verdict.FAILED, "RuntimeError: no more of it"),
    ]


@pytest.mark.parametrize(
    ("answers", "matters", "verdict"),
    [
        (("1",), True, Verdict.OK),
        (("1", "2"), True, Verdict.OK),
        (("1", "3"), True, Verdict.DIFFERS),
        (("3",), False, Verdict.HARMLESS),
        ((), True, Verdict.DIFFERS),
    ],
)
def test_every_answer_has_to_be_expected(
    answers: tuple[str, ...], matters: bool, verdict: Verdict
) -> None:
    assert judge(Case("x", ("1", "2"), matters), Seen(answers)).verdict is verdict
