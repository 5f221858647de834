"""The settings of Spark's own Parquet writer that `write` refuses, since its files would not obey.

docs/settings.py has them with all others, which are obeyed or harmless.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
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
    """Which values are refused of the settings with these ``names`` (patterns with ``*``).

    ``words`` say it in docs/spark.md. ``allowed`` are the values, in small letters, that are not
    refused, where a column has one of the ``types``, or always. ``advice`` is for who is refused.
    """

    names: tuple[str, ...]
    words: str
    allowed: tuple[str, ...]
    types: tuple[type[DataType], ...] = ()
    advice: str = _JAR

    def refuses(self, name: str, value: str, data: StructType) -> bool:
        """True if the value of that setting is refused for these columns."""
        named = any(fnmatchcase(name.partition("#")[0], pattern) for pattern in self.names)
        if not named or value.strip().lower() in {"", *self.allowed}:
            return False
        kinds = (kind for _, kind, _ in nested_types("", data))
        return not self.types or any(isinstance(kind, self.types) for kind in kinds)


# A name may end with a column, as `parquet.…#column`.
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
)


def refuse_unlike(settings: Mapping[str, str], data: StructType) -> None:
    """Raise `InvalidInputError` (``BAD_SETTING``) for a setting that files would not obey.

    ``data`` are the columns of the files.
    """
    for (name, value), rule in product(settings.items(), RULES):
        if rule.refuses(name, value, data):
            shown = "" if "crypt" in name else f"={value}"  # it may be a key
            raise InvalidInputError(
                f"s3commit does not support {name}{shown} of the session: {rule.advice}. Nothing"
                " was written.",
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
