"""`write` killed at telling requests; ``make chaos-driver`` has all of them."""

from collections.abc import Iterator

import pytest

from tests.engines.chaos.driver.deployment import local_up
from tests.engines.chaos.driver.gate import How, Point
from tests.engines.chaos.driver.program import Client
from tests.engines.chaos.driver.spark import CASES, Stage
from tests.engines.chaos.driver.trial import Trial


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with local_up() as deployed:
        yield Stage(deployed, Client.WRITE)


def killed(stage: Stage, case: str, name: str, how: How) -> Trial:
    return stage.kill_at(CASES[case], Point(name, 1, how))


def outcomes(trial: Trial) -> list[str]:
    return sorted(trial.outcomes().values())


def test_i2_i11_a_driver_killed_after_its_request_is_not_missed(stage: Stage) -> None:
    trial = killed(stage, "once", "_request.json", How.AFTER)
    assert "COMMITTED" in outcomes(trial)
    # The driver that is run again may come before the first one's job has ended.
    codes = {(result["error"] or {}).get("code") for result in trial.results().values()}
    assert codes <= {None, "ALREADY_COMMITTED"}


@pytest.mark.long
def test_i2_i10_a_driver_that_replaces_is_not_missed_either(stage: Stage) -> None:
    assert outcomes(killed(stage, "partition", "_request.json", How.AFTER)) == ["COMMITTED"]


@pytest.mark.long
def test_i1_i4_zombies_that_outlive_their_driver_do_no_harm(stage: Stage) -> None:
    trial = killed(stage, "append", "part 1", How.ZOMBIE)
    assert outcomes(trial) == ["ABORTED"]
    # They were at work after the sweep, and found their upload gone.
    (gate,) = trial.gates
    assert 404 in {seen.status for seen in gate.requests if seen.name == "part 1"}
