"""The threads that send parts while the caller writes; shared by all streams of a task."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from s3commit.writer.sizes import UploadSettings
from s3commit.writer.spool import MemoryBudget, PartBuffer, Spool


class Transfer:
    """A task's threads, memory budget and spool. Thread-safe.

    The threads start with the first part. `close` waits for them and removes the spool.
    """

    def __init__(self, settings: UploadSettings | None = None) -> None:
        self.settings = settings or UploadSettings()
        self.memory = MemoryBudget(self.settings.memory_bytes)
        self.spool = Spool(self.settings.spool_directory)
        self._executor = ThreadPoolExecutor(
            max_workers=self.settings.threads, thread_name_prefix="s3commit-part"
        )
        self._in_flight = 0
        self._room = threading.Condition()

    def buffer(self, number: int) -> PartBuffer:
        """An empty buffer for part ``number`` of a file."""
        return PartBuffer(self.settings.parts.size(number), self.memory, self.spool)

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
        """Wait for the threads and remove the spool; closing again is success."""
        self._executor.shutdown(wait=True)
        self.spool.close()

    def _run(self, size: int, work: Callable[[], str]) -> str:
        try:
            return work()
        finally:
            self._leave(size)

    def _leave(self, size: int) -> None:
        with self._room:
            self._in_flight -= size
            self._room.notify_all()
