"""Time, ids, waiting and a word to the user: what a writer needs beside the store."""

import sys
import time
import uuid
from contextlib import suppress

from s3commit.aws.clock import SystemClock


class Environment(SystemClock):
    """The machine's own clock, and random UUIDs; tests put another one in its place.

    Stateless, so it can be pickled with a job.
    """

    def monotonic(self) -> float:
        """Seconds since some moment, for limits; never goes back."""
        return time.monotonic()

    def new_id(self) -> str:
        """A new UUID."""
        return str(uuid.uuid4())

    def sleep(self, seconds: float) -> None:
        """Wait for all of it: nothing here is left to chance."""
        time.sleep(seconds)


def say(line: str) -> None:
    """Print; Spark shows what its Python workers write on the driver's standard error.

    A program that has none, such as a daemon that closed it, gets no line.
    """
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(f"s3commit: {line}\n")
        sys.stderr.flush()
