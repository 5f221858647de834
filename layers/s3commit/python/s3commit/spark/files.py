"""The files that one task attempt writes: opened, filled, rolled and closed within a budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from s3commit.spark.options import MB, Options
from s3commit.spark.parquet import ParquetFile
from s3commit.spark.partitions import split

# Bigger row groups compress no better (795, 751 and 741 MB with 16, 64 and 128 MB of Arrow data).
ROW_GROUP_BYTES: Final = 64 * MB
STAGE_BYTES: Final = 16 * MB
CROWD: Final = 4  # open files at once; sorted input has one


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes of Arrow data, but ``target_bytes``, which is of encoded data."""

    row_group_bytes: int
    stage_bytes: int
    buffer_bytes: int
    max_records: int | None
    target_bytes: int | None

    @classmethod
    def of(cls, options: Options, memory: int) -> Limits:
        """Share ``memory`` bytes out: rows not yet sorted into directories, and open files.

        Sorting holds the staged rows twice, so the open files have what is left of that.
        """
        stage = min(STAGE_BYTES, memory // 8)
        return cls(
            row_group_bytes=min(ROW_GROUP_BYTES, memory * 3 // 4),
            stage_bytes=stage,
            buffer_bytes=memory - 2 * stage,
            max_records=options.max_records_per_file,
            target_bytes=options.target_file_bytes,
        )


class TaskFiles:
    """Files by directory. ``open_file(directory, counter)`` gives the next file of a directory.

    ``peak`` is the most Arrow bytes that were buffered at once.
    """

    def __init__(self, open_file: Callable[[str, int], ParquetFile], limits: Limits) -> None:
        self.rows = 0
        self.peak = 0
        self._open_file = open_file
        self._limits = limits
        self._files: dict[str, ParquetFile] = {}
        self._counters: Counter[str] = Counter()
        self._buffered = 0
        # Encoded bytes per Arrow byte; 1 until a row group has been written.
        self._ratio = 1.0

    @property
    def open_files(self) -> int:
        """How many files are open."""
        return len(self._files)

    def append(self, directory: str, rows: pa.RecordBatch) -> None:
        """Add ``rows`` to the directory's open file, or to several where a limit is reached."""
        self.rows += rows.num_rows
        start = 0
        while start < rows.num_rows:
            file = self._file(directory)
            room = rows.num_rows - start
            if self._limits.max_records is not None:
                room = min(room, self._limits.max_records - file.rows)
            self._buffered += file.append(rows.slice(start, room))
            start += room
            self._settle(directory, file)
        self.peak = max(self.peak, self._buffered)
        if self._buffered > self._limits.buffer_bytes:
            self._relieve()

    def close(self, directory: str) -> None:
        """Finish the directory's open file, if there is one."""
        file = self._files.pop(directory, None)
        if file is not None:
            self._buffered -= file.close()

    def close_all(self) -> None:
        """Finish every open file."""
        for directory in list(self._files):
            self.close(directory)

    def discard(self) -> None:
        """Let every open file go without finishing it."""
        while self._files:
            self._files.popitem()[1].discard()

    def _file(self, directory: str) -> ParquetFile:
        file = self._files.get(directory)
        if file is None:
            file = self._open_file(directory, self._counters[directory])
            self._counters[directory] += 1
            self._files[directory] = file
        return file

    def _settle(self, directory: str, file: ParquetFile) -> None:
        """Write a row group or end the file, if a limit says so."""
        target = self._limits.target_bytes
        if file.rows == self._limits.max_records:
            self.close(directory)
        elif target is not None and file.written + file.buffered * self._ratio >= target:
            self._flush(file)
            # A tenth short is near enough: a last sliver of a row group would cost readers more.
            if file.written >= 0.9 * target:
                self.close(directory)
        elif file.buffered >= self._limits.row_group_bytes:
            self._flush(file)

    def _flush(self, file: ParquetFile) -> None:
        before = file.written
        freed = file.flush()
        self._buffered -= freed
        if freed >= MB:
            self._ratio = (file.written - before) / freed

    def _relieve(self) -> None:
        """Write the largest buffers as row groups, until a quarter of the budget is free."""
        for file in sorted(self._files.values(), key=lambda file: file.buffered, reverse=True):
            self._flush(file)
            if self._buffered <= 0.75 * self._limits.buffer_bytes:
                break
        # What was flushed was in many small pieces, which the allocator would keep.
        pa.default_memory_pool().release_unused()


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
