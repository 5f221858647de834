"""Which writes are ours, and what is refused before anything is written."""

import re
from pathlib import Path
from zipfile import ZipFile

import pytest
from moto.s3.exceptions import S3AccessDeniedError
from moto.s3.models import S3Backend
from pyspark.sql import SparkSession

from s3commit.core.model.errors import InvalidInputError
from s3commit.spark.native import NoJarError, configure, find_jar
from tests.native.conftest import FAILURES, settings
from tests.native.s3a import ROOT, jars
from tests.spark.tiny import Place


def refused(spark: SparkSession, target: str, message: str) -> None:
    with pytest.raises(FAILURES, match=message):
        spark.range(10).write.mode("append").parquet(target)


# Names of S3A's settings that could end uploads, or keep the pipeline from what a job has put.
TELLING = r"purge|abort|upload|create|storage|performance|encryption.algorithm|checksum.generation"
# The others of these, with the reason for which each is harmless.
HARMLESS = {
    "capability.multipart.uploads.enabled": "a question",
    "capability.s3express.storage": "a question",
    "committer.abort.pending.uploads": "of S3A's committers: docs/guide/s3a.md",
    "committer.staging.abort.pending.uploads": "the same",
    "connection.part.upload.timeout": "a wait",
    "create.conditional.enabled": "where it is off, a put is two requests, as before 3.4.2",
    "create.header": "of one call",
    "create.multipart": "of one call",
    "create.performance.enabled": "a question",
    "fast.upload": "of S3A's own stream",
    "fast.upload.active.blocks": "of S3A's own stream",
    "fast.upload.buffer": "of S3A's own stream",
    "internal.upload.part.count.limit": "of S3A's own stream",
    "multipart.purge.age": "of multipart.purge",
    "s3express.create.session": "of directory buckets",
    "s3guard.ddb.table.create": "removed from S3A",
}


def test_each_setting_of_s3a_that_could_end_a_job_is_judged() -> None:
    """The jar refuses it, or has its own value, or it is harmless."""
    (jar,) = (jar for jar in jars() if jar.name.startswith("hadoop-aws-"))
    with ZipFile(jar) as classes:
        bodies = [classes.read(name) for name in classes.namelist() if "Constants" in name]
    found = {name.decode() for body in bodies for name in re.findall(rb"fs\.s3a\.([\w.-]+)", body)}
    telling = {name for name in found if re.search(TELLING, name)}
    assert len(telling) > 10
    store = Path(ROOT, "jvm/src/main/java/io/s3commit/spark/Store.java").read_text()
    assert {name for name in telling if f'"{name}"' not in store} <= HARMLESS.keys()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("encryption.algorithm", "SSE-C"),
        ("server-side-encryption-algorithm", "CSE-KMS"),
        ("create.checksum.algorithm", "CRC32C"),
        ("checksum.generation", "true"),
        ("create.storage.class", "glacier"),
        ("multipart.purge", "true"),
        ("multipart.uploads.enabled", "false"),
    ],
)
def test_a_setting_of_s3a_with_which_a_job_would_fail(
    spark: SparkSession, place: Place, name: str, value: str
) -> None:
    """S3A keeps a file system for each bucket: so a bucket of its own, with its own settings."""
    bucket = "refused-" + place.destination.prefix.split("/")[0]
    place.tiny.add_bucket(bucket)
    keys = {"encryption.key": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0MTIzNDU2Nzg="}
    values = {f"fs.s3a.bucket.{bucket}.{key}": text for key, text in {name: value, **keys}.items()}
    for key, text in values.items():
        spark._jsc.hadoopConfiguration().set(key, text)
    # Spark's own S3A may refuse an encryption first.
    refused(spark, f"s3a://{bucket}/table", f"{name}={value}.*BAD_SETTING|CSE|Encryption|Bouncy")
    assert list(place.tiny.store.list(bucket, "")) == []
    assert list(place.tiny.store.list_uploads(bucket, "")) == []


# With these S3A's own readers refuse, or misread, what is in a bucket without versions.
READERS = [
    {"change.detection.source": "versionid", "change.detection.mode": "server"},
    {"prefetch.enabled": "true"},
]


@pytest.mark.parametrize("values", READERS, ids=str)
@pytest.mark.parametrize("name", ["fs.s3a.{}", "fs.s3a.bucket.{bucket}.{}"])
def test_a_result_is_read_whatever_reader_the_session_has(
    spark: SparkSession, place: Place, name: str, values: dict[str, str]
) -> None:
    """Else a write that is committed would wait until its time is up."""
    bucket = "reader-" + place.destination.prefix.split("/")[0]
    place.tiny.add_bucket(bucket)
    given = {name.format(one, bucket=bucket): value for one, value in values.items()}
    with settings(spark, **given):
        spark.range(10).write.option("commitTimeout", "20s").parquet(f"s3a://{bucket}/table")
    assert next(place.tiny.store.list(bucket, "table/part-"))


def test_a_bucket_without_a_pipeline_or_none_at_all(spark: SparkSession, place: Place) -> None:
    bucket = "unheard-" + place.destination.prefix.split("/")[0]
    place.tiny.add_bucket(bucket, notifies=False)
    refused(spark, f"s3a://{bucket}/table", "has no s3commit pipeline.*NO_PIPELINE")
    assert list(place.tiny.store.list(bucket, "")) == []
    refused(spark, "s3a://nowhere/table", "bucket nowhere does not exist.*NO_BUCKET")


def test_a_bucket_whose_notifications_may_not_be_read(
    spark: SparkSession, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job goes on, as that of `write` does."""
    asked: list[str] = []

    def refuse(_: S3Backend, name: str) -> None:
        asked.append(name)
        raise S3AccessDeniedError

    monkeypatch.setattr(S3Backend, "get_bucket_notification_configuration", refuse)
    bucket = "secret-" + place.destination.prefix.split("/")[0]
    place.tiny.add_bucket(bucket)
    spark.range(10).write.parquet(f"s3a://{bucket}/table")
    assert asked == [bucket]
    assert spark.read.parquet(f"s3a://{bucket}/table").count() == 10


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("otherwise", "no.such.Class"),
        ("otherwise", "io.s3commit.spark.S3CommitProtocol"),
        ("otherwise", "java.lang.String"),
        ("prefixes", "gs://lake/"),
    ],
)
def test_a_setting_of_ours_that_can_not_be_is_refused_before_spark_deletes_anything(
    spark: SparkSession, tmp_path: Path, name: str, value: str
) -> None:
    target = str(tmp_path / "table")
    spark.range(10).write.parquet(target)
    with (
        settings(spark, **{f"spark.s3commit.{name}": value}),
        pytest.raises(FAILURES, match=rf"{name}=.*BAD_SETTING"),
    ):
        spark.range(1).write.mode("overwrite").parquet(target)
    assert spark.read.parquet(target).count() == 10


def test_configure_keeps_jars_and_the_class_that_was_named(spark: SparkSession) -> None:
    builder = SparkSession.Builder().config("spark.jars", "mine.jar")
    for _ in range(2):
        configure(builder, prefixes=["s3a://bucket/t/", "s3://cellar/"], jar="ours.jar")
    found = builder._options
    assert found["spark.jars"] == "mine.jar,ours.jar,ours.jar"
    assert found["spark.s3commit.prefixes"] == "s3a://bucket/t/,s3://cellar/"
    assert "spark.s3commit.otherwise" not in found
    for wrong in ("b/t", "gs://bucket/t/", "s3a://B_d/", "s3a://one/,s3a://two/"):
        with pytest.raises(InvalidInputError, match="give s3a://bucket"):
            configure(SparkSession.Builder(), prefixes=wrong)
    name = "spark.sql.sources.commitProtocolClass"
    builder = SparkSession.Builder().config(name, "some.other.Protocol")
    found = configure(configure(builder, jar="ours.jar"), jar="ours.jar")._options
    assert found["spark.s3commit.otherwise"] == "some.other.Protocol"
    assert found[name] == "io.s3commit.spark.S3CommitProtocol"
    assert "spark.sql.streaming.commitProtocolClass" not in found


def test_no_jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Path(find_jar()).exists()
    monkeypatch.setattr("s3commit.spark.native.JARS", tmp_path)
    with pytest.raises(NoJarError, match="make jar"):
        find_jar()
