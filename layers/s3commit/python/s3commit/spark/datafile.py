"""One data file on its way out: rows wait as Arrow, in memory or on disk, until they are encoded.

An encoder takes memory of its own, so a file has none before its first row group. With hundreds
of directories that is at the file's end: what is open until then is rows alone.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from s3commit.spark.formats.encoders import Encoder
from s3commit.spark.formats.sink import Output, Sink
from s3commit.spark.partitions import DEFAULT_PARTITION, escape
from s3commit.writer.spool import Spool


@dataclass(frozen=True, slots=True)
class Maker:
    """What a file is made with; ``encoder`` gets the sink, and whether many stay open at once.

    The nulls of ``null_columns`` are counted, data or partition columns.
    """

    output: Callable[[str, int], Output]
    encoder: Callable[[Sink, bool], Encoder]
    spool: Spool
    null_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Spilled:
    """Rows in the spool, as an Arrow IPC message of ``length`` bytes."""

    offset: int
    length: int
    schema: pa.Schema


class DataFile:
    """A file of ``directory``, the ``counter``-th there. Not thread-safe.

    ``held`` are the Arrow bytes of its rows in memory, ``spilled`` of those on disk; neither has
    been encoded.
    """

    def __init__(self, maker: Maker, directory: str, counter: int) -> None:
        self.directory = directory
        self.rows = 0
        self.held = 0
        self.spilled = 0
        self._maker = maker
        self._counter = counter
        self._extents: list[_Spilled] = []
        self._batches: list[pa.RecordBatch] = []
        self._output: Output | None = None
        self._sink: Sink | None = None
        self._encoder: Encoder | None = None
        self._cut = False
        self._nulls: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """The Arrow bytes that have not been encoded."""
        return self.held + self.spilled

    @property
    def encoding(self) -> bool:
        """Whether the encoder is open."""
        return self._encoder is not None

    @property
    def written(self) -> int:
        """The encoded bytes so far."""
        return self._sink.size if self._sink else 0

    def append(self, rows: pa.RecordBatch) -> int:
        """Hold ``rows``; return the bytes that this adds."""
        size: int = rows.nbytes
        self._batches.append(rows)
        self.rows += rows.num_rows
        for name in self._maker.null_columns:
            self._nulls[name] += self._count_nulls(name, rows)
        self.held += size
        return size

    def spill(self) -> int:
        """Move what is held to disk; return the bytes that this frees. Raises `OSError`."""
        if not self._batches:
            return 0
        data = pa.concat_batches(self._batches).serialize()
        offset = self._maker.spool.allocate(data.size)
        self._maker.spool.write(offset, memoryview(data))
        self._extents.append(_Spilled(offset, data.size, self._batches[0].schema))
        self._batches = []
        freed, self.held = self.held, 0
        self.spilled += freed
        return freed

    def open(self) -> Sink:
        """Start the upload, unless it is open: one request. Another thread may do it ahead."""
        if self._sink is None:
            self._output = self._maker.output(self.directory, self._counter)
            self._sink = Sink(self._output)
            if self._cut:  # meanwhile
                self._sink.cut()
        return self._sink

    def flush(self, *, crowded: bool = False) -> None:
        """Encode all rows that wait, as one row group. They are all in memory meanwhile."""
        batches, self._batches = [*self._loaded(), *self._batches], []
        self.held = self.spilled = 0
        if self._encoder is None:
            self._encoder = self._maker.encoder(self.open(), crowded)
        if batches:
            self._encoder.write(pa.Table.from_batches(batches))

    def close(self) -> None:
        """Encode the rest, write the end and seal the output."""
        self.flush()
        assert self._encoder is not None  # noqa: S101 - flush opens it
        assert self._output is not None  # noqa: S101
        self._encoder.close()
        if not self._cut:
            self._output.rows = self.rows
            self._output.nulls = dict(self._nulls)
            self._output.seal()

    def cut(self) -> None:
        """Let no other byte get to the output. May be called while another thread closes."""
        self._cut = True
        if self._sink is not None:
            self._sink.cut()

    def discard(self) -> None:
        """Let go of everything; the output is somebody else's to abort."""
        self.cut()
        self._batches = []
        if self._encoder is not None:
            # What went wrong is on its way to the user; an encoder in pieces has nothing to add.
            with contextlib.suppress(Exception):
                self._encoder.close()

    def _count_nulls(self, name: str, rows: pa.RecordBatch) -> int:
        if name in rows.schema.names:
            return int(rows.column(name).null_count)
        # A partition column: its value is the directory's.
        null = f"{escape(name)}={DEFAULT_PARTITION}"
        return rows.num_rows if null in self.directory.split("/") else 0

    def _loaded(self) -> Iterator[pa.RecordBatch]:
        extents, self._extents = self._extents, []
        spool = self._maker.spool
        for extent in extents:
            with spool.view(extent.offset, extent.length) as view:
                message = pa.allocate_buffer(extent.length)
                memoryview(message).cast("B")[:] = view
            spool.free(extent.offset, extent.length)
            yield pa.ipc.read_record_batch(message, extent.schema)
