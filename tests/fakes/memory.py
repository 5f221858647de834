"""The fakes under one roof."""

from tests.fakes.clock import ManualClock
from tests.fakes.ledger import MemoryLedger
from tests.fakes.store import MemoryObjectStore

__all__ = ["ManualClock", "MemoryLedger", "MemoryObjectStore"]
