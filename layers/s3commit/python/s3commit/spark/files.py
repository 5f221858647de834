"""The files that one task attempt writes: opened, filled, rolled and closed within a budget."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from s3commit.spark.closing import Closers
from s3commit.spark.datafile import DataFile, Maker
from s3commit.spark.options import MB, Options

# Bigger row groups compress no better (795, 751 and 741 MB with 16, 64 and 128 MB of Arrow data).
ROW_GROUP_BYTES: Final = 64 * MB
SMALL_GROUP_BYTES: Final = 16 * MB
STAGE_BYTES: Final = 16 * MB
CROWD: Final = 4  # open encoders


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Sizes in bytes of Arrow data, but ``target_bytes``, which is of encoded data."""

    row_group_bytes: int
    stage_bytes: int
    buffer_bytes: int
    max_records: int | None
    target_bytes: int | None

    @classmethod
    def of(cls, options: Options, memory: int) -> FileLimits:
        """Share ``memory`` bytes out: rows not yet sorted into directories, and open files.

        Sorting holds the staged rows twice, so the open files have what is left of that.
        """
        stage = min(STAGE_BYTES, memory // 8)
        return cls(
            row_group_bytes=min(ROW_GROUP_BYTES, memory * 3 // 4),
            stage_bytes=stage,
            buffer_bytes=memory - 2 * stage,
            max_records=options.max_records_per_file or None,
            target_bytes=options.target_file_bytes,
        )


class TaskFiles:
    """Files by directory, each closed in the background while the next rows come.

    ``peak`` is the most Arrow bytes that were in memory at once. After an error of any method
    only `discard` may follow.
    """

    def __init__(self, maker: Maker, limits: FileLimits) -> None:
        self.rows = 0
        self._maker = maker
        self._limits = limits
        self._files: dict[str, DataFile] = {}
        self._counters: Counter[str] = Counter()
        self._closers = Closers(limits.buffer_bytes)
        self._crowd = 0  # files with an open encoder
        # Encoded bytes per Arrow byte; 1 until a row group has been written.
        self._ratio = 1.0

    @property
    def peak(self) -> int:
        """See the class."""
        return self._closers.peak

    def append(self, directory: str, rows: pa.RecordBatch) -> None:
        """Add ``rows`` to the directory's open file, or to several where a limit is reached."""
        self.rows += rows.num_rows
        start = 0
        while start < rows.num_rows:
            file = self._file(directory)
            room = rows.num_rows - start
            if self._limits.max_records is not None:
                room = min(room, self._limits.max_records - file.rows)
            self._closers.take(file.append(rows.slice(start, room)))
            start += room
            self._settle(directory, file)
        if not self._closers.has_room(0):
            self._relieve()

    def touch(self, directory: str) -> None:
        """Have a file in the directory, if only one without rows."""
        self._file(directory)

    def close(self, directory: str) -> None:
        """Finish the directory's open file, if there is one."""
        file = self._files.pop(directory, None)
        if file is not None:
            self._crowd -= file.encoding
            self._load(file)
            self._closers.close(file)

    def close_all(self) -> None:
        """Finish every open file, and wait until each is encoded."""
        for directory in list(self._files):
            self.close(directory)
        self._closers.finish()

    def discard(self) -> None:
        """Let every open file go without finishing it."""
        self._closers.discard()
        while self._files:
            self._files.popitem()[1].discard()

    def _file(self, directory: str) -> DataFile:
        file = self._files.get(directory)
        if file is None:
            file = DataFile(self._maker, directory, self._counters[directory])
            self._counters[directory] += 1
            self._files[directory] = file
        return file

    def _settle(self, directory: str, file: DataFile) -> None:
        """Write a row group or end the file, if a limit says so."""
        target = self._limits.target_bytes
        if file.rows == self._limits.max_records:
            self.close(directory)
        elif target is not None and file.written + file.waiting * self._ratio >= target:
            self._flush(file)
            # A tenth short is near enough: a last sliver of a row group would cost readers more.
            if file.written >= 0.9 * target:
                self.close(directory)
        elif file.waiting >= self._limits.row_group_bytes:
            self._flush(file)

    def _load(self, file: DataFile) -> None:
        """Make room for what the file has on disk, which is in memory while it is encoded."""
        if file.spilled:
            if not self._closers.has_room(file.spilled):
                self._relieve(file.spilled)
            self._closers.take(file.spilled)

    def _flush(self, file: DataFile) -> None:
        self._load(file)
        before, waiting = file.written, file.waiting
        self._crowd += not file.encoding
        file.flush(crowded=self._crowd > CROWD)
        self._closers.give(waiting)
        if waiting >= MB:
            self._ratio = (file.written - before) / waiting

    def _relieve(self, size: int = 0) -> None:
        """Make room for ``size`` more bytes.

        Files that are being closed free theirs soon. Else the largest is written as a row group,
        if it makes one, and if not, all rows go to disk: many small row groups would be slow to
        write and to read.
        """
        if self._closers.wait_for_room(size):
            return
        largest = max(self._files.values(), key=lambda file: file.held, default=None)
        if not size and largest is not None and largest.held >= SMALL_GROUP_BYTES:
            self._flush(largest)
        else:
            for file in self._files.values():
                self._closers.give(file.spill())
        # What went was in many small pieces, which the allocator would keep.
        pa.default_memory_pool().release_unused()
