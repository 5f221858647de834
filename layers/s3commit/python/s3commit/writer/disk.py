"""What the writer does with local disk: files without names, and their bytes as parts."""

from __future__ import annotations

import errno
import io
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass


@contextmanager
def on_disk(directory: str | None) -> Iterator[None]:
    """Say of a full disk in one line what to do about it. Raises `OSError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        what = (
            f"{os.strerror(error.errno)} for bytes that wait for their upload: free some, or name"
            " another spool directory than"
        )
        raise OSError(error.errno, what, directory or tempfile.gettempdir()) from error


def temporary_file(directory: str | None) -> io.BufferedRandom:
    """A file without a name, which goes with its last descriptor. Raises `OSError`."""
    with on_disk(directory):
        return tempfile.TemporaryFile(prefix="s3commit-", dir=directory)


@contextmanager
def mapped(descriptor: int, offset: int, size: int) -> Iterator[memoryview]:
    """Bytes of a file as a memory map: the page cache's, not the process's own."""
    before = offset % mmap.ALLOCATIONGRANULARITY
    area = mmap.mmap(descriptor, size + before, access=mmap.ACCESS_READ, offset=offset - before)
    with released(memoryview(area)[before:]) as view:
        yield view
    with suppress(BufferError):  # see `released`
        area.close()


@contextmanager
def released(view: memoryview) -> Iterator[memoryview]:
    """``view``, released at the end of the block if nobody else has a slice of it."""
    # The frames of a failed request keep slices of the view alive in the error's traceback. The
    # memory then goes with the error; what must not happen is that BufferError takes its place.
    try:
        yield view
    finally:
        with suppress(BufferError):
            view.release()


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part that lies in a file of its own stream: nothing to fill, nothing to give back."""

    descriptor: int
    offset: int
    size: int

    def __len__(self) -> int:
        return self.size

    @property
    def on_disk(self) -> int:
        """All of it."""
        return self.size

    def view(self) -> AbstractContextManager[memoryview]:
        """All bytes of the part; see `mapped`."""
        return mapped(self.descriptor, self.offset, self.size)

    def discard(self) -> None:
        """Do nothing: the stream closes its file."""
