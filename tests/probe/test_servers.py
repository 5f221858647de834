"""Each probe on moto and on SeaweedFS: what differs there is known by name, and nothing else does.

A difference that appears means that a probe or a server has changed; one that is gone has to go
from the list.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3commit.cli.probe import run
from s3commit.cli.probe.model import Answers, Probe, Report, Verdict
from s3commit.cli.probe.place import Place
from s3commit.cli.probe.run import lacking_in, run_probes
from s3commit.cli.probe.world import World
from tests.probe.conftest import world_on

ON_A_DEPLOYMENT = {"job", "alarm", "execution-names", "map-datasets"}  # tests/e2e/test_probe.py
WITH_A_TABLE = {"update-race", "consistent-reads", "transactions"}
RACES_TRIED = 20

# What is not `ok`: the contract suite names the same in `Differences`.
_NO_CHECKSUMS = {("checksums", "checksum type of the object"): Verdict.HARMLESS}
_NO_SIZE = {  # checks_length
    ("conditional-complete", "complete with another size"): Verdict.DIFFERS,
    ("conditional-complete", "nothing there after that"): Verdict.DIFFERS,
    ("conditional-complete", "the upload after that"): Verdict.HARMLESS,
    ("conditional-complete-versioned", "complete with another size"): Verdict.DIFFERS,
    ("conditional-complete-versioned", "nothing there after that"): Verdict.DIFFERS,
    ("conditional-complete-versioned", "the upload after that"): Verdict.HARMLESS,
}
# completes_atomically. Who wins there is up to the threads, and so is whose object it is.
_WINNERS = ("complete-race", "winners of each race")
_WHOSE = ("complete-race", "the object is a winner's")
_SEVERAL_WIN = {_WINNERS: Verdict.DIFFERS, _WHOSE: Verdict.DIFFERS}
KNOWN = {"moto": _NO_CHECKSUMS, "weed": {**_NO_CHECKSUMS, **_NO_SIZE, **_SEVERAL_WIN}}
NOT_PROBED = {"moto": ON_A_DEPLOYMENT, "weed": {*ON_A_DEPLOYMENT, *WITH_A_TABLE, "kms"}}


@pytest.fixture(params=["moto", "weed"])
def server(request: pytest.FixtureRequest) -> str:
    """Each server in turn."""
    return str(request.param)


@pytest.fixture
def world(server: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    """A world on the server."""
    return world_on(server, request.getfixturevalue(f"{server}_endpoint"), monkeypatch)


def test_a2_a3_a4_what_differs_on_a_server_is_known_and_nothing_is_left(
    world: World, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unnamed: list[str] = []
    monkeypatch.setattr(run, "PROBES", [_noting(each, unnamed) for each in run.PROBES])
    spent: list[tuple[Probe, int]] = []
    lacking = lacking_in(world)
    reports = run_probes(world, lacking, lambda probe: spent.append((probe, world.requests)))
    found = seen_otherwise(reports)
    if _WINNERS in KNOWN[server]:
        for _ in range(RACES_TRIED):
            if _WINNERS in found:
                break
            race = _named(_WINNERS[0])
            found |= seen_otherwise([Report(race, run._probed(race, world))])
        found[_WHOSE] = KNOWN[server][_WHOSE]

    assert {name for name, why in lacking.items() if why} == NOT_PROBED[server]
    assert found == KNOWN[server]
    assert unnamed == []
    _require_bounds(spent, world)
    assert world.clean() == []
    for place in world.places:
        assert place.listed() == []
        assert place.left() == []


def _noting(probe: Probe, unnamed: list[str]) -> Probe:
    """The probe, noted if it has more answers than cases; one without an answer is FAILED."""

    def answers(world: World, place: Place) -> Answers:
        for number, answer in enumerate(probe.run(world, place)):
            if number >= len(probe.cases):
                unnamed.append(probe.name)
            yield answer

    return replace(probe, run=answers)


def _require_bounds(spent: list[tuple[Probe, int]], world: World) -> None:
    """The price that is said before holds."""
    ends = [requests for _, requests in spent[1:]]
    for (probe, begin), end in zip(spent, ends, strict=False):
        assert end - begin <= probe.cost_in(world).requests, probe.name


def seen_otherwise(reports: list[Report]) -> dict[tuple[str, str], Verdict]:
    """The cases that were probed and are not ok."""
    fine = {Verdict.OK, Verdict.NOT_PROBED}
    return {
        (report.probe.name, row.case): row.verdict
        for report in reports
        for row in report.rows
        if row.verdict not in fine
    }


def _named(name: str) -> Probe:
    (probe,) = [each for each in run.PROBES if each.name == name]
    return probe
