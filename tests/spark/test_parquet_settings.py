"""What Spark's Parquet writer is told is obeyed, refused or harmless; so are schemas."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyspark
import pyspark.sql.types
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    DateType,
    DayTimeIntervalType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    YearMonthIntervalType,
)

from docs.settings import TABLE, rows
from s3commit.core.model.errors import InvalidInputError
from s3commit.spark import write
from s3commit.spark.schema import ROW_METADATA, SPARK_VERSION, check_schema
from s3commit.spark.settings import COMMIT_ONLY, refuse_unlike, settings_of
from tests.spark.conftest import settings as set_for_a_while
from tests.spark.tiny import Place

ROOT = Path(__file__).parents[2]
# Of Spark's some 800 settings those that speak of Parquet or of writing.
WRITING = re.compile(
    r"parquet|[wW]rit(e|ing|ers)([A-Z.]|$)|InWrite|maxRecordsPerFile|outputCommitter"
)
CLASSES = (
    "hadoop.ParquetOutputFormat",
    "hadoop.ParquetInputFormat",
    "crypto.EncryptionPropertiesFactory",
    "crypto.keytools.KeyToolkit",
    "crypto.keytools.PropertiesDrivenCryptoFactory",
)
TIMES = (TimestampType(), ArrayType(TimestampType()), MapType(StringType(), TimestampType()))
REFUSED = {
    "parquet.crypto.factory.class": "org.example.CryptoFactory",
    "parquet.encryption.footer.key": "k1",
    "parquet.encryption.key.list": "k1:AAECAwQFBgcICQoLDA0ODw==",
    "parquet.bloom.filter.enabled": "true",
    "parquet.bloom.filter.enabled#id": "true",
    "parquet.column.statistics.enabled#id": "false",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "parquet.summary.metadata.level": "ALL",
    "parquet.enable.summary-metadata": "true",
    "spark.sql.parquet.output.committer.class": "org.example.Committer",
}


def schema(*fields: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields])


NO_TIME = schema(("c", LongType()))


def of_sql_conf(spark: SparkSession) -> set[str]:
    """The names that this Spark knows, internal ones too."""
    module = spark._jvm.java.lang.Class.forName("org.apache.spark.sql.internal.SQLConf$")  # type: ignore[union-attr]
    entries = module.getField("MODULE$").get(None).getConfigEntries().iterator()
    found = set()
    while entries.hasNext():
        found.add(entries.next().key())
    return {name for name in found if WRITING.search(name)}


def of_parquet(spark: SparkSession) -> set[str]:
    """The constants of Parquet's classes that are names."""
    found = set()
    for name in CLASSES:
        kind: Any = spark._jvm.java.lang.Class.forName(f"org.apache.parquet.{name}")  # type: ignore[union-attr]
        for field in kind.getDeclaredFields():
            if field.getType().getName() == "java.lang.String":
                field.setAccessible(True)
                found.add(field.get(None))
    return {name for name in found if name.startswith("parquet.")}


def test_the_table_has_each_setting_of_this_spark_and_its_parquet(spark: SparkSession) -> None:
    sql, hadoop = of_sql_conf(spark), of_parquet(spark)
    assert len(sql) > 30
    assert len(hadoop) > 40
    known = [pattern for names, _ in TABLE for pattern in names]
    lacking = [name for name in sql | hadoop if not any(fnmatchcase(name, one) for one in known)]
    assert sorted(lacking) == []


def test_the_page_has_the_table() -> None:
    page = (ROOT / "docs" / "guide" / "refused_writes.md").read_text()
    assert rows() in page, "python docs/settings.py"


@pytest.mark.parametrize(("name", "value"), REFUSED.items())
def test_what_files_would_not_obey_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match="s3commit does not support") as caught:
        refuse_unlike({name: value}, NO_TIME)
    assert caught.value.code == "BAD_SETTING"
    refuse_unlike({name: ""}, NO_TIME)


def test_a_committer_that_only_commits_is_one_for_the_jar_and_for_write() -> None:
    name = "spark.sql.parquet.output.committer.class"
    source = ROOT / "jvm/src/main/java/io/s3commit/spark/Committers.java"
    classes = re.findall(r'"((?:org|com)\.[\w.]+Committer)"', source.read_text())
    assert sorted(map(str.lower, classes)) == sorted(COMMIT_ONLY)
    for value in classes:
        refuse_unlike({name: value}, NO_TIME)


@pytest.mark.parametrize("kind", [*TIMES, DateType()])
@pytest.mark.parametrize(
    ("name", "value", "harmless"),
    [
        ("spark.sql.parquet.outputTimestampType", "INT96", "TIMESTAMP_MICROS"),
        ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS"),
        ("spark.sql.parquet.datetimeRebaseModeInWrite", "LEGACY", "CORRECTED"),
        ("spark.sql.parquet.int96RebaseModeInWrite", "legacy", "CORRECTED"),
    ],
)
def test_times_in_another_form_are_refused_where_there_are_times(
    kind: DataType, name: str, value: str, harmless: str
) -> None:
    if not isinstance(kind, DateType) or "datetime" in name:
        with pytest.raises(InvalidInputError, match=name):
            refuse_unlike({name: value}, schema(("c", kind)))
    refuse_unlike({name: value}, NO_TIME)
    refuse_unlike({name: harmless}, schema(("c", kind)))


# On a session.


def test_a_session_that_encrypts_is_refused(session: SparkSession, place: Place) -> None:
    with (
        set_for_a_while(session, **{"parquet.encryption.footer.key": "k1"}),
        pytest.raises(InvalidInputError, match=r"parquet\.encryption\.footer\.key") as caught,
    ):
        write(session.range(1), place.uri)
    assert "k1" not in caught.value.message
    assert place.names == []


def test_what_the_hadoop_configuration_says_is_seen(spark: SparkSession, place: Place) -> None:
    conf: Any = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("parquet.encryption.footer.key", "k2")
    try:
        assert settings_of(spark.range(1))["parquet.encryption.footer.key"] == "k2"
        with pytest.raises(InvalidInputError, match="footer"):
            write(spark.range(1), place.uri)
    finally:
        conf.unset("parquet.encryption.footer.key")


def field_ids(root: str) -> dict[str, Any]:
    """Each field's id, by its path in the file."""
    [file] = Path(root).rglob("*.parquet")
    found: dict[str, Any] = {}

    def walk(path: str, field: Any) -> None:
        found[path + field.name] = (field.metadata or {}).get(b"PARQUET:field_id")
        for number in range(field.type.num_fields):
            walk(f"{path}{field.name}.", field.type.field(number))

    for field in parquet.read_schema(file):
        walk("", field)
    return found


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_fields_have_the_ids_that_sparks_own_writer_gives_them(
    session: SparkSession, place: Place, tmp_path: Path, enabled: str
) -> None:
    def column(name: str, kind: DataType, number: int | None = None) -> StructField:
        metadata = {} if number is None else {"parquet.field.id": number}
        return StructField(name, kind, metadata=metadata)

    inner = StructType([column("x", LongType(), 3), column("y", LongType())])
    schema = StructType(
        [
            column("a", LongType(), 7),
            column("s", inner, 9),
            column("l", ArrayType(inner), 11),
            column("m", MapType(StringType(), inner)),
        ]
    )
    frame = session.createDataFrame([(1, (1, 2), [(1, 2)], {"k": (1, 2)})], schema).coalesce(1)
    with set_for_a_while(session, **{"spark.sql.parquet.fieldId.write.enabled": enabled}):
        frame.write.parquet(str(tmp_path / "own"))
        write(frame, place.uri)
    ours = field_ids(place.download(tmp_path / "ours"))
    assert ours == field_ids(str(tmp_path / "own"))
    assert sum(number is not None for number in ours.values()) == (6 if enabled == "true" else 0)


NO_FIELD_IDS = [-1, None, 2**31, "7", 7.0, True, [7]]


@pytest.mark.parametrize("number", NO_FIELD_IDS, ids=repr)
def test_a_field_id_that_files_cannot_have_is_refused(
    session: SparkSession, place: Place, tmp_path: Path, number: Any
) -> None:
    """Spark does not read a file without the ids that its schema names."""
    frame = session.range(0, 1, 1, 1).withMetadata("id", {"parquet.field.id": number})
    frame = frame.selectExpr("struct(id) AS s") if number == -1 else frame
    with pytest.raises(InvalidInputError, match=r"parquet\.field\.id=") as caught:
        write(frame, place.uri)
    assert caught.value.code == "BAD_SCHEMA"
    with set_for_a_while(session, **{"spark.sql.parquet.fieldId.write.enabled": "false"}):
        write(frame, place.uri)


INT, STRING = IntegerType(), StringType()


def test_data_and_partition_columns_are_told_apart() -> None:
    checked = check_schema(schema(("a", INT), ("Dt", STRING), ("h", INT)), ("h", "dt"))
    assert checked.data.names == ["a"]
    assert checked.partition_names == ("h", "dt")
    assert checked.names == ("a", "dt", "h")


def test_the_files_carry_sparks_metadata_of_the_data_columns_alone() -> None:
    metadata = check_schema(
        schema(("a", DayTimeIntervalType()), ("dt", STRING)), ("dt",)
    ).parquet_metadata
    assert [field["name"] for field in json.loads(metadata[ROW_METADATA])["fields"]] == ["a"]
    assert metadata[SPARK_VERSION] == pyspark.__version__.encode()


OF_LATER_RELEASES: dict[str, tuple[int, ...]] = {
    "CalendarIntervalType": (),
    "TimeType": (),
    "GeometryType": (4326,),
    "GeographyType": (4326,),
}
UNREADABLE = [
    getattr(pyspark.sql.types, name)(*arguments)
    for name, arguments in OF_LATER_RELEASES.items()
    if hasattr(pyspark.sql.types, name)
]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (YearMonthIntervalType(), "c"),
        (StructType(), "c"),
        (ArrayType(NullType(), containsNull=False), r"c\[\]"),
        (MapType(STRING, NullType(), valueContainsNull=False), "c.value"),
        (schema(("d", ArrayType(StructType()))), r"c\.d\[\]"),
        (MapType(STRING, YearMonthIntervalType()), "c.value"),
        *((kind, "c") for kind in UNREADABLE),
    ],
    ids=str,
)
def test_types_that_do_not_come_back_are_refused(kind: DataType, path: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"^column {path} has the type ") as e:
        check_schema(schema(("a", INT), ("c", kind)), ())
    assert e.value.code == "BAD_SCHEMA"


def leaves(kind: type[DataType]) -> Iterator[type[DataType]]:
    if not kind.__subclasses__():
        yield kind
    for below in kind.__subclasses__():
        yield from leaves(below)


@pytest.mark.parametrize("kind", [*leaves(AtomicType)], ids=lambda kind: kind.__name__)
def test_each_type_of_a_value_is_one_of_arrows_or_refused(kind: type[DataType]) -> None:
    """So that Arrow's own error, about no column, is never the answer."""
    arguments = {"CharType": (5,), "VarcharType": (5,)} | OF_LATER_RELEASES
    with suppress(InvalidInputError):
        found = check_schema(schema(("c", kind(*arguments.get(kind.__name__, ())))), ())
        assert found.of_files(None).names == ["c"]


@pytest.mark.parametrize("kind", [NullType(), ArrayType(NullType())])
def test_void_is_refused_if_it_is_lost(kind: DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.0.1")
    with pytest.raises(InvalidInputError, match=r"Spark 4\.0\.1 cannot read it from parquet"):
        check_schema(schema(("c", kind)), ())


NO_DIRECTORIES = (ArrayType(INT), schema(("x", INT)), NullType(), DayTimeIntervalType())


@pytest.mark.parametrize(
    ("columns", "partition_by", "line"),
    [
        (schema(("id", INT), ("ID", INT)), (), "columns id and ID differ only in case"),
        (schema(("s", schema(("x", INT), ("X", INT)))), (), r"columns s\.x and s\.X differ"),
        (schema(("id", INT), ("id", STRING)), (), "columns id and id have one name"),
        (schema(("a", INT), ("dt", STRING)), ("day",), r"'day' is not in the DataFrame \(a, dt\)"),
        (schema(("a", INT), ("dt", STRING)), ("dt", "DT"), "names a column twice: dt, DT"),
        (schema(("a", INT), ("dt", STRING)), ("dt", "a"), "all columns are partition columns"),
        (schema(), (), "no columns"),
        *((schema(("a", INT), ("p", kind)), ("p",), "cast it") for kind in NO_DIRECTORIES),
    ],
)
def test_columns_of_no_table(columns: StructType, partition_by: tuple[str, ...], line: str) -> None:
    with pytest.raises(InvalidInputError, match=line):
        check_schema(columns, partition_by)
