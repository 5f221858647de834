"""Rows as JSON lines, as Spark reads and writes them with its default options.

Null fields are left out (``ignoreNullFields``), nulls in arrays and maps are not; binary is base64;
NaN and the infinities are strings.
"""

from __future__ import annotations

import base64
import json

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from s3commit.spark.formats.nested import map_lists
from s3commit.spark.formats.text import join, plain_texts


def json_lines(rows: pa.RecordBatch) -> pa.StringArray:
    """Each row's object."""
    return _objects(rows.schema.names, rows.columns)


def _objects(names: list[str], columns: list[pa.Array]) -> pa.StringArray:
    fields = [
        pc.fill_null(join(f",{json.dumps(name, ensure_ascii=False)}:", _values(column)), "")
        for name, column in zip(names, columns, strict=True)
    ]
    # What is left without its first comma.
    return join("{", pc.utf8_slice_codeunits(join(*fields), 1), "}")


def _values(values: pa.Array) -> pa.StringArray:
    """Each value as JSON; null for null."""
    kind = values.type
    if types.is_null(kind):
        return pa.nulls(len(values), pa.string())
    if types.is_struct(kind):
        objects = _objects([field.name for field in kind], values.flatten())
        return pc.if_else(values.is_valid(), objects, None)
    if types.is_map(kind):
        lists = map_lists(values)
        keys, items = lists.flatten().flatten()
        pairs = join(_strings(keys), ":", pc.fill_null(_values(items), "null"))
        return join("{", _joined(lists, pairs), "}")
    if types.is_list(kind) or types.is_large_list(kind):
        return join("[", _joined(values, pc.fill_null(_values(values.flatten()), "null")), "]")
    if types.is_binary(kind) or types.is_large_binary(kind):
        return join('"', _base64(values), '"')
    if types.is_string(kind) or types.is_large_string(kind):
        return _strings(values)
    texts = plain_texts(values)
    if types.is_floating(kind):
        return pc.if_else(pc.is_finite(values), texts, join('"', texts, '"'))
    if types.is_temporal(kind):
        return join('"', texts, '"')
    return texts


def _joined(lists: pa.Array, elements: pa.StringArray) -> pa.StringArray:
    """The elements of each list with commas between them; null for a null list."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, elements), ",")
    return pc.if_else(lists.is_valid(), joined, None)


def _strings(values: pa.Array) -> pa.StringArray:
    texts = values.cast(pa.string())
    for char, escaped in (("\\", "\\\\"), ('"', '\\"')):
        texts = pc.replace_substring(texts, char, escaped)
    if pc.any(pc.match_substring_regex(texts, r"[\x00-\x1f]")).as_py():
        for code in range(0x20):
            texts = pc.replace_substring(texts, chr(code), f"\\u{code:04x}")
    return join('"', texts, '"')


def _base64(values: pa.Array) -> pa.StringArray:
    encoded = (None if one is None else base64.b64encode(one) for one in values.to_pylist())
    return pa.array(list(encoded), pa.binary()).cast(pa.string())
