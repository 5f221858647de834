"""The threads that send parts while the caller writes, and the memory in which a part is filled."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Final

from s3commit.writer.settings import UploadSettings

_OWN_MEMORY: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class PartBuffer:
    """The bytes of one part, in a memory map of its own.

    Only what is written of it takes memory, and it goes back to the system whole. A growing
    ``bytearray`` is moved about on the heap; with hundreds of streams the gaps that this leaves
    took as much memory as the parts themselves.

    Not thread-safe: one writer fills it, then one sender reads it; `discard` ends it.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._memory: mmap.mmap | None = None
        self._taken = 0

    def __len__(self) -> int:
        return self._taken

    def append(self, data: memoryview) -> int:
        """Copy as much of ``data`` as fits; return how many bytes."""
        size = min(len(data), self.capacity - self._taken)
        if size:
            if self._memory is None:
                self._memory = mmap.mmap(-1, self.capacity, flags=_OWN_MEMORY)
            self._memory[self._taken : self._taken + size] = data[:size]
            self._taken += size
        return size

    @contextmanager
    def view(self) -> Iterator[memoryview]:
        """All bytes of the part, valid within the block."""
        view = memoryview(self._memory or b"")[: self._taken]
        # The frames of a failed request keep slices of the view alive in the error's traceback. The
        # memory then goes with the error; what must not happen is that BufferError takes its place.
        try:
            yield view
        finally:
            with suppress(BufferError):
                view.release()

    def discard(self) -> None:
        """Give the memory back; the bytes are gone."""
        if self._memory is not None:
            with suppress(BufferError):  # see `view`
                self._memory.close()
        self._memory, self._taken = None, 0


class Transfer:
    """A task's threads. Thread-safe. They start with the first part, and `close` waits for them."""

    def __init__(self, settings: UploadSettings | None = None) -> None:
        self.settings = settings or UploadSettings()
        self._executor = ThreadPoolExecutor(
            max_workers=self.settings.threads, thread_name_prefix="s3commit-part"
        )
        self._in_flight = 0
        self._room = threading.Condition()

    def buffer(self, number: int) -> PartBuffer:
        """An empty buffer for part ``number`` of a file."""
        return PartBuffer(self.settings.parts.size(number))

    def send(
        self, size: int, work: Callable[[], str], *, stopped: Callable[[], bool]
    ) -> Future[str]:
        """Run ``work`` in a thread, once there is room for ``size`` more bytes in flight.

        Waits for the room, but not when ``stopped``: then ``work`` has nothing to send.
        """
        with self._room:
            self._room.wait_for(
                lambda: (
                    stopped()
                    or not self._in_flight
                    or self._in_flight + size <= self.settings.in_flight_bytes
                )
            )
            self._in_flight += size
        try:
            return self._executor.submit(self._run, size, work)
        except RuntimeError:  # the executor is closed: the task has ended
            self._leave(size)
            raise

    def wake(self) -> None:
        """Let those who wait for room look again whether they are stopped."""
        with self._room:
            self._room.notify_all()

    def close(self) -> None:
        """Wait for the threads; closing again is success."""
        self._executor.shutdown(wait=True)

    def _run(self, size: int, work: Callable[[], str]) -> str:
        try:
            return work()
        finally:
            self._leave(size)

    def _leave(self, size: int) -> None:
        with self._room:
            self._in_flight -= size
            self._room.notify_all()
