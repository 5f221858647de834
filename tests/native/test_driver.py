"""Drivers killed at telling requests; ``make chaos-driver ARGS="--client native"`` has all."""

import sys

import pytest

from tests.native.s3a import ROOT, hadoop
from tests.servers import ran

# A driver is a JVM, and costs 20 times what a statement does: the rest has time.
FEW = ["append:part 1:after", "once:_request.json:after"]
MORE = [
    *("append:_job.json:after", "append:start upload:zombie", "append:_request.json:after"),
    *("directory:_request.json:after", "directory:_request.json:before"),
    "partition:_request.json:after",
]
if hadoop() >= (3, 4, 2):  # an older S3A puts a late request over the abort that came first
    MORE.append("partition:_request.json:zombie")


@pytest.mark.parametrize("kills", [FEW, pytest.param(MORE, marks=pytest.mark.long)])
def test_i1_i2_i4_i10_i11_a_driver_killed_at_a_request(kills: list[str]) -> None:
    program = (sys.executable, "-m", "tests.engines.chaos.driver", "--client", "native")
    done = ran(*program, *kills, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
