"""One Spark session and one small pipeline for all tests of the data source."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from tests.spark.tiny import Place, TinyPipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))
# Python data sources came with Spark 4.0, their streams of Arrow batches with 4.1.
_OF_ANY = {
    f"test_{name}.py"
    for name in (
        "committed",
        "driver",
        "foreach_batch",
        "frame_read",
        "frame_write",
        "merging",
        "schema_policy",
        "session",
    )
}
_OF_STREAMS = {"test_stream_writer.py", "test_streaming.py"}
_ALL = {path.name for path in Path(__file__).parent.glob("test_*.py")}
collect_ignore = sorted(
    _ALL - _OF_ANY if VERSION < (4, 0) else _OF_STREAMS if VERSION < (4, 1) else ()
)

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "America/New_York",
    # Short jobs end before the JVM's optimizing compiler pays.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def pytest_configure(config: pytest.Config) -> None:
    if VERSION < (4, 3):  # older releases leave sockets open, and use what Python gives up
        config.addinivalue_line("filterwarnings", "default")


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
    """A classic session, with the format registered."""
    from pyspark.sql import SparkSession

    from s3commit.spark import register

    builder = SparkSession.builder.master("local[2,3]")
    for name, value in {**SETTINGS, **_warehouse(tmp_path_factory)}.items():
        builder = builder.config(name, value)
    with environment(tiny, **_workers(request)):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if VERSION >= (4, 0):
        register(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect(
    tiny: TinyPipeline, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[SparkSession]:
    """A session of Spark Connect, whose server is another process."""
    from tests.spark.server import ConnectServer

    settings = {**SETTINGS, **_warehouse(tmp_path_factory)}
    log = tmp_path_factory.mktemp("connect") / "log"
    with environment(tiny, **_workers(request)), ConnectServer(settings, log) as server:
        yield server.session()


@pytest.fixture(params=["classic", "connect"])
def session(request: pytest.FixtureRequest) -> SparkSession:
    """Both kinds of session in turn."""
    kind = {"classic": "spark", "connect": "connect"}[request.param]
    found: SparkSession = request.getfixturevalue(kind)
    return found


def _warehouse(factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"spark.sql.warehouse.dir": str(factory.mktemp("warehouse"))}


def _workers(request: pytest.FixtureRequest) -> dict[str, str]:
    """Some tests' own code runs in the workers; they import what the tests do."""
    path = [str(request.config.rootpath), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(path)}


@pytest.fixture
def place(tiny: TinyPipeline) -> Iterator[Place]:
    tiny.failures.clear()
    with environment(tiny):
        yield Place(tiny)
    assert not tiny.failures, tiny.failures
