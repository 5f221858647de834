"""Each probe on moto and on SeaweedFS: what differs there is known by name, and nothing else does.

A difference that appears means that a probe or a server has changed; one that is gone has to go
from the list.
"""

from __future__ import annotations

import pytest

from s3commit.cli.probe import run
from s3commit.cli.probe.model import Probe, Report, Verdict
from s3commit.cli.probe.run import lacking_in, run_probes
from s3commit.cli.probe.target import Target
from tests.probe.conftest import target_on

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
def target(server: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A target on the server."""
    return target_on(server, request.getfixturevalue(f"{server}_endpoint"), monkeypatch)


def test_a2_a3_a4_what_differs_on_a_server_is_known_and_nothing_is_left(
    target: Target, server: str
) -> None:
    spent: list[tuple[Probe, int]] = []
    lacking = lacking_in(target)
    reports = run_probes(target, lacking, lambda probe: spent.append((probe, target.requests)))
    found = seen_otherwise(reports)
    if _WINNERS in KNOWN[server]:
        for _ in range(RACES_TRIED):
            if _WINNERS in found:
                break
            found |= seen_otherwise([run._probed(_named(_WINNERS[0]), target)])
        found[_WHOSE] = KNOWN[server][_WHOSE]

    assert {name for name, why in lacking.items() if why} == NOT_PROBED[server]
    assert found == KNOWN[server]
    _require_bounds(spent, target)
    assert target.clean() == []
    for place in target.prefixes:
        assert place.listed() == []
        assert place.left() == []


def _require_bounds(spent: list[tuple[Probe, int]], target: Target) -> None:
    """The price that is said before holds."""
    ends = [requests for _, requests in spent[1:]]
    for (probe, begin), end in zip(spent, ends, strict=False):
        bound = probe.cost + probe.each_round * target.rounds
        assert end - begin <= bound.requests, probe.name


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
