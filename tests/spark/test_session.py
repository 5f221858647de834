"""Settings that Spark's own writer obeys are obeyed, or refused with what to do."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from s3commit.aws.clients import Encryption
from s3commit.core.model.errors import InvalidInputError
from s3commit.spark import write
from s3commit.spark.settings import apply_session_settings
from s3commit.writer.options import Options, make_options
from tests.spark.conftest import settings as set_for_a_while
from tests.spark.tiny import BUCKET, Place

CODEC = "spark.sql.parquet.compression.codec"
RECORDS = "spark.sql.files.maxRecordsPerFile"
S3A = "spark.hadoop.fs.s3a."


def obeyed(*, settings: dict[str, str], **said: Any) -> Options:
    return apply_session_settings(make_options("s3://lake/sales/", **said), settings.get)


@pytest.mark.parametrize(
    ("settings", "codec"),
    [
        ({}, "snappy"),
        ({CODEC: "ZSTD"}, "zstd"),
        ({CODEC: "uncompressed"}, "none"),
        ({CODEC: "lz4_raw"}, "lz4"),
        ({"spark.sql.orc.compression.codec": "zlib"}, "snappy"),
    ],
)
def test_the_codec_is_the_sessions_by_default(settings: dict[str, str], codec: str) -> None:
    assert obeyed(settings=settings).codec == codec
    assert obeyed(settings=settings, compression="gzip").codec == "gzip"


@pytest.mark.parametrize(
    ("settings", "said", "limit"),
    [
        ({RECORDS: "10"}, {}, 10),
        ({RECORDS: "-1"}, {}, 0),
        ({RECORDS: "10"}, {"max_records_per_file": 3}, 3),
        ({RECORDS: "10"}, {"max_records_per_file": 0}, 0),
    ],
)
def test_records_per_file(settings: dict[str, str], said: dict[str, int], limit: int) -> None:
    assert obeyed(settings=settings, **said).max_records_per_file == limit


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),
        ({"encryption.algorithm": "AES256"}, Encryption("AES256")),
        (
            {"encryption.algorithm": "SSE-KMS", "encryption.key": "arn:k"},
            Encryption("aws:kms", "arn:k"),
        ),
        (
            {"server-side-encryption-algorithm": "SSE-KMS", "server-side-encryption.key": "arn:k"},
            Encryption("aws:kms", "arn:k"),
        ),
        (
            {"encryption.algorithm": "SSE-KMS", "bucket.lake.encryption.algorithm": "AES256"},
            Encryption("AES256"),
        ),
        ({"encryption.algorithm": "SSE-C", "bucket.lake.encryption.algorithm": ""}, None),
    ],
)
def test_encryption_is_that_of_s3a_unless_the_program_says(
    settings: dict[str, str], expected: Encryption | None
) -> None:
    named = {S3A + name: value for name, value in settings.items()}
    assert obeyed(settings=named).encryption == expected
    assert obeyed(settings=named, encryption=Encryption("aws:kms")).encryption == Encryption(
        "aws:kms"
    )


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        (CODEC, "brotli", "codec='brotli': give one of snappy, zstd"),
        (S3A + "encryption.algorithm", "SSE-C", r"give encryption=s3commit\.Encryption"),
        (S3A + "acl.default", "PublicRead", "the bucket owner's"),
        (S3A + "create.storage.class", "glacier", "a lifecycle rule"),
        (S3A + "requester.pays.enabled", "true", "the pipeline's account pays"),
        (S3A + "bucket.lake.assumed.role.arn", "arn:aws:iam::1:role/r", "role_arn of a profile"),
    ],
)
def test_what_cannot_be_obeyed_is_refused_with_what_to_do(name: str, value: str, line: str) -> None:
    with pytest.raises(InvalidInputError, match=line):
        obeyed(settings={name: value})
    if name.startswith(S3A):  # another bucket's is not this one's
        other = name.replace("fs.s3a.bucket.lake.", "fs.s3a.").replace("s3a.", "s3a.bucket.other.")
        obeyed(settings={other: value})


# On a session.


def test_a_session_that_says_nothing_changes_nothing(session: SparkSession) -> None:
    said = make_options("s3://lake/sales/")
    assert apply_session_settings(said, lambda name: session.conf.get(name, None)) == said


def test_the_function_obeys(session: SparkSession, place: Place) -> None:
    said = {CODEC: "gzip", RECORDS: "4", f"{S3A}bucket.{BUCKET}.encryption.algorithm": "SSE-KMS"}
    with set_for_a_while(session, **said):
        result = write(session.range(0, 8, 1, 1), place.uri)
    assert result.files == len(place.data) == 2
    for name in place.data:
        assert name.endswith(".gz.parquet")
        key = place.destination.prefix + name
        head: Any = place.tiny.s3.head_object(Bucket=BUCKET, Key=key)
        assert head["ServerSideEncryption"] == "aws:kms"
