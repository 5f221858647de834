"""Rows as CSV, as Spark reads it with its default options.

What Spark itself does (Spark 4, univocity-parsers): no header; a value is quoted if it has to be;
within quotes a backslash stands before a quote and before a backslash, outside of quotes nothing
is escaped; null is nothing. An empty string reads back as null, and a line break within a value
needs the option ``multiLine``: so it is with files of Spark's own writer. Two things are kept that
Spark's writer loses: white space around a value, and a row whose only column is null.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from s3commit.spark.formats.text import plain_texts

# A number sign begins a comment, and a byte order mark is dropped, at the start of a line or file.
_QUOTED: Final = r'[,"\n\r]|^[#\x{feff}\x00-\x20]|[\x00-\x20]$'


def csv_lines(rows: pa.RecordBatch) -> pa.StringArray:
    """Each row's line, without its end."""
    null = "" if rows.num_columns > 1 else '""'  # an empty line would be no row
    fields = [pc.fill_null(_field(column), null) for column in rows.columns]
    return pc.binary_join_element_wise(*fields, ",")


def _field(values: pa.Array) -> pa.StringArray:
    texts = plain_texts(values)
    if not (types.is_string(values.type) or types.is_large_string(values.type)):
        return texts
    quoted = pc.match_substring_regex(texts, _QUOTED)
    if pc.any(quoted).as_py():
        texts = pc.if_else(quoted, _quote(texts), texts)
    return pc.if_else(pc.equal(texts, ""), '""', texts)


def _quote(texts: pa.StringArray) -> pa.StringArray:
    escaped = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    return pc.binary_join_element_wise('"', escaped, '"', "")
