"""Time, ids, waiting and a word to the user: what a writer needs beside the store."""

from __future__ import annotations

import sys
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime

from s3commit.core.model.moments import rfc3339


class Environment:
    """The machine's own clock, and random UUIDs; tests put another one in its place.

    Stateless, so it can be pickled with a job.
    """

    def epoch(self) -> float:
        """Seconds since 1970, for documents."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since some moment, for limits; never goes back."""
        return time.monotonic()

    def new_id(self) -> str:
        """A new UUID."""
        return str(uuid.uuid4())

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def timestamp(environment: Environment) -> str:
    """The present as RFC 3339 in UTC with milliseconds: ``2026-11-21T22:07:22.123Z``."""
    return rfc3339(datetime.fromtimestamp(environment.epoch(), UTC))


def say(line: str) -> None:
    """Print; Spark shows what its Python workers write on the driver's standard error.

    A program that has none, such as a daemon that closed it, gets no line.
    """
    with suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(f"s3commit: {line}\n")
        sys.stderr.flush()
