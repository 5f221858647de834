"""What the protocol stands on: without each of the three promises it falls, as is seen here."""

from __future__ import annotations

import pytest

from tests.engines.explorer.explorer import Explorer
from tests.engines.explorer.worlds import LONG
from tests.engines.sim.assumptions import HeedlessLedger
from tests.engines.sim.scheduler import Violation
from tests.sim.test_sim import simulate

REPLACING = LONG["call by call: replace beside replace"]


def test_without_conditional_updates_two_jobs_replace_one_destination_together() -> None:
    """The shortest way, call by call: both lock one node."""
    with pytest.raises(Violation, match="I6: both jobs") as found:
        Explorer(REPLACING, ledger=HeedlessLedger).run()
    print(found.value)
    assert "AcquireDestination lock" in str(found.value)


@pytest.mark.parametrize("promise", ["strong reads", "conditional put"])
def test_without_a_promise_of_s3_an_invariant_breaks(promise: str) -> None:
    done = simulate("--without", promise, "--schedules", "200")
    print("\n".join(done.stdout.splitlines()[-40:]), done.stderr)
    assert done.returncode == 1
    assert f"--without '{promise}'" in done.stdout


def test_with_all_promises_kept_the_same_world_holds() -> None:
    """As far as the counterexample lay from the start; `make test-long` explores all of it."""
    Explorer(REPLACING).run(most=4000)
