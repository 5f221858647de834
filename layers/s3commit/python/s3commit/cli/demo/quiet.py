"""Spark's log kept out of the demo: only what s3commit says passes."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

OURS = b"s3commit: "


@contextmanager
def only_our_lines() -> Iterator[IO[bytes]]:
    """Send standard error, of this process and of those it starts, through a filter.

    The JVM and Spark's Python workers inherit the descriptor. What is held back is in the file
    that this yields, for whoever has to look why Spark did not start.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    with tempfile.TemporaryFile() as held_back:
        thread = threading.Thread(
            target=_sift, args=(reading, terminal, held_back), name="stderr", daemon=True
        )
        thread.start()
        try:
            yield held_back
        finally:
            # A process that Spark leaves behind may hold the pipe open: it is not waited for.
            sys.stderr.flush()
            os.dup2(terminal, 2)
            thread.join(timeout=2)


def _sift(reading: int, terminal: int, held_back: IO[bytes]) -> None:
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            if line.startswith(OURS):
                os.write(terminal, b"   " + line)
            elif not held_back.closed:
                held_back.write(line)
