"""The types that each file format carries so that Spark reads back what was written."""

from __future__ import annotations

from typing import Final

import pyspark
import pyspark.sql.types
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DayTimeIntervalType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    UserDefinedType,
)

from s3commit.core.model.errors import InvalidInputError

_TO_STRING: Final = "cast it to string"
_NO_BINARY: Final = "Spark itself cannot read it from CSV; write base64(column)"


class _NoVariant(DataType):
    """Stands for the type that Spark 3.5 does not have."""


VariantType: Final[type[DataType]] = getattr(pyspark.sql.types, "VariantType", _NoVariant)

# The release of Spark that reads such a column first, the type, and what to do before. ORC's type
# of an instant is a syntax error for older ones; its own writer writes another.
_READ_SINCE: Final[dict[str, tuple[tuple[int, int], type[DataType], str]]] = {
    "parquet": ((4, 1), NullType, "cast it to the type that you mean"),
    "orc": ((4, 2), TimestampType, "write parquet"),
}

# For types and not names of types: subclasses are meant too.
_REFUSED: Final[dict[str, tuple[tuple[type[DataType], str], ...]]] = {
    "parquet": (),
    "orc": (
        (NullType, "ORC has no such type; cast it to the type that you mean"),
        (VariantType, "ORC has no such type; write to_json(column)"),
        (DayTimeIntervalType, f"ORC has no such type; {_TO_STRING}"),
        (TimestampNTZType, "Spark reads it from its own ORC files alone; cast it to timestamp"),
    ),
    "csv": (
        (ArrayType, "CSV has no nested values; write to_json(column)"),
        (MapType, "CSV has no nested values; write to_json(column)"),
        (StructType, "CSV has no nested values; write to_json(column)"),
        (VariantType, "CSV has no nested values; write to_json(column)"),
        (NullType, "CSV has no such type; cast it to the type that you mean"),
        (BinaryType, _NO_BINARY),
        (DayTimeIntervalType, f"CSV has no such type; {_TO_STRING}"),
    ),
    "json": (
        (VariantType, "it does not read back as it was; write to_json(column)"),
        (DayTimeIntervalType, f"JSON has no such type; {_TO_STRING}"),
    ),
}


def check_types(file_format: str, data: StructType) -> None:
    """Raise `InvalidInputError` (``BAD_SCHEMA``) that names a column which the format can't carry.

    ``data`` are the columns of the files, without those of the directories.
    """
    for column in data.fields:
        _check(file_format, column.name, column.dataType)


def _refused(file_format: str) -> tuple[tuple[type[DataType], str], ...]:
    """With what the running Spark can't read back, although a later one can."""
    later = _READ_SINCE.get(file_format)
    if later and running_release() < later[0]:
        why = f"Spark {pyspark.__version__} cannot read it from {file_format}; {later[2]}"
        return (*_REFUSED[file_format], (later[1], why))
    return _REFUSED[file_format]


def running_release() -> tuple[int, ...]:
    """The running PySpark's major and minor number."""
    return tuple(map(int, pyspark.__version__.split(".")[:2]))


def _check(file_format: str, path: str, kind: DataType) -> None:
    for refused, why in _refused(file_format):
        if isinstance(kind, refused):
            raise _no_type(file_format, path, kind, why)
    if isinstance(kind, UserDefinedType):
        _check(file_format, path, kind.sqlType())
    elif isinstance(kind, StructType):
        for column in kind.fields:
            _check(file_format, f"{path}.{column.name}", column.dataType)
    elif isinstance(kind, ArrayType):
        _check(file_format, f"{path}[]", kind.elementType)
    elif isinstance(kind, MapType):
        if file_format == "json" and not isinstance(kind.keyType, StringType):
            why = "Spark reads maps from JSON with keys of type string alone; cast the keys"
            raise _no_type(file_format, path, kind, why)
        _check(file_format, f"{path}.key", kind.keyType)
        _check(file_format, f"{path}.value", kind.valueType)


def _no_type(file_format: str, path: str, kind: DataType, why: str) -> InvalidInputError:
    return InvalidInputError(
        f"column {path} has the type {kind.simpleString()}, which fileFormat {file_format} does not"
        f" carry: {why}. Nothing was written.",
        code="BAD_SCHEMA",
    )
