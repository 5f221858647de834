"""What the writer's tests share: an environment that is told what to do, and small parts."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from s3commit.core.documents.pendingset import PendingFile, decode_pendingset
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.documents.result_json import JobResult
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.destination import Destination
from s3commit.core.model.moments import shifted
from s3commit.core.model.outcome import Outcome
from s3commit.core.ports.objects import ObjectReader, ObjectStore, WriterStore
from s3commit.writer.job import Job
from s3commit.writer.options import make_options
from s3commit.writer.start import start_job
from s3commit.writer.stream import PendingUpload
from s3commit.writer.system import Environment
from s3commit.writer.target import Target
from s3commit.writer.transfer import MIB, PartSizes, Transfer, UploadSettings
from tests.fakes.store import MemoryObjectStore

BUCKET = "lake"
DESTINATION = "s3://lake/t/"
JOB = "0b6f6f0e-0000-4000-8000-000000000001"
KEY = f"t/part-0-{JOB}.bin"

T = TypeVar("T")


def fake_id(nth: int) -> str:
    """The nth id that a scripted environment makes."""
    return f"00000000-0000-4000-8000-{nth:012d}"


class ScriptedEnvironment(Environment):
    """Time passes by sleeping; ids count; ``on_sleep`` may act as the pipeline."""

    def __init__(self, on_sleep: Callable[[int], object] | None = None) -> None:
        self.slept: list[float] = []
        self.on_sleep = on_sleep
        self._ids = itertools.count(1)

    def now(self) -> str:
        return shifted("2026-11-21T22:07:22.000Z", sum(self.slept))

    def monotonic(self) -> float:
        return 1000.0 + sum(self.slept)

    def new_id(self) -> str:
        return fake_id(next(self._ids))

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.on_sleep is not None:
            self.on_sleep(len(self.slept))


@dataclass(frozen=True, slots=True)
class SmallSettings(UploadSettings):
    """Settings with parts below S3's minimum, for tests that never complete against it."""

    def __post_init__(self) -> None:
        pass


def open_on(
    store: WriterStore | None,
    destination: str = DESTINATION,
    *,
    environment: Environment | None = None,
    job_id: str | None = None,
    client: str = "test",
    **keywords: Any,
) -> Job:
    """`open_job` with what only tests say."""
    options = make_options(destination, **keywords)
    return start_job(options, client=client, job_id=job_id, store=store, environment=environment)


def small(part: int = 16, *, in_flight: int = MIB, threads: int = 4, **sizes: int) -> Transfer:
    """A task's threads and buffers with parts of ``part`` bytes throughout."""
    parts = PartSizes(first=part, **{"step": 0, **sizes})
    return Transfer(SmallSettings(parts, threads, in_flight))


def stream_on(
    store: WriterStore, transfer: Transfer | None = None, key: str = KEY
) -> PendingUpload:
    """A stream over the store, outside of any task."""
    return PendingUpload(
        store,
        Target(JobDirectory(Destination(BUCKET, ""), JOB), key, "t", "a"),
        transfer or small(),
    )


def open_uploads(store: ObjectReader) -> list[str]:
    """The keys of all uploads that are neither completed nor aborted."""
    return [upload.key for upload in store.list_uploads(BUCKET, "")]


def visible(store: ObjectReader, prefix: str = "") -> list[str]:
    """The keys that a reader sees."""
    return [found.key for found in store.list(BUCKET, prefix)]


def completed_bytes(store: ObjectStore, file: PendingFile) -> bytes:
    """Complete the upload, as the pipeline would, and read the object."""
    store.complete_upload(file.bucket, file.key, file.upload_id, file.etags, length=file.length)
    return store.get(file.bucket, file.key, max_bytes=1 << 40).body


def files_of(store: ObjectReader, job: Job, counted: CountedAttempt | None) -> list[PendingFile]:
    """The files that the attempt's manifest names, as the pipeline reads them."""
    assert counted is not None
    key = job.directory.prefix + counted.manifest
    body = store.get(BUCKET, key, max_bytes=1 << 30).body
    return list(decode_pendingset(body, job.directory, counted.manifest).files)


def result_of(job: Job, outcome: Outcome = Outcome.COMMITTED, **changes: object) -> JobResult:
    """A result as the pipeline would write it."""
    values: dict[str, object] = {
        "job_id": job.job_id,
        "outcome": outcome,
        "error": None,
        "files": 1,
        "bytes": 3,
        "rows": None,
        "decided_at": "2026-11-21T22:00:00.000Z",
        "finished_at": "2026-11-21T22:00:01.000Z",
        "execution": "arn:aws:states:::execution/x",
    }
    return JobResult(**{**values, **changes})  # type: ignore[arg-type]


class Forgetful(MemoryObjectStore):
    """Keeps no part's bytes, so that what is measured is the writer's."""

    received = 0

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: bytes | memoryview
    ) -> str:
        self.received += len(body)
        return super().upload_part(bucket, key, upload_id, number, b"")


def resident_bytes(name: str) -> int:
    """``VmRSS``, what this process has in memory, or ``VmHWM``, its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def beside(work: Callable[[], T]) -> Future[T]:
    """Run ``work`` in a thread; its result or error is the future's."""
    one_thread = ThreadPoolExecutor(1)
    future = one_thread.submit(work)
    one_thread.shutdown(wait=False)
    return future


@dataclass
class Gate:
    """Holds calls until it is opened, and says when one has come."""

    entered: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def hold(self) -> None:
        self.entered.set()
        assert self.opened.wait(30)


QUEUE = "arn:aws:sqs:eu-central-1:123456789012:RequestQueue"


class FakeS3:
    """GetBucketNotificationConfiguration, as S3 or its refusal."""

    def __init__(self, answer: dict[str, object] | ClientError) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def get_bucket_notification_configuration(self, **parameters: str) -> dict[str, object]:
        self.asked.append(parameters["Bucket"])
        if isinstance(self.answer, ClientError):
            raise self.answer
        return self.answer


def notifying(*suffixes: str, name: str = "suffix", queue: str = QUEUE) -> dict[str, object]:
    queues = []
    for suffix in suffixes:
        rules = [{"Name": "Prefix", "Value": ""}, {"Name": name, "Value": suffix}]
        named = {"QueueArn": queue, "Events": ["s3:ObjectCreated:*"]}
        queues.append({**named, "Filter": {"Key": {"FilterRules": rules}}})
    return {"QueueConfigurations": queues}
