"""The memory of a task, as the kernel counts it."""

import sys

import pytest

from s3commit.spark.options import MB
from tests.servers import ran


@pytest.mark.parametrize("partitions", ["1", "200"])
def test_a_process_that_writes_half_a_gigabyte_takes_no_more_than_is_said(partitions: str) -> None:
    added = int(ran(sys.executable, "-m", "tests.spark.wide_rows", partitions).stdout)
    assert added <= 256 * MB, f"{added >> 20} MB above idle"  # docs/guide/platforms.md
    assert added >= 64 * MB  # or nothing was measured
