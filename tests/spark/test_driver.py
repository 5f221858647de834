"""`write` killed at telling requests, each run judged by itself; ``make chaos-driver`` has all."""

import sys

import pytest

from tests.native.s3a import ROOT
from tests.servers import ran

PROGRAM = (sys.executable, "-m", "tests.engines.chaos.driver")
KILLS = [
    "once:_request.json:after",
    pytest.param("partition:_request.json:after", marks=pytest.mark.long),
    pytest.param("append:part 1:zombie", marks=pytest.mark.long),
]


@pytest.mark.parametrize("kill", KILLS)
def test_i1_i2_i4_i10_i11_a_driver_killed_at_a_request(kill: str) -> None:
    done = ran(*PROGRAM, kill, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
