"""The same seeds each time, each an order of its own; ``make test-long`` has more of them.

``make soak ARGS="--minutes 10"`` goes further, and with ``--adversary`` has a client that means
harm; ``make soak ARGS="--seed N"`` replays one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.sim.door import OBSERVED
from tests.engines.sim.faults import KINDS, READS, RESENT
from tests.engines.sim.ports import LEDGER_VERBS, STORE_VERBS
from tests.servers import ran

ROOT = Path(__file__).parents[2]


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: sets are walked in the order of hashes, which a replay needs."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    return ran(sys.executable, "-m", "tests.engines.sim", *arguments, cwd=ROOT, env=environment)


@pytest.mark.parametrize("schedules", [500, pytest.param(3000, marks=pytest.mark.long)])
def test_i1_to_i11_in_every_order_and_under_every_fault(schedules: int) -> None:
    done = simulate("--first", "1", "--schedules", str(schedules))
    print(done.stdout[-20_000:], done.stderr)
    assert done.returncode == 0
    assert f"{schedules} schedules" in done.stdout
    assert [kind for kind in KINDS if f"{kind} " not in done.stdout] == []


@pytest.mark.parametrize("schedules", [250, pytest.param(1500, marks=pytest.mark.long)])
def test_i12_whatever_an_adversary_puts_below_its_prefix(schedules: int) -> None:
    done = simulate("--adversary", "--first", "1", "--schedules", str(schedules))
    print(done.stdout[-20_000:], done.stderr)
    assert done.returncode == 0
    assert f"{schedules} schedules" in done.stdout


def test_a_seed_replays_step_by_step() -> None:
    first, second = simulate("--seed", "18"), simulate("--seed", "18")
    assert first.stdout == second.stdout
    assert "SealJob" in first.stdout


def test_every_write_may_be_sent_twice_and_every_change_of_the_bucket_is_judged() -> None:
    writes = {*STORE_VERBS, *LEDGER_VERBS} - READS
    assert writes - RESENT == {"healing"}  # two requests in one
    assert writes & {*STORE_VERBS} - OBSERVED == {"upload_part", "copy_part"}  # nobody sees one
