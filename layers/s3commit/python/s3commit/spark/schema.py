"""Checks a DataFrame's schema before anything is uploaded; makes the metadata of files from it.

The parquet files carry Spark's own key-value metadata, so that Spark reads back exactly the types
that were written (void, intervals, variants, collations and comments are lost without it).
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    UserDefinedType,
)

from s3commit.core.model.errors import InvalidInputError

# org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport.SPARK_METADATA_KEY
ROW_METADATA = b"org.apache.spark.sql.parquet.row.metadata"
SPARK_VERSION = b"org.apache.spark.version"
FIELD_ID = "parquet.field.id"  # in a column's metadata
_ARROW_FIELD_ID = b"PARQUET:field_id"

# With these Spark marks a column that is not in a file, such as `_metadata`. Its own writer leaves
# them out (org.apache.spark.sql.catalyst.expressions.FileSourceMetadataAttribute).
_MARKS = frozenset(
    {
        "__metadata_col",
        "__file_source_metadata_col",
        "__file_source_constant_metadata_col",
        "__file_source_generated_metadata_col",
    }
)

VOID_SINCE = (4, 1)  # the release of Spark that reads void columns first
# By name, because older versions of PySpark lack some of them.
_UNREADABLE = {
    "yearmonthinterval": "Arrow has no such type; cast it, to int (months) for example",
    "interval": "parquet has no such type",
    **dict.fromkeys(("char", "varchar"), "Arrow has no such type; cast it to string"),
    "time": "Spark itself cannot read it from parquet",
    "geometry": "it has no parquet form that Spark reads back",
    "geography": "it has no parquet form that Spark reads back",
}


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow types that Spark takes and gives, with instants in UTC.

    PySpark requires the time zone since 4.2; before, it always used UTC.
    """
    named = inspect.signature(to_arrow_schema).parameters
    zone: Any = {"timezone": "UTC"} if "timezone" in named else {}
    return to_arrow_schema(schema, **zone)


@dataclass(frozen=True, slots=True)
class WriteSchema:
    """A checked schema: the columns that files hold, and those that directories hold."""

    data: StructType
    partition_names: tuple[str, ...]  # as partition_by spells them, which is Spark's rule
    names: tuple[str, ...]  # of all columns in the DataFrame's order; of partitions as above
    with_field_ids: bool = True

    @property
    def partition_positions(self) -> tuple[int, ...]:
        """Where the partition columns are in the DataFrame, in the requested order."""
        return tuple(map(self.names.index, self.partition_names))

    @property
    def parquet_metadata(self) -> dict[bytes, bytes]:
        """The key-value metadata of every data file."""
        return {
            ROW_METADATA: self.data.json().encode(),
            SPARK_VERSION: pyspark.__version__.encode(),
        }

    def of_files(self, data: pa.Schema | None) -> pa.Schema:
        """The Arrow schema of a file with these columns: with Spark's metadata and field ids.

        None is Spark's own schema, where there are no rows.
        """
        found = arrow_schema(self.data) if data is None else data
        fields = list(map(self._of_file, found, self.data.fields))
        return pa.schema(fields, self.parquet_metadata)

    def _of_file(self, field: pa.Field, column: StructField, above: bool = False) -> pa.Field:
        """The field with its column's id, and optional if a struct that it is in may be null.

        Spark gives such a struct with null in each field, also in those that are declared not null;
        Arrow's writer refuses null there. Spark reads a variant only if its two fields are
        required. Ids are as of Spark's own writer
        (org.apache.spark.sql.execution.datasources.parquet.ParquetUtils).
        """
        kind, spark, nullable = field.type, column.dataType, field.nullable or above
        if isinstance(spark, UserDefinedType):
            spark = spark.sqlType()
        if isinstance(spark, StructType):
            inside = zip(kind, spark.fields, strict=True)
            kind = pa.struct([self._of_file(*pair, above=nullable) for pair in inside])
        elif isinstance(spark, ArrayType):
            kind = pa.list_(self._of_file(kind.value_field, StructField("", spark.elementType)))
        elif isinstance(spark, MapType):
            key = self._of_file(kind.key_field, StructField("", spark.keyType))
            value = self._of_file(kind.item_field, StructField("", spark.valueType))
            kind = pa.map_(key, value)
        field = field.with_type(kind).with_nullable(nullable)
        number = column.metadata.get(FIELD_ID) if self.with_field_ids else None
        return field if number is None else field.with_metadata({_ARROW_FIELD_ID: str(number)})


def is_variant(kind: pa.DataType) -> bool:
    """True if Spark has marked the type as that of its variants."""
    return pa.types.is_struct(kind) and any(b"variant" in (one.metadata or {}) for one in kind)


def without_null_inside(column: pa.Array) -> pa.Array:
    """A column of variants, whose fields are not null where it is itself."""
    if not is_variant(column.type):
        return column
    fields = [column.field(number).fill_null(b"") for number in range(2)]
    return pa.StructArray.from_arrays(fields, fields=list(column.type), mask=column.is_null())


def check_schema(
    schema: StructType, partition_by: tuple[str, ...], *, with_field_ids: bool = True
) -> WriteSchema:
    """The schema, split into data and partition columns.

    Raises `InvalidInputError` (code ``BAD_SCHEMA``) that names the column: two names that differ in
    case only, a type that parquet or Arrow does not have, a partition column that is missing, given
    twice, or of a type that makes no directory name, and a DataFrame without any column that would
    be left for the files (Spark refuses the same).
    """
    if not schema.fields:
        raise _refused("the DataFrame has no columns")
    for found in nested_types("", schema):
        _check_type(*found)
    by_name = {column.name.lower(): column for column in schema.fields}
    spelled = {_partition_column(name, by_name).name: name for name in partition_by}
    if len(spelled) < len(partition_by):
        raise _refused(f"partition_by names a column twice: {', '.join(partition_by)}")
    data = StructType(
        [_without_marks(column) for column in schema.fields if column.name not in spelled]
    )
    if not data.fields:
        raise _refused("all columns are partition columns; at least one must be left for the files")
    if with_field_ids:
        _check_field_ids(data)
    names = tuple(spelled.get(name, name) for name in schema.names)
    return WriteSchema(data, partition_by, names, with_field_ids)


def _check_field_ids(data: StructType) -> None:
    """Arrow writes no other ids, and Spark reads no file that lacks one that its schema names."""
    for path, kind, _ in nested_types("", data):
        for column in kind.fields if isinstance(kind, StructType) else ():
            number = column.metadata.get(FIELD_ID, 0)
            if type(number) is not int or not 0 <= number < 2**31:
                raise _refused(
                    f"column {path and path + '.'}{column.name} has {FIELD_ID}={number!r} in its"
                    " metadata: give a whole number from 0 to 2147483647"
                )


def _without_marks(column: StructField) -> StructField:
    kept = {key: value for key, value in column.metadata.items() if key not in _MARKS}
    return StructField(column.name, column.dataType, column.nullable, kept)


def _refused(message: str) -> InvalidInputError:
    return InvalidInputError(f"{message}.", code="BAD_SCHEMA")


def nested_types(
    path: str, kind: DataType, nullable: bool = True
) -> Iterator[tuple[str, DataType, bool]]:
    """``kind`` and every type in it, each with its path and whether its values may be null."""
    if isinstance(kind, UserDefinedType):
        yield from nested_types(path, kind.sqlType(), nullable)
        return
    yield path, kind, nullable
    if isinstance(kind, StructType):
        for column in kind.fields:
            yield from nested_types(f"{path and path + '.'}{column.name}", column.dataType)
    elif isinstance(kind, ArrayType):
        yield from nested_types(f"{path}[]", kind.elementType, kind.containsNull)
    elif isinstance(kind, MapType):
        yield from nested_types(f"{path}.key", kind.keyType, nullable=False)
        yield from nested_types(f"{path}.value", kind.valueType, kind.valueContainsNull)


def _check_type(path: str, kind: DataType, nullable: bool) -> None:
    why = _UNREADABLE.get(kind.typeName())
    if isinstance(kind, NullType):
        if not nullable:
            why = "it can hold no value; cast it to the type that you mean"
        elif running_release() < VOID_SINCE:
            why = f"Spark {pyspark.__version__} cannot read it from parquet; cast it"
    elif isinstance(kind, StructType):
        _check_names(kind, path and path + ".")
        if not kind.fields:
            why = "parquet cannot store a struct without fields"
    if why is not None:
        raise _refused(f"column {path} has the type {kind.simpleString()}: {why}")


def _check_names(struct: StructType, prefix: str) -> None:
    seen = dict[str, str]()
    for name in struct.names:
        if (other := seen.get(name.lower())) is not None:
            alike = "have one name" if other == name else "differ only in case"
            raise _refused(
                f"columns {prefix}{other} and {prefix}{name} {alike}, so Spark cannot distinguish"
                " them when it reads; rename one"
            )
        seen[name.lower()] = name


def running_release() -> tuple[int, ...]:
    """The running PySpark's major and minor number."""
    return tuple(map(int, pyspark.__version__.split(".")[:2]))


def _partition_column(name: str, by_name: dict[str, StructField]) -> StructField:
    column = by_name.get(name.lower())
    if column is None:
        known = ", ".join(field.name for field in by_name.values())
        raise _refused(f"partition_by column {name!r} is not in the DataFrame ({known})")
    kind = column.dataType
    collated = isinstance(kind, StringType) and kind.simpleString() != "string"
    composite = (ArrayType, MapType, StructType, NullType, UserDefinedType, DayTimeIntervalType)
    if collated or isinstance(kind, composite) or kind.typeName() == "variant":
        raise _refused(
            f"partition_by column {column.name} has the type {kind.simpleString()}, which has no"
            " directory name; cast it to string"
        )
    return column
