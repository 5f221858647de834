"""Libraries write to a task's file what they write to a seekable one, or as good a file."""

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv
from pyarrow import feather, ipc, orc, parquet

from tests.fakes.store import MemoryObjectStore
from tests.writer.support import BUCKET, completed_bytes, stream_on

Write = Callable[[Any], object]

FRAME = pd.DataFrame({"n": range(1000), "name": [f"ü{number % 13}" for number in range(1000)]})
TABLE = pa.Table.from_pandas(FRAME)
POLARS = pl.from_pandas(FRAME)
ARRAY = np.arange(1000)
ROWS = [["ü", "b"], ["1", "2"]]


def text(encoding: str, file: Any) -> None:
    with io.TextIOWrapper(file, encoding=encoding, newline="") as wrapped:
        csv.writer(wrapped).writerows(ROWS)


def as_json(file: Any) -> None:
    with io.TextIOWrapper(file, encoding="utf-8") as wrapped:
        json.dump(ROWS, wrapped)


def within(opened: Callable[[Any], Any], file: Any) -> None:
    with opened(file) as wrapped:
        wrapped.write(b"bytes" * 100)


def tar(mode: Any, file: Any) -> None:
    with tarfile.open(fileobj=file, mode=mode) as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"abc"))


def zipped(file: Any) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo("a.txt"), "abc")


def arrow_ipc(new: Callable[..., Any], file: Any) -> None:
    with new(file, TABLE.schema) as writer:
        writer.write_table(TABLE)


SAME: dict[str, Write] = {
    "bytes": lambda file: file.write(b"n\n1\n"),
    **{f"text {form}": partial(text, form) for form in ("utf-8", "utf-8-sig", "latin-1")},
    "json": as_json,
    "pickle": partial(pickle.dump, ROWS),
    "bz2": partial(within, partial(bz2.open, mode="wb")),
    "lzma": partial(within, partial(lzma.open, mode="wb")),
    **{f"tar {mode}": partial(tar, mode) for mode in ("w|", "w:", "w:xz")},
    "numpy.save": lambda file: np.save(file, ARRAY),
    "numpy.savetxt": lambda file: np.savetxt(file, ARRAY),
    "pyarrow parquet": partial(parquet.write_table, TABLE),
    "pyarrow feather": partial(feather.write_feather, TABLE),
    "pyarrow csv": partial(arrow_csv.write_csv, TABLE),
    "pyarrow orc": partial(orc.write_table, TABLE),
    "pyarrow file": partial(arrow_ipc, ipc.new_file),
    "pyarrow stream": partial(arrow_ipc, ipc.new_stream),
    "pandas csv": FRAME.to_csv,
    "pandas json": FRAME.to_json,
    "pandas parquet": FRAME.to_parquet,
    "pandas feather": FRAME.to_feather,
    "pandas orc": FRAME.to_orc,
    "pandas pickle": FRAME.to_pickle,
    "polars parquet": POLARS.write_parquet,
    "polars lazy": POLARS.lazy().sink_parquet,
    "polars csv": POLARS.write_csv,
    "polars json": POLARS.write_json,
    "polars ndjson": POLARS.write_ndjson,
    "polars ipc": POLARS.write_ipc,
    "polars ipc stream": POLARS.write_ipc_stream,
    "polars avro": POLARS.write_avro,
}


def members(body: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def of_tar(body: bytes) -> list[str]:
    return tarfile.open(fileobj=io.BytesIO(body)).getnames()


# Where a file can't be sought, zip puts a member's size after it; gzip notes the file's name.
READABLE: dict[str, tuple[Write, Callable[[bytes], object]]] = {
    "zipfile": (zipped, members),
    "numpy.savez": (lambda file: np.savez(file, a=ARRAY), members),
    "pandas zip": (
        partial(FRAME.to_csv, compression={"method": "zip", "archive_name": "a"}),
        members,
    ),
    "gzip": (partial(within, partial(gzip.open, mode="wb")), gzip.decompress),
    "tar w:gz": (partial(tar, "w:gz"), of_tar),
    "pandas gzip": (partial(FRAME.to_csv, compression={"method": "gzip"}), gzip.decompress),
}


class Buffer(io.BytesIO):
    """Keeps its bytes when it is closed."""

    body = b""

    def close(self) -> None:
        if not self.closed:
            self.body = self.getvalue()
        super().close()


def both(write: Write) -> tuple[bytes, bytes]:
    """What goes into a task's file, and into a buffer."""
    store, buffer = MemoryObjectStore(BUCKET, min_part_bytes=1), Buffer()
    with stream_on(store) as stream:
        write(stream)
    with buffer:
        write(buffer)
    return completed_bytes(store, stream.pending), buffer.body


@pytest.mark.parametrize("name", SAME)
def test_a_library_writes_the_same_bytes(name: str) -> None:
    ours, plain = both(SAME[name])
    assert ours
    assert ours == plain


@pytest.mark.parametrize("name", READABLE)
def test_a_library_writes_other_bytes_with_the_same_content(name: str) -> None:
    write, read = READABLE[name]
    ours, plain = both(write)
    assert ours != plain
    assert read(ours) == read(plain)


@pytest.mark.parametrize(
    ("encoding", "mark"), [("utf-16", codecs.BOM_UTF16), ("utf-32", codecs.BOM_UTF32)]
)
@pytest.mark.parametrize("frame", [False, True], ids=["csv", "pandas"])
def test_text_has_its_byte_order_mark_by_codecs(encoding: str, mark: bytes, frame: bool) -> None:
    """`io.TextIOWrapper` leaves it out where a file can't be sought, as in a pipe.

    By CPython's Modules/_io/textio.c: ``encoding_start_of_stream``, ``utf16_encode``.
    """

    def plainly(file: Any) -> None:
        if frame:
            FRAME.to_csv(file, encoding=encoding)
        else:
            text(encoding, file)

    def by_codecs(file: Any) -> None:
        writer = codecs.getwriter(encoding)(file)
        if frame:
            FRAME.to_csv(writer)
        else:
            csv.writer(writer).writerows(ROWS)

    bare, plain = both(plainly)
    marked, _ = both(by_codecs)
    assert plain == mark + bare
    assert marked == plain
