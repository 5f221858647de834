"""A request whose event is lost is put again by the jar, in minutes, and keeps its place.

tests/writer/test_waiting.py has the other client.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus

import pytest
from pyspark.sql import SparkSession

from s3commit.core.commit import acquire_destination
from s3commit.core.formats.layout import META_REQUESTED, JobDirectory, parse_directory
from s3commit.core.model.states import JobState
from s3commit.core.ports.objects import ObjectFacts
from tests.lake import REQUEST
from tests.native import s3a
from tests.native.conftest import FAILURES, uri
from tests.servers import until
from tests.spark.tiny import BUCKET, Place, TinyPipeline

PATIENCE = 2  # seconds
HAS_METADATA = s3a.hadoop() >= (3, 3, 5)  # an older S3A can't say when S3 got the first request


@pytest.fixture(autouse=True)
def patience(spark: SparkSession) -> Iterator[None]:
    """The jar waits for seconds, as it else does for minutes."""
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    number = loader.loadClass("io.s3commit.spark.Request").getDeclaredField("patience")
    number.setAccessible(True)
    before = number.getLong(None)
    number.setLong(None, PATIENCE)
    yield
    number.setLong(None, before)


@dataclass
class Lost:
    """The job whose first request is lost, and when S3 got it; later ones too while ``all``."""

    events: list[tuple[JobDirectory, str]] = field(default_factory=list)
    all: bool = False

    @property
    def directory(self) -> JobDirectory:
        found: JobDirectory = until(lambda: self.events, "that an event is lost")[0][0]
        return found


@pytest.fixture
def lost(tiny: TinyPipeline, monkeypatch: pytest.MonkeyPatch) -> Lost:
    found = Lost()
    handle = tiny.handle

    def lose(bucket: str, quoted: str) -> None:
        key = unquote_plus(quoted)
        of_job = [one for one, _ in found.events if key == one.request]
        if key.endswith(REQUEST) and (not found.events or (of_job and found.all)):
            found.events.append((parse_directory(bucket, key), facts(tiny, key).modified))
        else:
            handle(bucket, quoted)

    monkeypatch.setattr(tiny, "handle", lose)
    return found


def facts(tiny: TinyPipeline, key: str) -> ObjectFacts:
    found = tiny.store.head(BUCKET, key)
    assert found is not None
    return found


def save(spark: SparkSession, place: Place, mode: str, rows: int) -> None:
    spark.range(rows).write.mode(mode).parquet(uri(place))


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_lost_event_costs_a_put(
    spark: SparkSession, tiny: TinyPipeline, place: Place, lost: Lost, mode: str
) -> None:
    is_put_again = HAS_METADATA or mode == "append"
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(save, spark, place, mode, 10)
        if not is_put_again:
            time.sleep(3 * PATIENCE)
            tiny.handle(BUCKET, lost.directory.request)  # as the sweep goes on with such a job
        waiting.result()
    ((directory, first),) = lost.events
    record = place.tidy()
    assert record.state is JobState.COMMITTED
    again = facts(tiny, directory.request)
    assert (again.modified > first) == is_put_again
    if HAS_METADATA:
        assert record.requested_at == first == again.metadata[META_REQUESTED]


@pytest.mark.skipif(not HAS_METADATA, reason="this S3A puts no overwrite again")
def test_i6_an_overwrite_that_is_requested_again_is_not_later_than_one_since(
    spark: SparkSession,
    tiny: TinyPipeline,
    place: Place,
    lost: Lost,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acquire_destination, "S3_CLOCKS", 1)
    lost.all = True
    with ThreadPoolExecutor() as threads:
        overtaken = threads.submit(save, spark, place, "overwrite", 10)
        assert lost.directory
        time.sleep(3)  # S3's times are whole seconds
        threads.submit(save, spark, place, "overwrite", 3).result()
        lost.all = False
        with pytest.raises(FAILURES, match="was requested later"):
            overtaken.result()
    assert spark.read.parquet(uri(place)).count() == 3
    assert tiny.failures == []
