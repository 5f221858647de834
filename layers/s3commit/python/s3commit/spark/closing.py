"""Files that are encoded and closed in the background, and the memory that all rows share."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from s3commit.spark.datafile import DataFile
from s3commit.spark.formats.sink import Sink

# To start an upload takes S3 some 30 ms, more than to encode a small file: some at once.
OPENERS: Final = 4
WAITING: Final = 2 * OPENERS


class Closers:
    """Threads that close files, and a count of the Arrow bytes in memory against ``limit``.

    Uploads are started some at once. Files are encoded one after the other, since each thread that
    encodes makes Arrow's allocator keep some 30 MB.

    One thread calls the methods. What a file holds when it is handed to `close` is given back
    when it is closed. The first error is raised by the next `close`, or by `finish`.
    """

    def __init__(self, limit: int) -> None:
        self.peak = 0
        self._limit = limit
        self._used = 0
        self._closing: set[DataFile] = set()
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._openers = ThreadPoolExecutor(OPENERS, thread_name_prefix="s3commit-open")
        self._closer = ThreadPoolExecutor(1, thread_name_prefix="s3commit-close")

    def take(self, size: int) -> None:
        """Count ``size`` more bytes, whether there is room or not."""
        with self._changed:
            self._used += size
            self.peak = max(self.peak, self._used)

    def give(self, size: int) -> None:
        """Count ``size`` bytes less."""
        with self._changed:
            self._used -= size

    def has_room(self, size: int) -> bool:
        """Whether ``size`` more bytes are within the limit."""
        with self._changed:
            return self._used + size <= self._limit

    def wait_for_room(self, size: int) -> bool:
        """Wait until ``size`` more bytes are within the limit; False if no closing file helps."""
        with self._changed:
            self._changed.wait_for(lambda: self._used + size <= self._limit or not self._closing)
            return self._used + size <= self._limit

    def close(self, file: DataFile) -> None:
        """Close ``file`` soon; waits if many are to be closed already."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._closing) < WAITING)
            self._raise_error()
            self._closing.add(file)
        self._closer.submit(self._close, file, self._openers.submit(file.open))

    def finish(self) -> None:
        """Wait until all are closed."""
        self._closer.shutdown(wait=True)
        self._openers.shutdown(wait=True)
        self._raise_error()

    def discard(self) -> None:
        """Close nothing more; what is being closed sends nothing more."""
        with self._changed:
            files = list(self._closing)
        for file in files:
            file.cut()
        self._closer.shutdown(wait=True, cancel_futures=True)
        self._openers.shutdown(wait=True, cancel_futures=True)
        for file in self._closing:  # those that no thread has begun
            file.discard()

    def _close(self, file: DataFile, opening: Future[Sink]) -> None:
        size = file.waiting
        try:
            opening.result()
            file.close()
        except BaseException as error:
            self._error = self._error or error
            file.discard()
        finally:
            with self._changed:
                self._used -= size
                self._closing.discard(file)
                self._changed.notify_all()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error
