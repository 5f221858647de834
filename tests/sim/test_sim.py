"""The everyday share of the simulation: the same seeds each time, each an order of its own.

``make soak ARGS="--minutes 10"`` goes further, and with ``--adversary`` has a client that means
harm; ``make soak ARGS="--seed N"`` replays one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIRST = 1
SCHEDULES = 3000
ATTACKED = 1500  # with an adversary among the clients


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: sets are walked in the order of hashes, which a replay needs."""
    return subprocess.run(
        [sys.executable, "-m", "tests.engines.sim", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_i1_to_i11_in_every_order_and_under_every_fault() -> None:
    done = simulate("--first", str(FIRST), "--schedules", str(SCHEDULES))
    print(done.stdout[-20_000:], done.stderr)
    assert done.returncode == 0
    assert f"{SCHEDULES} schedules" in done.stdout


def test_i12_whatever_an_adversary_puts_below_its_prefix() -> None:
    done = simulate("--adversary", "--first", str(FIRST), "--schedules", str(ATTACKED))
    print(done.stdout[-20_000:], done.stderr)
    assert done.returncode == 0
    assert f"{ATTACKED} schedules" in done.stdout


def test_a_seed_replays_step_by_step() -> None:
    first, second = simulate("--seed", "17"), simulate("--seed", "17")
    assert first.stdout == second.stdout
    assert "DecideCommit" in first.stdout
