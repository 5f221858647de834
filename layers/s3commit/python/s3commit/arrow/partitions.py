"""Partition directories as Spark names them, and rows cut where the directory changes.

The names follow Spark's `ExternalCatalogUtils.getPartitionPathString`: the value cast to a string
(by who calls), then escaped; a null or an empty string is a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from s3commit.writer.place import escape

DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"


def directory(names: Sequence[str], texts: Sequence[str]) -> str:
    """``dt=2026-11-21/hour=3/``: the directory of one combination of values; "" is null."""
    return "".join(
        f"{escape(name)}={escape(text) if text else DEFAULT_PARTITION}/"
        for name, text in zip(names, texts, strict=True)
    )


def runs(batch: pa.RecordBatch, names: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of ``batch`` without the columns ``names``, texts, cut where the directory changes.

    The rows are views of the batch, in its order; of a batch that is sorted by ``names`` each
    directory comes once.
    """
    if not batch.num_rows:
        return
    if not names:
        yield "", batch
        return
    data = batch.drop_columns(list(names))
    # Bytes, because a text that was cast from bytes may be no UTF-8.
    columns = [pc.fill_null(batch[name].cast(pa.large_binary()), b"") for name in names]
    changes = reduce(pc.or_, (pc.not_equal(column[1:], column[:-1]) for column in columns))
    cuts = pc.add(pc.indices_nonzero(changes), 1).to_pylist()
    for start, end in pairwise([0, *cuts, batch.num_rows]):
        texts = [column[start].as_py().decode("utf-8", "replace") for column in columns]
        yield directory(names, texts), data.slice(start, end - start)
