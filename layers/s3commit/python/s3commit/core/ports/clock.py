"""Time comes in from outside."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time comes in from outside."""

    def now(self) -> str:
        """The present as RFC 3339 in UTC with milliseconds: ``2026-11-21T22:07:22.123Z``."""
        ...
