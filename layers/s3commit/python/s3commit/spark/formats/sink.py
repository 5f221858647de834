"""Where encoders write: the pending upload of a file, as Arrow and Python's codecs want a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Output(Protocol):
    """The pending upload that a file's bytes go to (`s3commit.writer.stream.PendingUpload`)."""

    rows: int | None
    nulls: Mapping[str, int]

    def write(self, data: bytes, /) -> int:
        """Take all of ``data``."""
        ...

    def seal(self) -> None:
        """All bytes have been written; does not wait until they are in S3."""
        ...


class Sink:
    """Counts what is written. Arrow writes a footer when a writer is dropped: `cut` prevents it."""

    closed = False

    def __init__(self, output: Output) -> None:
        self._output: Output | None = output
        self.size = 0

    def write(self, data: bytes) -> int:
        """Hand ``data`` on."""
        if self._output is not None:
            self._output.write(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        """The bytes so far."""
        return self.size

    def cut(self) -> None:
        """Drop whatever is still written."""
        self._output = None

    def flush(self) -> None:
        """Nothing is held back here."""

    def close(self) -> None:
        """The owner closes the output."""
