"""A clock that stands still until a test moves it."""

import threading
from datetime import UTC, datetime, timedelta


class ManualClock:
    """Implements `s3commit.core.ports.clock.Clock`; thread-safe.

    ``step`` seconds pass after each reading, so that a test can tell one write from the next.
    """

    def __init__(self, start: str = "2026-11-21T22:00:00.000Z", *, step: float = 0.0) -> None:
        self._present = datetime.fromisoformat(start).astimezone(UTC)
        self._step = timedelta(seconds=step)
        self._lock = threading.Lock()

    def now(self) -> str:
        """The present as RFC 3339 in UTC with milliseconds."""
        with self._lock:
            present = self._present
            self._present += self._step
        return present.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            self._present += timedelta(seconds=seconds)
