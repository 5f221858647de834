"""A request whose event is lost is put again, by both clients, in minutes; and keeps its place."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote_plus

import pytest
from pyspark.sql import SparkSession

from s3commit.core.commit import acquire_destination
from s3commit.core.formats.layout import META_REQUESTED, JobDirectory, parse_directory
from s3commit.core.model.errors import JobFailedError
from s3commit.core.model.states import JobState
from s3commit.core.ports.objects import ObjectFacts
from s3commit.spark import write
from s3commit.writer import requests
from tests.lake import REQUEST
from tests.native import s3a
from tests.native.conftest import FAILURES, uri
from tests.servers import until
from tests.spark.tiny import BUCKET, Place, TinyPipeline

PATIENCE = 2  # seconds, of both clients
Mode = Literal["append", "overwrite"]
CLIENTS = ["jar", "write"]
HAS_METADATA = s3a.hadoop() >= (3, 3, 5)  # an older S3A can't say when S3 got the first request
NOT_PUT_AGAIN = [] if HAS_METADATA else [("jar", "overwrite")]


@pytest.fixture(autouse=True)
def patience(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both clients wait for seconds, as they else do for minutes."""
    monkeypatch.setattr(requests, "ASK_AGAIN_AFTER", float(PATIENCE))
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


def save(spark: SparkSession, place: Place, client: str, mode: Mode, rows: int) -> None:
    frame = spark.range(rows)
    if client == "jar":
        frame.write.mode(mode).parquet(uri(place))
    else:
        write(frame, place.uri, mode=mode)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_lost_event_costs_a_put(
    spark: SparkSession, tiny: TinyPipeline, place: Place, lost: Lost, client: str, mode: Mode
) -> None:
    is_put_again = (client, mode) not in NOT_PUT_AGAIN
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(save, spark, place, client, mode, 10)
        if not is_put_again:
            time.sleep(3 * PATIENCE)
            tiny.handle(BUCKET, lost.directory.request)  # as the sweep goes on with such a job
        waiting.result()
    ((directory, first),) = lost.events
    record = place.tidy()
    assert record.state is JobState.COMMITTED
    again = facts(tiny, directory.request)
    assert (again.modified > first) == is_put_again
    if client == "write" or HAS_METADATA:
        assert record.requested_at == first == again.metadata[META_REQUESTED]


@pytest.mark.parametrize(
    "client", [one for one in CLIENTS if (one, "overwrite") not in NOT_PUT_AGAIN]
)
def test_i6_an_overwrite_that_is_requested_again_is_not_later_than_one_since(
    spark: SparkSession,
    tiny: TinyPipeline,
    place: Place,
    lost: Lost,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
) -> None:
    monkeypatch.setattr(acquire_destination, "S3_CLOCKS", 1)
    lost.all = True
    with ThreadPoolExecutor() as threads:
        overtaken = threads.submit(save, spark, place, client, "overwrite", 10)
        assert lost.directory
        time.sleep(3)  # S3's times are whole seconds
        threads.submit(save, spark, place, client, "overwrite", 3).result()
        lost.all = False
        with pytest.raises((*FAILURES, JobFailedError), match="was requested later"):
            overtaken.result()
    assert spark.read.parquet(uri(place)).count() == 3
    assert tiny.failures == []


@pytest.mark.parametrize("client", CLIENTS)
def test_another_request_is_not_put_over(
    spark: SparkSession, tiny: TinyPipeline, place: Place, lost: Lost, client: str
) -> None:
    """As the sweep puts one for a driver that is silent, where the first one was deleted."""
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(save, spark, place, client, "append", 10)
        directory = lost.directory
        abort = f'{{"version":1,"jobId":"{directory.job_id}","action":"abort","reason":"by hand"}}'
        with tiny.held():
            tiny.store.put(BUCKET, directory.request, abort.encode())
            time.sleep(2 * PATIENCE)
            found = tiny.store.get(BUCKET, directory.request, max_bytes=1000).body
        with pytest.raises((*FAILURES, JobFailedError), match="by hand"):
            waiting.result()
    assert found == abort.encode()
    assert [name for name in place.data if name] == []
