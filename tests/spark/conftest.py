"""One Spark session and one small pipeline for all tests of the data source."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.spark.tiny import Place, TinyPipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        # PySpark 4.3 says that it has not been tested with pandas 3; nothing here uses pandas.
        "ignore:PySpark does not yet fully support pandas:FutureWarning",
    ):
        config.addinivalue_line("filterwarnings", line)


@pytest.fixture(scope="session")
def tiny() -> Iterator[TinyPipeline]:
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    ports = TinyPipeline()
    with environment(ports):
        ports.start()
    yield ports
    ports.stop()


@contextmanager
def environment(tiny: TinyPipeline, **more: str) -> Iterator[None]:
    """Set for a while only: other tests of the same process have their own."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**tiny.environment, **more}.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def spark(
    tiny: TinyPipeline, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[SparkSession]:
    from pyspark.sql import SparkSession

    from s3commit.spark import register

    warehouse = tmp_path_factory.mktemp("warehouse")
    builder = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.sql.session.timeZone", "America/New_York")
        # Short jobs end before the JVM's optimizing compiler pays.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    )
    # Some tests' own code runs in the workers.
    path = str(request.config.rootpath)
    with environment(tiny, PYSPARK_PYTHON=sys.executable, PYTHONPATH=path):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    yield session
    session.stop()


@pytest.fixture
def place(tiny: TinyPipeline) -> Iterator[Place]:
    tiny.failures.clear()
    with environment(tiny):
        yield Place(tiny)
    assert not tiny.failures, tiny.failures
