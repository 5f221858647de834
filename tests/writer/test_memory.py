"""What open files hold in memory: the parts that they fill, and those on their way."""

from __future__ import annotations

import os
import subprocess
import sys

from s3commit.writer.transfer import MIB, Transfer, UploadSettings
from tests.writer.support import BUCKET, JOB, Forgetful, resident_bytes, stream_on

STREAMS = 300
KIB = 1024


def write_three_hundred() -> None:
    """Print by how many bytes the process grew, and how many it was given to write."""
    store, total = Forgetful(BUCKET), 256 * KIB
    transfer, chunk, before = (
        Transfer(UploadSettings()),
        os.urandom(16 * KIB),
        resident_bytes("VmRSS"),
    )
    streams = [stream_on(store, transfer, f"t/{number}-{JOB}") for number in range(STREAMS)]
    for _ in range(total // len(chunk)):
        for stream in streams:
            stream.write(chunk)
    for stream in streams:
        stream.close()
    transfer.close()
    assert store.received == STREAMS * total
    print(resident_bytes("VmHWM") - before, STREAMS * total, resident_bytes("VmRSS") - before)


def test_an_open_file_takes_the_memory_of_what_was_written_and_gives_it_back() -> None:
    code = "from tests.writer.test_memory import write_three_hundred; write_three_hundred()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak, written, left = map(int, done.stdout.split())
    assert written <= peak <= written + 16 * MIB  # not a whole part of 8 MiB for each
    assert left <= 16 * MIB
