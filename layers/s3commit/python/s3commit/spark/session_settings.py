"""Settings of the session that Spark's own writer obeys: obeyed here as well, or refused in a line.

The program reads them by ``spark.conf``, and its tasks get the options that they make. Those that a
cluster has in ``core-site.xml`` alone are not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from s3commit.aws.clients import Encryption
from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.options import codec_of, limit_of
from s3commit.writer.options import Options

T = TypeVar("T")
# The value of a setting, by its name; None if it is not set.
Setting = Callable[[str], str | None]

CODEC: Final = "spark.sql.parquet.compression.codec"
RECORDS: Final = "spark.sql.files.maxRecordsPerFile"
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


def apply_session_settings(options: Options, setting: Setting) -> Options:
    """``options`` with what the session says where the program says nothing.

    Raises `InvalidInputError` for a setting that can't be obeyed. Those of Parquet's are judged by
    `s3commit.spark.parquet_settings`.
    """
    _refuse_of_s3a(options, setting)
    records = setting(RECORDS)
    compression = setting(CODEC)
    if options.compression is None and compression is not None:
        options = replace(options, compression=_read(codec_of, CODEC, compression))
    if options.max_records_per_file is None and records is not None:
        options = replace(options, max_records_per_file=_read(limit_of, RECORDS, records))
    return replace(options, encryption=options.encryption or _encryption(options, setting))


def _read(parse: Callable[[str, str], T], name: str, text: str) -> T:
    try:
        return parse(name, text)
    except InvalidInputError as error:
        advice = error.message.partition(": ")[2]
        raise _refused(name, text, f"{advice}, as a keyword of the write") from error


def _refuse_of_s3a(options: Options, setting: Setting) -> None:
    for name, (harmless, advice) in _OF_S3A.items():
        full, text = _of_s3a(options, setting, name)
        if text.lower() not in {value.lower() for value in harmless}:
            raise _refused(full, text, f"{advice}; {_unset(options, name)}")


def _encryption(options: Options, setting: Setting) -> Encryption | None:
    full, text = _of_s3a(options, setting, *_ALGORITHM)
    if not text:
        return None
    if text.upper() not in _ALGORITHMS:
        advice = f"give encryption=s3commit.Encryption(...); {_unset(options, _ALGORITHM[0])}"
        raise _refused(full, text, advice)
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


def _refused(name: str, text: str, advice: str) -> InvalidInputError:
    return InvalidInputError(
        f"s3commit does not support {name}={text} of the session: {advice}. Nothing was written.",
        code="BAD_SETTING",
    )
