"""Compares the columns of a write with those of a table's newest file.

Types are the same if every reader of docs/guide/readers.md gets the right values from files of
both, whichever it meets first; `_plain` says which differ in their encoding alone. For each pair of
types tests/spark/test_other_schema.py lets the readers judge.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyarrow import parquet, types

from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.ports.objects import ListedObject
from s3commit.writer.place import TailReader

TAIL_BYTES: Final = 64 * 1024
MAX_FOOTER_BYTES: Final = 16 * 1024**2
# https://parquet.apache.org/docs/file-format/; PARE is there where the footer is encrypted.
_MAGIC: Final = b"PAR1"
_LENGTHS: Final = 8  # bytes of the footer's length, and of the magic
# Parquet has no such type, and Arrow reads INT96 as the type of the schema given.
_INT96: Final = pa.timestamp("s")


def check_schema(
    schema: pa.Schema,
    partition_by: Sequence[str],
    store: TailReader,
    destination: Destination,
    file: ListedObject,
) -> None:
    """Raise `InvalidInputError` (``OTHER_SCHEMA``) if readers could not read both.

    ``schema`` is that of the files to be written. Nothing is compared with a ``file`` that can't
    be read, is not a Parquet file, is encrypted, or has a footer of more than 16 MiB. Of writers
    that begin at the same time none sees the other's file.

    Requests: one, or two if the footer is larger than 64 KiB.
    """
    try:
        found = _footer(store, destination.bucket, file.key)
    except (S3CommitError, pa.ArrowException, OSError, ValueError):
        return
    if found is None:
        return
    ignored = {*map(str.lower, partition_by)}  # readers take the path's
    old = [field for field in found if field.name.lower() not in ignored]
    why = next(differences(old, stored(schema)), None)
    if why is not None:
        what, cure = why
        raise InvalidInputError(
            f"{what} in s3://{destination.bucket}/{file.key}, and not every reader could read both:"
            f" {cure and cure + ' it, '}replace all files of the table, or give check_schema=False."
            "",
            code="OTHER_SCHEMA",
        )


def differences(
    old: Iterable[pa.Field], new: Iterable[pa.Field], path: str = ""
) -> Iterator[tuple[str, str]]:
    """The differences that keep readers from reading both, each with its cure in the new column.

    A column, or a field of a struct, that one side lacks is none; nor is the order.
    """
    by_name = {name: field for field in old for name in (field.name.lower(), field.name)}
    for field in new:
        here = f"{path}{field.name}"
        found = by_name.get(field.name, by_name.get(field.name.lower()))
        if found is None:
            continue
        if found.name != field.name:
            yield f"column {here!r} is spelled {found.name!r}", "rename"
        yield from _unlike(here, found, field, in_struct=bool(path))


def _unlike(
    path: str, old: pa.Field, new: pa.Field, *, in_struct: bool = False
) -> Iterator[tuple[str, str]]:
    was, will = _plain(old.type), _plain(new.type)
    if types.is_struct(was) and types.is_struct(will):
        yield from differences(was, will, f"{path}.")
    elif types.is_list(was) and types.is_list(will):
        yield from _unlike(f"{path}[]", was.value_field, will.value_field)
    elif types.is_map(was) and types.is_map(will):
        yield from _unlike(f"{path}.key", was.key_field, will.key_field)
        yield from _unlike(f"{path}.value", was.item_field, will.item_field)
    elif was != will:
        yield f"column {path!r} has the type {_short(will)} here and {_short(was)}", "cast"
    # Arrow reads the nulls of a struct's field only if the first file declares that it may be null.
    if in_struct and old.nullable != new.nullable:
        may, must = "may be null", "is never null"
        said = (may, must) if new.nullable else (must, may)
        # Spark casts to a struct whose fields may be null, and to none whose fields never are.
        yield f"field {path!r} {said[0]} here and {said[1]}", "cast" if old.nullable else ""


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of its values, whatever their encoding.

    Polars alone takes some of these for others, and reads files of both only with ``cast_options``,
    or not at all: dictionaries, time zones and ``date64``, which the metadata of Arrow's own files
    name, and Spark's INT96.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    if types.is_dictionary(kind):
        return _plain(kind.value_type)
    if kind == _INT96:
        return pa.timestamp("us", "UTC")
    if types.is_timestamp(kind) and kind.tz:
        return pa.timestamp(kind.unit, "UTC")
    if types.is_date64(kind):
        return pa.date32()
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pa.binary()
    if types.is_large_list(kind):
        return pa.list_(kind.value_field)
    return kind


def _short(kind: pa.DataType) -> str:
    return str(kind)[:80]


def stored(schema: pa.Schema) -> pa.Schema:
    """The schema as readers of its files get it: Parquet does not have all types of Arrow."""
    sink = pa.BufferOutputStream()
    parquet.ParquetWriter(sink, schema, store_schema=False).close()
    return schema_in(sink.getvalue())


def schema_in(end: bytes | pa.Buffer) -> pa.Schema:
    """The schema of a file that ends so, with its whole footer. Raises errors of Arrow."""
    file = parquet.ParquetFile(pa.BufferReader(end), coerce_int96_timestamp_unit=_INT96.unit)
    return file.schema_arrow


def _footer(store: TailReader, bucket: str, key: str) -> pa.Schema | None:
    """The schema in the file's footer, None if there is none to be read. Raises as the store."""
    end = store.last_bytes(bucket, key, TAIL_BYTES)
    size = int.from_bytes(end[-_LENGTHS : -len(_MAGIC)], "little") + _LENGTHS
    if not end.endswith(_MAGIC) or size > MAX_FOOTER_BYTES:
        return None
    if size > len(end):
        end = store.last_bytes(bucket, key, size)
    return schema_in(end[-size:])
