"""A pending upload that lies on local disk until it is whole, for writers that seek."""

from __future__ import annotations

import errno
import io
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from s3commit.writer.disk import on_disk, temporary_file
from s3commit.writer.stream import PendingUpload
from s3commit.writer.transfer import Transfer
from s3commit.writer.values import STAGED_CAPABILITY, StreamStatistics

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


class StagedUpload(PendingUpload):
    """A pending upload that is a local file until it is sealed or closed, and goes up then.

    It can be sought in, read back, written over and truncated, as zip, wave and HDF5 files are.
    The file has no name and goes with its descriptor, so nothing is left of it however the stream
    or the process ends; it takes as much disk as it has bytes, no memory, and one descriptor.
    Opening and writing make no request: what S3 has against the file comes up at the end.
    """

    mode: ClassVar[str] = "w+b"

    def _begin(self, transfer: Transfer, /) -> None:
        self._directory = transfer.settings.spool_directory
        self._written = 0
        self._file = temporary_file(self._directory)
        # the raw file: a buffered one would flush first, and fail again if the disk is full
        weakref.finalize(self, self._file.raw.close)

    @property
    def statistics(self) -> StreamStatistics:
        """The counts so far; also during and after `close`."""
        return replace(self._parts.statistics, bytes_written=self._written)

    def has_capability(self, name: str) -> bool:
        """See `PendingUpload.has_capability`; this one has ``fs.s3commit.capability.staged``."""
        return name.lower() == STAGED_CAPABILITY or super().has_capability(name)

    def readable(self) -> bool:
        """True: what was written can be read back."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of ``data`` at the present position; return its length in bytes.

        Raises `StreamClosedError`; `OSError` if the file gets too large for S3 (EFBIG) or the disk
        is full. After any of these the stream can only be closed (which raises it again) or
        aborted.
        """
        with memoryview(data) as raw, raw.cast("B") as view, self._staged("write to") as file:
            self._parts.check_room(file.tell() + len(view))
            self._written += len(view)
            return file.write(view)

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to ``size`` bytes (all, if negative or None) from the present position."""
        with self._staged("read of") as file:
            return file.read(size)

    def read1(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes with at most one look at the disk."""
        with self._staged("read of") as file:
            return file.read1(size)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill ``buffer`` from the present position; return how many bytes there were."""
        with self._staged("read of") as file:
            return file.readinto(buffer)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to ``offset`` from the start, the position or the end; return the position."""
        with self._staged("seek in") as file:
            return file.seek(offset, whence)

    def tell(self) -> int:
        """The present position."""
        with self._staged("tell of") as file:
            return file.tell()

    def truncate(self, size: int | None = None, /) -> int:
        """Cut or lengthen the file to ``size`` (None: the position) bytes; return the size."""
        with self._staged("truncate of") as file:
            self._parts.check_room(file.tell() if size is None else size)
            return file.truncate(size)

    @contextmanager
    def _staged(self, what: str) -> Iterator[io.BufferedRandom]:
        with self._writing:
            self._check_open(what)
            self._parts.raise_error()
            try:
                with on_disk(self._directory):
                    yield self._file
            except OSError as error:
                if error.errno != errno.EINVAL:  # a bad argument harms nothing
                    self._parts.note(error)
                    self._release()  # the file can't be whole any more: its disk is for others
                raise

    def _send_rest(self) -> None:
        with self._staged("close of") as file:
            file.flush()
            length = file.seek(0, io.SEEK_END)
        self._parts.start()
        self._parts.take_file(file.fileno(), length)
        self._parts.seal()

    def _release(self) -> None:
        self._file.raw.close()
