"""Drivers killed at telling requests; ``make chaos-driver ARGS="--client native"`` has all."""

from collections.abc import Iterator

import pytest

from tests.engines.chaos.driver.deployment import local_up
from tests.engines.chaos.driver.gate import How, Point
from tests.engines.chaos.driver.program import Client
from tests.engines.chaos.driver.spark import CASES, Stage
from tests.native.s3a import hadoop

# A driver is a JVM, and costs 20 times what a statement does: the rest has time.
FEW: list[tuple[str, str, How, set[str] | None]] = [
    ("append", "part 1", How.AFTER, {"ABORTED"}),
    ("once", "_request.json", How.AFTER, {"ABORTED", "COMMITTED"}),
]
MORE: list[tuple[str, str, How, set[str] | None]] = [
    ("append", "_job.json", How.AFTER, {"ABORTED"}),
    ("append", "start upload", How.ZOMBIE, {"ABORTED"}),
    ("append", "_request.json", How.AFTER, {"COMMITTED"}),
    ("directory", "_request.json", How.AFTER, {"COMMITTED"}),
    ("directory", "_request.json", How.BEFORE, {"ABORTED"}),
    ("partition", "_request.json", How.AFTER, {"COMMITTED"}),
]
if hadoop() >= (3, 4, 2):  # an older S3A puts a late request over the abort that came first
    MORE.append(("partition", "_request.json", How.ZOMBIE, None))


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with local_up() as deployed:
        yield Stage(deployed, Client.NATIVE)


@pytest.mark.parametrize(
    ("case", "name", "how", "outcomes"),
    [*FEW, *(pytest.param(*point, marks=pytest.mark.long) for point in MORE)],
)
def test_i1_i2_i4_i10_i11_a_driver_killed_at_a_request(
    stage: Stage, case: str, name: str, how: How, outcomes: set[str] | None
) -> None:
    trial = stage.kill_at(CASES[case], Point(name, 1, how))
    if outcomes is not None:
        assert set(trial.outcomes().values()) == outcomes, trial.outcomes()
