"""Settings of the session that Spark's own writer obeys: obeyed here as well, or refused in a line.

The program reads them by ``spark.conf``, and its tasks get the options that they make. Those that a
cluster has in ``core-site.xml`` alone are not seen, but for Parquet's. docs/settings.py has a table
of them, also of those that are harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import DataType, DateType, StructType, TimestampType

from s3commit.aws.clients import Encryption
from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.schema import nested_types
from s3commit.writer.options import COMPRESSIONS, Options, meaning

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The value of a setting, by its name; None if it is not set.
Setting = Callable[[str], str | None]

SESSION_SCOPE: Final = "spark.sql.sources.partitionOverwriteMode"
CODEC: Final = "spark.sql.parquet.compression.codec"
RECORDS: Final = "spark.sql.files.maxRecordsPerFile"
_CODECS: Final = {**COMPRESSIONS, "uncompressed": "none", "lz4_raw": "lz4"}
# S3A's names (https://hadoop.apache.org/docs/stable/hadoop-aws/tools/hadoop-aws/encryption.html).
_ALGORITHM: Final = ("encryption.algorithm", "server-side-encryption-algorithm")
_KEY: Final = ("encryption.key", "server-side-encryption.key")
_ALGORITHMS: Final = {"AES256": "AES256", "SSE-KMS": "aws:kms", "DSSE-KMS": "aws:kms:dsse"}
# By setting: the values that change nothing, and what to do about another one.
_OF_S3A: Final = {
    "acl.default": (("", "Private"), "objects are the bucket owner's here"),
    "create.storage.class": (("", "standard"), "a lifecycle rule of the bucket can change it"),
    "requester.pays.enabled": (("", "false"), "the pipeline's account pays"),
    "assumed.role.arn": (("",), "give the role to the AWS configuration, as role_arn of a profile"),
}
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

    ``allowed`` are the values, in small letters, that are not refused, where a column has one of
    the ``types``, or always. ``advice`` is for who is refused.
    """

    names: tuple[str, ...]
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
    Rule(("parquet.crypto.factory.class", "parquet.encryption.*"), ()),
    Rule(("parquet.bloom.filter.enabled*",), ("false",)),
    Rule(("parquet.column.statistics.enabled*",), ("true",)),
    Rule(("spark.sql.parquet.writeLegacyFormat",), ("false",)),
    Rule(
        ("spark.sql.parquet.outputTimestampType",),
        ("timestamp_micros",),
        (TimestampType,),
        "files have TIMESTAMP_MICROS: set it so for this write",
    ),
    Rule(
        (
            "spark.sql.parquet.datetimeRebaseModeInWrite",
            "spark.sql.legacy.parquet.datetimeRebaseModeInWrite",
        ),
        ("corrected", "exception"),
        (TimestampType, DateType),
        "files have the calendar of today: set it to CORRECTED",
    ),
    Rule(
        (
            "spark.sql.parquet.int96RebaseModeInWrite",
            "spark.sql.legacy.parquet.int96RebaseModeInWrite",
        ),
        ("corrected", "exception"),
        (TimestampType,),
        "files have the calendar of today: set it to CORRECTED",
    ),
    Rule(("parquet.summary.metadata.level",), ("none",), advice=_UNSET),
    Rule(("parquet.enable.summary-metadata",), ("false",), advice=_UNSET),
    Rule(("spark.sql.parquet.output.committer.class",), COMMIT_ONLY, advice=_UNSET),
)


def apply_session_settings(options: Options, setting: Setting) -> Options:
    """``options`` with what the session says where the program says nothing.

    Raises `InvalidInputError` for a setting that can't be obeyed. Those of Parquet's are judged by
    `refuse_unlike`.
    """
    _refuse_of_s3a(options, setting)
    records = setting(RECORDS)
    compression = setting(CODEC)
    if options.compression is None and compression is not None:
        options = replace(options, compression=meaning(CODEC, compression, _CODECS))
    if options.max_records_per_file is None and records is not None:
        options = replace(options, max_records_per_file=max(0, int(records)))
    return replace(options, encryption=options.encryption or _encryption(options, setting))


def _refuse_of_s3a(options: Options, setting: Setting) -> None:
    for name, (harmless, advice) in _OF_S3A.items():
        full, text = _of_s3a(options, setting, name)
        if text.lower() not in {value.lower() for value in harmless}:
            raise _refused(f"{full}={text}", f"{advice}; {_unset(options, name)}")


def _encryption(options: Options, setting: Setting) -> Encryption | None:
    full, text = _of_s3a(options, setting, *_ALGORITHM)
    if not text:
        return None
    if text.upper() not in _ALGORITHMS:
        advice = f"give encryption=s3commit.Encryption(...); {_unset(options, _ALGORITHM[0])}"
        raise _refused(f"{full}={text}", advice)
    _, key = _of_s3a(options, setting, *_KEY)
    algorithm = _ALGORITHMS[text.upper()]
    return Encryption(algorithm, key or None if algorithm != "AES256" else None)


def _of_s3a(options: Options, setting: Setting, *names: str) -> tuple[str, str]:
    """The full name of the first that is set, of the bucket before all buckets, and its value."""
    of_bucket = f"spark.hadoop.fs.s3a.bucket.{options.destination.bucket}."
    for prefix in (of_bucket, "spark.hadoop.fs.s3a."):
        for name in names:
            text = setting(prefix + name)
            if text is not None:
                return prefix + name, text.strip()
    return "", ""


def _unset(options: Options, name: str) -> str:
    bucket = options.destination.bucket
    return f"where it is not meant, set spark.hadoop.fs.s3a.bucket.{bucket}.{name} to nothing"


def refuse_unlike(settings: Mapping[str, str], data: StructType) -> None:
    """Raise `InvalidInputError` (``BAD_SETTING``) for a setting that files would not obey.

    ``data`` are the columns of the files.
    """
    for (name, value), rule in product(settings.items(), RULES):
        if rule.refuses(name, value, data):
            shown = "" if "crypt" in name else f"={value}"  # it may be a key
            raise _refused(f"{name}{shown}", rule.advice)


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


def _refused(setting: str, advice: str) -> InvalidInputError:
    return InvalidInputError(
        f"s3commit does not support {setting} of the session: {advice}.", code="BAD_SETTING"
    )
