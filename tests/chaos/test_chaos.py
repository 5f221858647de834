"""One seed of the chaos on the real wiring, every day; ``make chaos`` runs as many as one wants."""

import json
import sys
from collections import Counter
from typing import Any

import pytest

from tests.engines.chaos.world import PROJECT
from tests.servers import ran

# A seed whose few jobs are of all kinds, and whose adversary does not let any function go free.
SEED = 22
JOBS = 24
FAULTS = (
    "killed before a request", "killed after a request", "ingest killed", "dispatch killed",
    "complete killed", "end killed", "client killed", "execution stopped",
    "execution started by mistake", "message lost", "message late", "message twice",
    "message redelivered", "s3 500", "s3 503", "s3 reset", "dynamodb",
)  # fmt: skip
MINUTES = 10  # of a machine that has much else to do


@pytest.fixture(scope="module")
def run() -> dict[str, Any]:
    """The report of a run, in a process of its own: moto's state is its process's."""
    command = [sys.executable, "-m", "tests.engines.chaos", "--child"]
    command += ["--seed", str(SEED), "--jobs", str(JOBS)]
    done = ran(*command, cwd=PROJECT, timeout=60 * MINUTES)
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_i1_i2_i3_i4_i5_i6_i9_i10_i11_hold_whatever_dies_or_gets_lost(run: dict[str, Any]) -> None:
    """Each of them is judged by the run itself; here it has ended without a violation."""
    ended = Counter(run["outcomes"])
    assert ended.total() == JOBS
    assert ended["COMMITTED"] >= JOBS // 4
    assert any(outcome.startswith("ROLLED_BACK") for outcome in ended)
    assert any(outcome.startswith("ABORTED") for outcome in ended)


def test_the_run_has_met_every_kind_of_fault(run: dict[str, Any]) -> None:
    missed = [kind for kind in FAULTS if not any(kind in fault for fault in run["faults"])]
    assert not missed, run["faults"]
