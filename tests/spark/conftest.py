"""One Spark session and one small pipeline for all tests of the data source."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.spark.tiny import CREDENTIALS, Place, TinyPipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        # PySpark 4.3 says that it has not been tested with pandas 3; nothing here uses pandas.
        "ignore:PySpark does not yet fully support pandas:FutureWarning",
    ):
        config.addinivalue_line("filterwarnings", line)


@pytest.fixture(scope="session")
def tiny(request: pytest.FixtureRequest) -> Iterator[TinyPipeline]:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    pipeline = TinyPipeline()
    before = dict(os.environ)
    # Spark's workers inherit the environment that the JVM is started with.
    os.environ.update(CREDENTIALS, AWS_ENDPOINT_URL=pipeline.endpoint)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(request.config.rootpath)  # some tests' own code runs there
    try:
        pipeline.start()
        yield pipeline
        pipeline.stop()
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def spark(tiny: TinyPipeline, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    from s3commit.spark import register

    warehouse = tmp_path_factory.mktemp("warehouse")
    session = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.sql.session.timeZone", "America/New_York")
        # Short jobs end before the JVM's optimizing compiler pays.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    yield session
    session.stop()


@pytest.fixture
def place(tiny: TinyPipeline) -> Iterator[Place]:
    tiny.failures.clear()
    yield Place(tiny)
    assert not tiny.failures, tiny.failures
