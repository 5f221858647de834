"""One Spark session and one small pipeline for all tests of `write` and `read`."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from s3commit.spark import frame_read
from tests.spark.server import connected
from tests.spark.tiny import BUCKET, Place, TinyPipeline

VERSION = tuple(map(int, pyspark.__version__.split(".")[:2]))

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "America/New_York",
    # Short jobs end before the optimizing compiler pays. Without it the cache of compiled code
    # has 48 MB, all tests need 100, and from then on Spark is interpreted. Nor does it pay that the
    # catalog's database, Derby, waits for the disk.
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
        " -Dderby.system.durability=test"
    ),
}


def pytest_configure(config: pytest.Config) -> None:
    if VERSION < (4, 3):  # older releases leave sockets open, and use what Python gives up
        config.addinivalue_line("filterwarnings", "default")


@pytest.fixture(scope="session")
def tiny() -> Iterator[TinyPipeline]:
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


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    """The session's settings, with ``_`` for ``.``, for a while."""
    names = {name.replace("__", "."): value for name, value in values.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


@pytest.fixture(scope="session")
def spark(
    tiny: TinyPipeline, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[SparkSession]:
    """A classic session."""
    builder = SparkSession.builder.master("local[2,3]")
    for name, value in {**SETTINGS, **_warehouse(tmp_path_factory)}.items():
        builder = builder.config(name, value)
    with environment(tiny, **_workers(request)):
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect(
    tiny: TinyPipeline, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[SparkSession]:
    """A session of Spark Connect, whose server is another process."""
    settings = {**SETTINGS, **_warehouse(tmp_path_factory)}
    log = tmp_path_factory.mktemp("connect") / "log"
    with environment(tiny, **_workers(request)), connected(settings, log) as session:
        yield session


@pytest.fixture(params=["spark", "connect"], ids=["classic", "connect"])
def session(request: pytest.FixtureRequest) -> SparkSession:
    """Both kinds of session in turn."""
    found: SparkSession = request.getfixturevalue(request.param)
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


@pytest.fixture
def copies(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the bucket's objects are copied to when Spark is told of one."""

    def uri(scheme: str, bucket: str, key: str) -> str:
        assert (scheme, bucket) == ("s3a", BUCKET)
        shutil.rmtree(tmp_path / key, ignore_errors=True)  # what has been replaced since
        for listed in place.tiny.store.list(BUCKET, key):
            if "/_" in listed.key:  # hidden from Spark, and the pipeline deletes some
                continue
            path = tmp_path / listed.key
            path.parent.mkdir(parents=True, exist_ok=True)
            body = place.tiny.store.get(BUCKET, listed.key, max_bytes=1 << 28).body
            path.write_bytes(body)
        return str(tmp_path / key)

    monkeypatch.setattr(frame_read, "_uri", uri)
    return tmp_path
