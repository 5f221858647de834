"""Where encoded bytes wait until they fill a part: in memory within a budget, else on disk.

All streams of a task share one `MemoryBudget` and one `Spool`. A stream takes memory as it
writes; when none is left, the stream that asks moves what it has to disk, which frees its share
for the others. Hundreds of open partitions so hold within the budget, and one fast stream never
touches the disk.
"""

from __future__ import annotations

import io
import mmap
import os
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final

from s3commit.writer.disk import mapped, on_disk, released, temporary_file

_OWN_MEMORY: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class MemoryBudget:
    """Counts the bytes that the streams of a task hold in memory. Thread-safe, never blocks."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used = 0
        self._peak = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """The bytes taken now."""
        return self._used

    @property
    def peak(self) -> int:
        """The most bytes that were ever taken at once; never above ``limit``."""
        return self._peak

    def try_take(self, size: int) -> bool:
        """Take ``size`` bytes if the budget has them left."""
        with self._lock:
            if self._used + size > self.limit:
                return False
            self._used += size
            self._peak = max(self._peak, self._used)
            return True

    def give(self, size: int) -> None:
        """Give bytes back."""
        with self._lock:
            self._used -= size


class Spool:
    """One unlinked temporary file for all streams of a task, handed out in extents.

    One file, because hundreds of open ones meet the usual limit of 1024 descriptors; unlinked,
    because nobody cleans up after a killed process. An extent is contiguous, so that a part of
    any size can be sent from a memory map. The file is sparse: an extent costs what is written to
    it. Sizes are rounded to powers of two, so that a freed extent fits the next one of its kind.
    """

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory
        self._file: io.BufferedRandom | None = None
        self._end = 0
        self._free: dict[int, list[int]] = defaultdict(list)
        self._lock = threading.Lock()

    @property
    def extents_bytes(self) -> int:
        """The length of the file: the most bytes that extents have had at once."""
        return self._end

    def allocate(self, size: int) -> int:
        """The offset of an extent for ``size`` bytes. Raises `OSError`."""
        rounded = _rounded(size)
        with self._lock:
            if self._file is None:
                self._file = temporary_file(self._directory)
                weakref.finalize(self, self._file.close)  # of a task that nobody ends
            if self._free[rounded]:
                return self._free[rounded].pop()
            offset = self._end
            self._end += rounded
            return offset

    def free(self, offset: int, size: int) -> None:
        """Let the extent be used again; ``size`` as it was allocated with."""
        with self._lock:
            self._free[_rounded(size)].append(offset)

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of ``data``. Raises `OSError` (no space left)."""
        with memoryview(data) as view, on_disk(self._directory):
            done = 0
            while done < len(view):
                done += os.pwrite(self._descriptor(), view[done:], offset + done)

    def view(self, offset: int, size: int) -> AbstractContextManager[memoryview]:
        """The bytes of an extent; see `mapped`."""
        return mapped(self._descriptor(), offset, size)

    def close(self) -> None:
        """Close the file, which removes it; closing again is success."""
        with self._lock:
            if self._file is not None:
                self._file.close()

    def _descriptor(self) -> int:
        if self._file is None:
            raise ValueError("the spool has no extent yet")
        return self._file.fileno()


def _rounded(size: int) -> int:
    return max(mmap.ALLOCATIONGRANULARITY, 1 << (size - 1).bit_length())


class PartBuffer:
    """The bytes of one part: its head on disk (if memory ran out), its tail in memory.

    The tail is a memory map of its own, of which only what is written takes memory, and which goes
    back to the system whole. A growing ``bytearray`` is moved about on the heap; with hundreds of
    streams the gaps that this leaves took as much memory as the parts themselves.

    Not thread-safe: one writer fills it, then one sender reads it. `discard` gives everything
    back and must be called once.
    """

    def __init__(self, capacity: int, budget: MemoryBudget, spool: Spool) -> None:
        self.capacity = capacity
        self._budget = budget
        self._spool = spool
        self._offset: int | None = None
        self._on_disk = 0
        self._tail: mmap.mmap | None = None
        self._taken = 0  # bytes of the tail

    def __len__(self) -> int:
        return self._on_disk + self._taken

    @property
    def on_disk(self) -> int:
        """How many of the bytes lie in the spool."""
        return self._on_disk

    def append(self, data: memoryview) -> int:
        """Copy as much of ``data`` as fits; return how many bytes. Raises `OSError`."""
        size = min(len(data), self.capacity - len(self))
        if not size:
            return 0
        piece = data[:size]
        if self._budget.try_take(size):
            if self._tail is None:
                self._tail = mmap.mmap(-1, self.capacity, flags=_OWN_MEMORY)
            self._tail[self._taken : self._taken + size] = piece
            self._taken += size
        else:
            self._flush()
            self._write(piece)
        return size

    @contextmanager
    def view(self) -> Iterator[memoryview]:
        """All bytes of the part in one piece, valid within the block."""
        if self._offset is None:
            with released(self._tail_view()) as view:
                yield view
            return
        self._flush()
        with self._spool.view(self._offset, self._on_disk) as view:
            yield view

    def discard(self) -> None:
        """Give memory and disk back; the bytes are gone."""
        self._drop_tail()
        if self._offset is not None:
            self._spool.free(self._offset, self.capacity)
            self._offset = None
        self._on_disk = 0

    def _tail_view(self) -> memoryview:
        return memoryview(self._tail or b"")[: self._taken]

    def _drop_tail(self) -> None:
        if self._tail is not None:
            with suppress(BufferError):  # see `released`
                self._tail.close()
            self._tail = None
        self._budget.give(self._taken)
        self._taken = 0

    def _flush(self) -> None:
        with released(self._tail_view()) as view:
            self._write(view)
        self._drop_tail()

    def _write(self, data: memoryview) -> None:
        if not len(data):
            return
        if self._offset is None:
            self._offset = self._spool.allocate(self.capacity)
        self._spool.write(self._offset + self._on_disk, data)
        self._on_disk += len(data)
