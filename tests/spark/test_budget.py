"""The memory of a task with hundreds of directories, as the kernel counts it."""

from __future__ import annotations

import subprocess
import sys


def test_a_process_that_writes_200_unsorted_directories_stays_within_the_memory_budget() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.wide_rows"], capture_output=True, text=True, check=True
    )
    added, budget = map(int, done.stdout.split())
    assert added <= budget, f"{added >> 20} MB above idle, of {budget >> 20} MB"
    assert added >= budget // 4  # or nothing was measured
