"""An encoder for each file format."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from s3commit.spark.formats.parquet import ParquetEncoder
from s3commit.spark.formats.sink import Sink


class Encoder(Protocol):
    """Turns rows into the bytes of one file."""

    def write(self, rows: pa.Table) -> None:
        """Add ``rows``, at least one, as a block of their own where the format has blocks."""
        ...

    def close(self) -> None:
        """Write what the format puts at a file's end; the sink stays open."""
        ...


def open_encoder(
    file_format: str, sink: Sink, schema: pa.Schema, codec: str, *, crowded: bool
) -> Encoder:
    """An encoder of rows of ``schema``; names as in `s3commit.spark.formats.FORMATS`.

    ``crowded`` says that many are kept open at once, so that each has to be small.
    """
    return ParquetEncoder(sink, schema, codec, crowded=crowded)
