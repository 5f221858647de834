"""`write` killed at telling requests; ``make chaos-driver ARGS="--client write"`` has all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.chaos.driver.deployment import local_up
from tests.engines.chaos.driver.gate import How, Point
from tests.engines.chaos.driver.program import Client
from tests.engines.chaos.driver.spark import CASES, Drivers, Stage
from tests.engines.chaos.driver.trial import Watch

POINTS = [
    pytest.param("append", "part 1", How.ZOMBIE, {"ABORTED"}, marks=pytest.mark.long),
    ("once", "request.json", How.AFTER, {"COMMITTED"}),
]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with (
        local_up() as deployed,
        Watch() as watch,
        Drivers(deployed, len(POINTS), Client.WRITE) as drivers,
    ):
        yield Stage(deployed, watch, drivers, tmp_path_factory.mktemp("streams"))


@pytest.mark.parametrize(("case", "name", "how", "outcomes"), POINTS)
def test_i1_i2_i4_i11_a_driver_killed_at_a_request(
    stage: Stage, case: str, name: str, how: How, outcomes: set[str]
) -> None:
    trial = stage.kill_at(CASES[case], Point(name, 1, how))
    assert set(trial.outcomes().values()) == outcomes, trial.outcomes()
