"""What `write` makes of each setting that Spark's own Parquet writer knows: one table.

docs/spark.md has it for users (``python docs/settings.py``). A test compares it with the names that
the running Spark has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import DataType, DateType, StructType, TimestampType

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.schema import nested_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIELD_IDS: Final = "spark.sql.parquet.fieldId.write.enabled"
_JAR: Final = "write with the jar (docs/guide/native.md), or unset it for this write"
_UNSET: Final = "unset it for this write"
# As Committers.java has them, in small letters.
COMMIT_ONLY: Final = (
    "org.apache.parquet.hadoop.parquetoutputcommitter",
    "org.apache.hadoop.mapreduce.lib.output.fileoutputcommitter",
    "org.apache.spark.internal.io.cloud.bindingparquetoutputcommitter",
    "com.amazon.emr.committer.emroptimizedsparksqlparquetoutputcommitter",
)


@dataclass(frozen=True, slots=True)
class Rule:
    """What is done about the settings with these ``names`` (patterns with ``*``).

    ``words`` say it on the page. ``allowed`` are the values, in small letters, that are not
    refused; None if none is. They count where a column has one of the ``types``, or always.
    ``advice`` is for who is refused.
    """

    names: tuple[str, ...]
    words: str
    allowed: tuple[str, ...] | None = None
    types: tuple[type[DataType], ...] = ()
    advice: str = _JAR

    def refuses(self, value: str, data: StructType) -> bool:
        """Whether the value is refused for these columns."""
        if self.allowed is None or value.strip().lower() in {"", *self.allowed}:
            return False
        kinds = (kind for _, kind, _ in nested_types("", data))
        return not self.types or any(isinstance(kind, self.types) for kind in kinds)


# The first rule with a name holds. A name may end with a column, as `parquet.…#column`.
RULES: Final = (
    Rule(
        ("parquet.crypto.factory.class", "parquet.encryption.*"),
        "refused: files would not be encrypted as Parquet's modular encryption does",
        (),
    ),
    Rule(
        ("parquet.bloom.filter.enabled*",),
        "`true` is refused: files have no Bloom filters",
        ("false",),
    ),
    Rule(
        ("parquet.column.statistics.enabled*",),
        "`false` is refused: files have statistics of all columns",
        ("true",),
    ),
    Rule(
        ("spark.sql.parquet.writeLegacyFormat",),
        "`true` is refused: files have the standard's lists and decimals",
        ("false",),
    ),
    Rule(
        ("spark.sql.parquet.outputTimestampType",),
        "files have `TIMESTAMP_MICROS`; another value is refused where a column holds timestamps",
        ("timestamp_micros",),
        (TimestampType,),
        "files have TIMESTAMP_MICROS: set it so for this write",
    ),
    Rule(
        (
            "spark.sql.parquet.datetimeRebaseModeInWrite",
            "spark.sql.legacy.parquet.datetimeRebaseModeInWrite",
        ),
        "files have `CORRECTED`; `LEGACY` is refused where a column holds dates or timestamps",
        ("corrected", "exception"),
        (TimestampType, DateType),
        "files have the calendar of today: set it to CORRECTED",
    ),
    Rule(
        (
            "spark.sql.parquet.int96RebaseModeInWrite",
            "spark.sql.legacy.parquet.int96RebaseModeInWrite",
        ),
        "the same, where a column holds timestamps",
        ("corrected", "exception"),
        (TimestampType,),
        "files have the calendar of today: set it to CORRECTED",
    ),
    Rule(
        ("parquet.summary.metadata.level",),
        "a value other than `NONE` is refused: no summary files are written",
        ("none",),
        advice=_UNSET,
    ),
    Rule(
        ("parquet.enable.summary-metadata",),
        "`true` is refused: no summary files are written",
        ("false",),
        advice=_UNSET,
    ),
    Rule(
        ("spark.sql.parquet.output.committer.class",),
        "harmless if the class only commits, as Parquet's, Hadoop's, Spark's and EMR's own do;"
        " another is refused: it would not be called",
        COMMIT_ONLY,
        advice=_UNSET,
    ),
    Rule(
        (
            "spark.sql.parquet.compression.codec",
            "spark.sql.files.maxRecordsPerFile",
            "spark.sql.sources.partitionOverwriteMode",
        ),
        "obeyed, unless an option says otherwise",
    ),
    Rule((FIELD_IDS,), "obeyed"),
    Rule(
        (
            "spark.sql.session.timeZone",
            "spark.sql.ansi.enabled",
            "spark.sql.legacy.charVarcharAsString",
        ),
        "obeyed: Spark itself casts the values of partitions",
    ),
    Rule(
        (
            "parquet.block.*",
            "parquet.page.size*",
            "parquet.page.row.count.limit",
            "parquet.page.value.count.threshold",
            "parquet.page.write-checksum.enabled",
            "parquet.dictionary.page.size*",
            "parquet.enable.dictionary*",
            "parquet.enable.bytestreamsplit*",
            "parquet.bloom.filter.*",
            "parquet.columnindex.truncate.length",
            "parquet.statistics.truncate.length",
            "parquet.size.statistics.enabled*",
            "parquet.memory.*",
            "parquet.writer.*",
            "spark.sql.parquet.variant.*",
            "spark.sql.variant.*",
        ),
        "harmless: how a file is laid out inside; any reader gets the same rows. Row groups have 64"
        " MB of Arrow data, pages are of version 1, a column has a dictionary where it saves space",
    ),
    Rule(
        (
            "parquet.compression*",
            "parquet.write.support.class",
            "parquet.validation",
            "spark.sql.sources.commitProtocolClass",
            "spark.sql.sources.outputCommitterClass",
        ),
        "harmless: Spark sets them itself, or they are of commits, which `write` does itself",
    ),
    Rule(
        (
            "spark.sql.optimizer.plannedWrite.enabled",
            "spark.sql.maxConcurrentOutputFileWriters",
            "spark.sql.legacy.allowEmptySchemaWrite",
            "spark.sql.legacy.dataFrameWriterV2IgnorePathOption",
            "spark.sql.streaming.disabledV2Writers",
        ),
        "harmless: of Spark's own plans for writes",
    ),
    Rule(
        (
            "parquet.read.*",
            "parquet.filter.*",
            "parquet.private.*",
            "parquet.page.verify-checksum.enabled",
            "parquet.strict.typing",
            "parquet.split.files",
            "parquet.task.side.metadata",
            "parquet.hadoop.vectored.io.enabled",
            "parquet.decrypt.off-heap.buffer.enabled",
            "spark.sql.parquet.aggregatePushdown",
            "spark.sql.parquet.binaryAsString",
            "spark.sql.parquet.columnarReaderBatchSize",
            "spark.sql.parquet.enable*VectorizedReader",
            "spark.sql.parquet.fieldId.read.*",
            "spark.sql.parquet.filterPushdown*",
            "spark.sql.parquet.ignoreVariantAnnotation",
            "spark.sql.parquet.inferTimestampNTZ.enabled",
            "spark.sql.parquet.int96AsTimestamp",
            "spark.sql.parquet.int96TimestampConversion",
            "spark.sql.parquet.mergeSchema",
            "spark.sql.parquet.pushdown.*",
            "spark.sql.parquet.reader.*",
            "spark.sql.parquet.recordLevelFilter.enabled",
            "spark.sql.parquet.respectSummaryFiles",
            "spark.sql.parquet.*InRead",
            "spark.sql.legacy.parquet.*InRead",
            "spark.sql.legacy.parquet.nanosAsLong",
            "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing",
        ),
        "harmless: of readers",
    ),
    Rule(
        ("spark.sql.avro.*", "spark.sql.orc.*", "spark.sql.json*", "spark.sql.legacy.avro.*"),
        "harmless: of other formats",
    ),
)


def rule_of(name: str) -> Rule | None:
    """The rule for a setting; None if the table has none."""
    for rule in RULES:
        if any(fnmatchcase(name.partition("#")[0], pattern) for pattern in rule.names):
            return rule
    return None


def refuse_unlike(settings: Mapping[str, str], data: StructType) -> None:
    """Raise `InvalidInputError` (``BAD_SETTING``) for a setting that files would not obey.

    ``data`` are the columns of the files.
    """
    for name, value in settings.items():
        rule = rule_of(name)
        if rule is not None and rule.refuses(value, data):
            shown = "" if "crypt" in name else f"={value}"  # it may be a key
            raise InvalidInputError(
                f"{name}{shown} of the session can't be obeyed: {rule.advice}."
                " Nothing was written.",
                code="BAD_SETTING",
            )


def settings_of(frame: DataFrame) -> dict[str, str]:
    """The settings of Parquet's that are set, by name without ``spark.hadoop.``.

    A classic session has those of the cluster's files and of ``sc.hadoopConfiguration`` too; Spark
    Connect shows those of Spark alone.
    """
    return {name: value for name, value in _all_settings(frame) if "parquet." in name}


def _all_settings(frame: DataFrame) -> Iterator[tuple[str, str]]:
    session = frame.sparkSession
    if hasattr(frame, "_jdf"):
        conf = session._jsparkSession.sessionState().newHadoopConf()
        for prefix in ("parquet.", "spark.sql.parquet.", "spark.sql.legacy.parquet."):
            for name, value in conf.getPropsWithPrefix(prefix).items():
                yield prefix + name, value
    else:
        for row in session.sql("SET").collect():
            yield row.key.removeprefix("spark.hadoop."), row.value
