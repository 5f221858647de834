"""The fakes under one roof."""

from __future__ import annotations

from s3commit.testing.clock import ManualClock
from s3commit.testing.ledger import MemoryLedger
from s3commit.testing.store import MemoryObjectStore

__all__ = ["ManualClock", "MemoryLedger", "MemoryObjectStore"]
