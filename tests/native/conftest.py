"""One Spark session with the jar, and one small pipeline, for all tests of the native protocol."""

import sys
import uuid
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.native import s3a
from tests.native.s3a import jars
from tests.native.sides import CONTROL, FAILURES
from tests.spark.conftest import (
    SETTINGS,
    VERSION,
    environment,
    place,
    pytest_configure,
    settings,
    tiny,
)
from tests.spark.tiny import BUCKET, Place, TinyPipeline

__all__ = ["FAILURES", "VERSION", "place", "pytest_configure", "settings", "tiny"]

HAS_AVRO = any("spark-avro" in jar.name for jar in jars())


def uri(place: Place) -> str:
    """The place as Spark names it."""
    return place.uri.replace("s3://", "s3a://")


@pytest.fixture(scope="session")
def spark(tiny: TinyPipeline, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with a Hive catalog, whose warehouse is in S3."""
    from s3commit.spark.native import configure

    assert jars(), "there is no S3A: run make test-jvm"
    metastore = tmp_path_factory.mktemp("hive") / "metastore"
    builder = SparkSession.builder.master("local[2,3]").config(
        map={
            **SETTINGS,
            **s3a.settings(tiny.environment["AWS_ENDPOINT_URL"]),
            "spark.hadoop.fs.s3.impl": f"{s3a.S3A}.S3AFileSystem",  # as EMR and Glue have it
            "spark.local.dir": str(tmp_path_factory.mktemp("local")),
            "spark.sql.warehouse.dir": f"s3a://{BUCKET}/warehouse",
            "spark.sql.hive.metastore.jars": "builtin",
            "spark.hadoop.javax.jdo.option.ConnectionURL": (
                f"jdbc:derby:;databaseName={metastore};create=true"
            ),
            "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        }
    )
    run = {"AIRFLOW_CTX_DAG_ID": "daily", "AIRFLOW_CTX_DAG_RUN_ID": "run"}
    with environment(tiny, PYSPARK_PYTHON=sys.executable, **run):
        tiny.add_bucket(CONTROL, notifies=False)
        session = configure(builder).enableHiveSupport().getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def beside_sparks_own(spark: SparkSession) -> Iterator[None]:
    """What is not in our bucket is committed by Spark's own protocol."""
    with settings(spark, spark__s3commit__prefixes=f"s3a://{BUCKET}/"):
        yield


@pytest.fixture
def db(spark: SparkSession) -> Iterator[str]:
    """A database whose tables are in our bucket."""
    name = f"db_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE DATABASE {name} LOCATION 's3a://{BUCKET}/{name}'")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")
