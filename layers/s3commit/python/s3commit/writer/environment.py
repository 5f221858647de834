"""Time, ids and waiting: what a writer needs beside the store."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime
from typing import Protocol


class Environment(Protocol):
    """Time, ids and waiting come in through this, so that tests can decide them."""

    def epoch(self) -> float:
        """Seconds since 1970, for documents."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment, for limits; never goes back."""
        ...

    def new_id(self) -> str:
        """A new UUID."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemEnvironment:
    """The machine's own clock, and random UUIDs. Stateless, so it can be pickled with a job."""

    def epoch(self) -> float:
        """See `Environment.epoch`."""
        return time.time()

    def monotonic(self) -> float:
        """See `Environment.monotonic`."""
        return time.monotonic()

    def new_id(self) -> str:
        """See `Environment.new_id`."""
        return str(uuid.uuid4())

    def sleep(self, seconds: float) -> None:
        """See `Environment.sleep`."""
        time.sleep(seconds)


def timestamp(environment: Environment) -> str:
    """The present as RFC 3339 in UTC with milliseconds: ``2026-11-21T22:07:22.123Z``."""
    present = datetime.fromtimestamp(environment.epoch(), UTC)
    return present.isoformat(timespec="milliseconds").replace("+00:00", "Z")
