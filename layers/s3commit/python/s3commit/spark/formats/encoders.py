"""An encoder for each file format."""

from __future__ import annotations

from typing import Final, Protocol

import pyarrow as pa

from s3commit.spark.formats.csvlines import csv_lines
from s3commit.spark.formats.jsonlines import json_lines
from s3commit.spark.formats.orc import OrcEncoder
from s3commit.spark.formats.parquet import ParquetEncoder
from s3commit.spark.formats.sink import Sink
from s3commit.spark.formats.text import TextEncoder

_LINES: Final = {"csv": csv_lines, "json": json_lines}


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
    if file_format == "parquet":
        return ParquetEncoder(sink, schema, codec, crowded=crowded)
    if file_format == "orc":
        return OrcEncoder(sink, schema, codec, crowded=crowded)
    return TextEncoder(sink, codec, _LINES[file_format])
