"""Rows sent to the directories of their partition values."""

from __future__ import annotations

import pyarrow as pa

from s3commit.spark.files import TaskFiles
from s3commit.spark.partitions import split


class Router:
    """Sends rows to the directories of their partition values.

    Rows are staged and split many batches at a time, which is what makes hundreds of directories
    cheap. As long as each directory's rows come together (sorted input), a directory's file is
    closed as soon as the next one begins, and one file is open. When a directory comes back, the
    input is not sorted, and files stay open from then on.
    """

    def __init__(self, files: TaskFiles, names: tuple[str, ...], stage_bytes: int) -> None:
        self._files = files
        self._names = names
        self._stage_bytes = stage_bytes
        self._staged: list[pa.RecordBatch] = []
        self._bytes = 0
        self._sorted = True
        self._current: str | None = None
        self._past: set[str] = set()

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the rows of ``batch``."""
        if not self._names:
            self._files.append("", batch)
            return
        self._staged.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= self._stage_bytes:
            self.drain()

    def drain(self) -> None:
        """Hand on everything that is staged."""
        staged, self._staged, self._bytes = self._staged, [], 0
        if not staged:
            return
        whole = pa.Table.from_batches(staged).combine_chunks()
        del staged  # the copy is enough
        for batch in whole.to_batches():
            self._route(batch)

    def _route(self, batch: pa.RecordBatch) -> None:
        parts = split(batch, self._names)
        if self._sorted:
            returned = any(piece.directory in self._past for piece in parts.pieces)
            self._sorted = parts.in_order and not returned
        for piece in parts.pieces:
            if self._sorted and piece.directory != self._current:
                if self._current is not None:
                    self._files.close(self._current)
                    self._past.add(self._current)
                self._current = piece.directory
            self._files.append(piece.directory, piece.rows)
