"""Rows of Arrow, written as the files of one task attempt.

Rows come directory by directory, so that one file is open at a time. A file that is whole is
encoded and sealed in the background: S3 takes about 30 ms to start its upload, in which the next
rows come.
"""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyarrow import parquet

from s3commit.arrow.checks import Footers
from s3commit.arrow.parquet import CODECS, Sink, columns_with_nan, open_writer
from s3commit.core.formats.strict_json import one_line
from s3commit.core.model.errors import InvalidInputError
from s3commit.writer.options import ABORTED, Options
from s3commit.writer.stream import PendingUpload
from s3commit.writer.target import StreamClosedError
from s3commit.writer.task import Task, options_of
from s3commit.writer.transfer import MIB

# Bigger row groups compress no better (795, 751 and 741 MB with 16, 64 and 128 MB of Arrow data).
ROW_GROUP_BYTES: Final = 64 * MIB
# Of files that are being closed; one that is larger is closed alone.
CLOSING_BYTES: Final = 32 * MIB
OPENERS: Final = 4


@dataclass(frozen=True, slots=True)
class Layout:
    """The form of a task's files; ``open`` starts the ``counter``-th of a directory."""

    open: Callable[[str, int], PendingUpload]
    schema: pa.Schema
    options: Options
    row_group_bytes: int = ROW_GROUP_BYTES


class DataFile:
    """A file of ``directory``: its rows wait as Arrow until they make a row group."""

    def __init__(self, layout: Layout, directory: str, counter: int) -> None:
        self.directory = directory
        self.rows = 0
        self.waiting = 0  # bytes of Arrow data, without dictionaries
        self._layout = layout
        self._counter = counter
        self._batches: list[pa.RecordBatch] = []
        self._nans = frozenset[str]()
        self._sink = Sink()
        self._writer: parquet.ParquetWriter | None = None

    def takes(self, nans: frozenset[str]) -> bool:
        """True if rows with NaN in these columns may follow those that are encoded."""
        return self._writer is None or nans <= self._nans

    def append(self, rows: pa.RecordBatch, nans: frozenset[str]) -> None:
        """Keep ``rows`` until the next row group; ``nans`` are their columns that may have NaN."""
        self._batches.append(rows)
        self._nans |= nans
        self.rows += rows.num_rows
        # Not nbytes: it crashes on lists in lists without inner offsets, as Spark 4.1 sends empty
        # ones (https://arrow.apache.org/docs/format/Columnar.html, "an empty offsets buffer").
        self.waiting += pa.ipc.get_record_batch_size(rows)

    def open(self) -> PendingUpload:
        """Start the upload, unless it is open: one request."""
        if self._sink.output is None:
            self._sink.output = self._layout.open(self.directory, self._counter)
        return self._sink.output

    def flush(self) -> None:
        """Encode all rows that wait, as one row group.

        Raises `InvalidInputError` (``BAD_SCHEMA``), as for a null where the schema permits none.
        """
        batches, self._batches, self.waiting = self._batches, [], 0
        if not batches:
            return
        try:
            rows = _as(self._layout.schema, pa.Table.from_batches(batches))
            self._open_writer(rows).write_table(rows, row_group_size=rows.num_rows)
        except StreamClosedError:
            raise
        except ValueError as error:
            why = f"the rows do not fit their schema: {one_line(str(error))}. {ABORTED}."
            raise InvalidInputError(why, code="BAD_SCHEMA") from error

    def close(self) -> parquet.FileMetaData:
        """Encode the rest, write the footer and seal the output; return what is in the footer."""
        self.flush()
        writer = self._open_writer(None)
        writer.close()
        if not self._sink.is_cut:
            output = self.open()
            output.rows = self.rows
            output.seal()
        return writer.writer.metadata

    def _open_writer(self, first: pa.Table | None) -> parquet.ParquetWriter:
        if self._writer is None:
            self.open()
            schema, codec = self._layout.schema, self._layout.options.codec
            self._writer = open_writer(self._sink, schema, codec, first, self._nans)
        return self._writer

    def discard(self) -> None:
        """Write nothing more to the output, which the task aborts; from any thread."""
        self._sink.is_cut = True


def _as(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    """The rows with that schema; a cast of what has its types would load `pyarrow.compute`."""
    pairs = zip(schema, rows.columns, strict=True)
    if all(to.type == of.type and (to.nullable or not of.null_count) for to, of in pairs):
        return pa.Table.from_arrays(rows.columns, schema=schema)
    return rows.cast(schema)


class TaskFiles:
    """One open file, and those before it that are being closed.

    One thread calls the methods. The first error of a file is raised by the next `append` or by
    `finish`; after an error of any method only `discard` may follow.
    """

    def __init__(self, layout: Layout) -> None:
        self.rows = 0
        self.footers = Footers(layout.options.conditions.checks, layout.schema)
        self._layout = layout
        self._limit = layout.options.max_records_per_file or None  # rows of a file
        self._nans = frozenset[str]()  # once in rows of the task, so that few files end for one
        self._file: DataFile | None = None
        self._counters: Counter[str] = Counter()
        self._closing: set[DataFile] = set()
        self._held = 0  # Arrow bytes of those
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        # One file at a time: each thread that encodes makes Arrow's allocator keep about 30 MB.
        self._encoding = threading.Lock()
        self._pool = ThreadPoolExecutor(OPENERS, thread_name_prefix="s3commit-close")

    def append(self, directory: str, rows: pa.RecordBatch) -> None:
        """Add ``rows`` to the directory's file, or to several where a limit is reached."""
        self.rows += rows.num_rows
        start = 0
        self._nans |= columns_with_nan(rows, self._layout.schema)
        self.footers.add_floats(rows)
        # Wide rows make large batches, on Spark 3.5 of any size.
        groups = max(1, pa.ipc.get_record_batch_size(rows) // self._layout.row_group_bytes)
        while start < rows.num_rows:
            file = self.opened(directory)
            if not file.takes(self._nans):
                self._close()
                file = self.opened(directory)
            room = min(rows.num_rows - start, -(-rows.num_rows // groups))
            if self._limit is not None:
                room = min(room, self._limit - file.rows)
            file.append(rows.slice(start, room), self._nans)
            start += room
            if file.rows == self._limit:
                self._close()
            elif file.waiting >= self._layout.row_group_bytes:
                with self._encoding:
                    file.flush()

    def opened(self, directory: str) -> DataFile:
        """The directory's open file; that of another directory is closed."""
        if self._file is not None and self._file.directory != directory:
            self._close()
        if self._file is None:
            self._file = DataFile(self._layout, directory, self._counters[directory])
            self._counters[directory] += 1
        return self._file

    def finish(self) -> None:
        """Close the open file, and wait until all are encoded and sealed."""
        self._close()
        self._pool.shutdown(wait=True)
        if self._error is not None:
            raise self._error

    def discard(self) -> None:
        """Send nothing more; wait until no thread is at work."""
        with self._changed:
            files = [*self._closing, *([self._file] if self._file else [])]
        for file in files:
            file.discard()
        self._file = None
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _close(self) -> None:
        """Hand the open file to the background; waits while too many bytes are there already."""
        file, self._file = self._file, None
        if file is None:
            return
        with self._changed:
            self._changed.wait_for(
                lambda: not self._closing or self._held + file.waiting <= CLOSING_BYTES
            )
            if self._error is not None:
                file.discard()
                raise self._error
            self._closing.add(file)
            self._held += file.waiting
        self._pool.submit(self._close_behind, file, file.waiting)

    def _close_behind(self, file: DataFile, size: int) -> None:
        try:
            file.open()
            with self._encoding:
                self.footers.add(file.close())
        except BaseException as error:
            self._error = self._error or error
            file.discard()
        finally:
            with self._changed:
                self._held -= size
                self._closing.discard(file)
                self._changed.notify_all()


def write_rows(
    task: Task,
    number: int,
    rows: Iterable[tuple[str, pa.RecordBatch]],
    schema_of: Callable[[pa.Schema | None], pa.Schema],
    *,
    keeps_schema: bool = True,
) -> int:
    """Write ``rows``, each with its directory, as sealed files of ``task``; return how many rows.

    ``schema_of`` gives the schema of files for that of the first rows, or for None without rows.
    Without partition columns task 0 writes a file also if it has no rows, as Spark's own writers
    do: a table without rows is read back with its schema, if the job ``keeps_schema``.
    """
    files: TaskFiles | None = None
    options = options_of(task)

    def start(found: pa.Schema | None) -> TaskFiles:
        def open_output(directory: str, counter: int) -> PendingUpload:
            name = (
                f"part-{number:05d}-{task.directory.job_id}.c{counter:03d}{CODECS[options.codec]}"
            )
            return task.open(directory + name)

        return TaskFiles(Layout(open_output, schema_of(found), options))

    try:
        for directory, some in rows:
            if some.num_rows:
                files = files or start(some.schema)
                files.append(directory, some)
        if keeps_schema and number == 0 and not options.partition_by and files is None:
            files = start(None)
            files.opened("")
        if files is None:
            return 0
        files.finish()
        task.figures = files.footers.figures
        return files.rows
    except BaseException:
        if files is not None:
            with contextlib.suppress(Exception):  # the error that is on its way says more
                files.discard()
        raise
    finally:
        # Spark uses its Python workers again.
        pa.default_memory_pool().release_unused()
