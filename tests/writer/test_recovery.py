"""Faults on the way to S3 and interruptions: what passes by itself, and what is left if not.

After Hadoop's ITestUploadRecovery, ITestS3ABlockOutputStreamInterruption and
AbstractContractMultipartUploaderTest. The faults are answers of an HTTP server, below botocore,
where the package's one layer of retries is.
"""

import signal
import threading
import time
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from s3commit.aws.clients import TOTAL_MAX_ATTEMPTS
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.model.errors import TransientError
from s3commit.writer.job import Job
from s3commit.writer.transfer import MIB, MIN_PART_BYTES, PartSizes, Transfer, UploadSettings
from tests.aws.conftest import Raw
from tests.fakes.faults import FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.lake import Lake
from tests.writer.support import (
    BUCKET,
    ScriptedEnvironment,
    SmallSettings,
    open_on,
    open_uploads,
    visible,
)

BODY = bytes(range(256)) * (11 * MIB // 256)  # three parts


@pytest.fixture
def lake(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)  # its pauses
    return lake


def failing(lake: Lake, operation: str, *, times: int, status: int = 500) -> list[int]:
    """Answer the operation's first requests with an error; the list grows by one each time."""
    struck: list[int] = []
    code = {500: "InternalError", 503: "SlowDown"}[status]
    body = f"<Error><Code>{code}</Code><Message>injected</Message></Error>".encode()

    def answer(request: Any, **_: Any) -> AWSResponse | None:
        if len(struck) >= times:
            return None
        struck.append(status)
        return AWSResponse(request.url, status, HTTPHeaders(), Raw(body))

    lake.client.meta.events.register(f"before-send.s3.{operation}", answer)
    return struck


def open_through(lake: Lake) -> Job:
    return open_on(
        S3ObjectStore(lake.client),
        f"s3://{lake.bucket}/t/",
        uploads=UploadSettings(PartSizes(first=MIN_PART_BYTES)),
    )


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        ("UploadPart", 500),
        ("UploadPart", 503),
        ("CreateMultipartUpload", 500),
        ("PutObject", 500),
        ("CompleteMultipartUpload", 500),
    ],
)
def test_i2_what_fails_twice_recovers_by_itself(lake: Lake, operation: str, status: int) -> None:
    job = open_through(lake)
    struck = failing(lake, operation, times=2, status=status)
    with job.task("0") as task, task.open("a.bin") as file:
        file.write(BODY)
    job.commit([task.counted])
    assert struck == [status] * 2
    (key,) = lake.visible()
    assert lake.body(key) == BODY
    assert lake.open_uploads() == []


def test_i4_a_part_that_always_fails_fails_the_task_and_leaves_nothing(lake: Lake) -> None:
    job = open_through(lake)
    struck = failing(lake, "UploadPart", times=100)
    with (
        pytest.raises(TransientError, match=r"sending part 1 of s3://.*injected"),
        job.task("0") as task,
        task.open("a.bin") as file,
    ):
        file.write(b"x")
    assert len(struck) == TOTAL_MAX_ATTEMPTS
    assert lake.open_uploads() == []
    assert lake.visible() == []


# --- interruptions


def ctrl_c() -> None:
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGINT)


@pytest.fixture
def store() -> MemoryObjectStore:
    return MemoryObjectStore(BUCKET, min_part_bytes=1)


@pytest.fixture
def job(store: MemoryObjectStore, plan: FaultPlan) -> Job:
    return open_on(
        plan.wrap(store),
        uploads=SmallSettings(PartSizes(first=4, step=0), threads=1, in_flight_bytes=4),
        environment=ScriptedEnvironment(),
    )


@pytest.mark.usefixtures("interruptible")
def test_i4_ctrl_c_while_parts_are_sent_aborts_the_task(
    job: Job, store: MemoryObjectStore, plan: FaultPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken = threading.Event()  # an abort wakes who waits, when nothing more is sent
    monkeypatch.setattr(Transfer, "wake", lambda _: woken.set())
    task = job.task("0")
    file = task.open("a")

    def interrupt() -> None:
        time.sleep(0.05)  # until the main thread waits: a signal just before does not wake it
        ctrl_c()
        assert woken.wait(30)  # a part on its way is waited for

    plan.run_before("upload_part", interrupt, nth=2)
    with pytest.raises(KeyboardInterrupt), task, file:
        file.write(b"x" * 400)
    assert file.closed
    with pytest.raises(OSError, match="a-"):
        _ = file.pending
    assert plan.count("upload_part") <= 3
    assert open_uploads(store) == []
    assert visible(store, job.directory.tasks) == []


@pytest.mark.usefixtures("interruptible")
def test_i4_an_abort_that_is_interrupted_may_be_repeated_by_the_pipeline_alone(
    job: Job, store: MemoryObjectStore, plan: FaultPlan
) -> None:
    task = job.task("0")
    file = task.open("a")
    file.write(b"x" * 8)
    file.seal()
    plan.run_before("abort_upload", ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        file.abort()
        raise AssertionError("interrupted as soon as it can be")
    assert file.aborted
    assert file.abort() is None
    assert plan.count("abort_upload") == 1
