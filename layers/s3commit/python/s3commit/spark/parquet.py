"""One parquet file on its way out: rows are kept as Arrow and encoded a row group at a time."""

from __future__ import annotations

import contextlib
from typing import Final, Protocol

import pyarrow as pa
from pyarrow import parquet

# Arrow's own default for gzip is 9, three times the time for a percent of size; zlib's is 6.
_LEVELS: Final = {"gzip": 6}
# Arrow keeps the encoder of the last column after each row group, with the table of the values of
# its dictionary (1.7 MB at 13,000 rows, 6.5 MB at 40,000), until the next one or the end. For
# hundreds of open files that is more than their rows, so their dictionaries are smaller.
_DICTIONARY_BYTES: Final = 1024 * 1024
_CROWDED_DICTIONARY_BYTES: Final = 64 * 1024


class Output(Protocol):
    """The pending upload that a file's bytes go to (`s3commit.writer.stream.PendingUpload`)."""

    rows: int | None

    def write(self, data: bytes, /) -> int:
        """Take all of ``data``."""
        ...

    def seal(self) -> None:
        """All bytes have been written; does not wait until they are in S3."""
        ...


class ParquetFile:
    """Buffers rows and writes them as row groups; ``buffered`` counts Arrow bytes in memory.

    ``crowded`` says that many files are open at once.
    """

    def __init__(
        self, output: Output, schema: pa.Schema, compression: str, *, crowded: bool = False
    ) -> None:
        self.rows = 0
        self.buffered = 0
        self._batches: list[pa.RecordBatch] = []
        self._output = output
        self._sink = _Sink(output)
        self._writer = parquet.ParquetWriter(
            pa.PythonFile(self._sink, mode="w"),
            schema,
            compression=compression,
            compression_level=_LEVELS.get(compression),
            # As Spark's own writer does: readers skip pages, and small decimals are integers.
            write_page_index=True,
            store_decimal_as_integer=True,
            dictionary_pagesize_limit=(_CROWDED_DICTIONARY_BYTES if crowded else _DICTIONARY_BYTES),
        )

    @property
    def written(self) -> int:
        """The encoded bytes so far, without what is buffered."""
        return self._sink.size

    def append(self, rows: pa.RecordBatch) -> int:
        """Buffer ``rows``; return the bytes that this adds."""
        size: int = rows.nbytes
        self._batches.append(rows)
        self.rows += rows.num_rows
        self.buffered += size
        return size

    def flush(self) -> int:
        """Write what is buffered as one row group; return the bytes that this frees."""
        freed, self.buffered = self.buffered, 0
        if self._batches:
            table = pa.Table.from_batches(self._batches)
            self._batches = []
            self._writer.write_table(table, row_group_size=table.num_rows)
        return freed

    def close(self) -> int:
        """Write the rest and the footer, and seal the output; return the bytes that this frees."""
        freed = self.flush()
        self._writer.close()
        self._output.rows = self.rows
        self._output.seal()
        return freed

    def discard(self) -> None:
        """Let go without another byte for the output, which is somebody else's to abort."""
        self._sink.cut()
        self._batches = []
        # What went wrong is on its way to the user; a writer in pieces has nothing to add.
        with contextlib.suppress(Exception):
            self._writer.close()


class _Sink:
    """What Arrow writes to. Arrow writes a footer when a writer is dropped: `cut` prevents it."""

    closed = False

    def __init__(self, output: Output) -> None:
        self._output: Output | None = output
        self.size = 0

    def write(self, data: bytes) -> int:
        if self._output is not None:
            self._output.write(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def cut(self) -> None:
        self._output = None

    def flush(self) -> None:
        """Nothing is held back here."""

    def close(self) -> None:
        """The owner closes the output."""
