"""Benchmark: the commit of many small files alone, beside a bare client that completes as many.

Against the server of `bench.front` with its own memory, which is not the bottleneck: it checks
parts and etags, and does nothing else. Both have as many completions under way.
"""

from __future__ import annotations

import gc
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar
from unittest.mock import patch

from bench.figures import Figure, Sample
from bench.fleet import WORKERS, Fleet, connected
from bench.front import Front
from bench.pipeline import BUCKET, DATA, BenchWeed, environment, make_pipeline
from bench.processes import peak, reset_peak
from s3commit.aws.clients import make_client
from s3commit.aws.env import MOST_WORKERS
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.commit.note_arrivals import note_manifest
from s3commit.core.documents.job_json import JOB_JSON, JobSpec
from s3commit.core.documents.pendingset import PendingFile, PendingSet, encode_pendingset
from s3commit.core.documents.request_json import CommitRequest, CountedAttempt, encode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import digest
from s3commit.core.model.destination import Destination
from s3commit.core.model.limits import COMPLETE_WORKERS
from s3commit.writer.transfer import MIB
from tests.fakes.execution import run_execution
from tests.fakes.executions import MemoryExecutions

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

T = TypeVar("T")

FILES_A_TASK: Final = 100
FEWER: Final = 10  # as often is the smaller job in the larger one
GOAL: Final = 1.25  # 80 % of a bare client's rate
EXPONENT: Final = 1.05
MEMORY: Final = 256  # MIB that the steps may add to a process
FLEET: Final = 3_000  # completions a second of `MOST_WORKERS` processors


def commit(say: Callable[[str], None], files: int, rounds: int, delay: int) -> list[Figure]:
    """Wall time without a delay and with one; how it grows; and CPU of a completion.

    ``files`` are rounded down to thousands, at least one.
    """
    files = max(files // 1_000, 1) * 1_000
    with Front() as front, patch.dict(os.environ):
        workers = environment(BenchWeed.ADMIN, front.pipeline)
        os.environ.update(workers)
        make_client().create_bucket(Bucket=BUCKET)
        with Fleet(workers) as fleet:
            return _measured(_Bench(front, fleet), say, files, rounds, delay)


def _measured(
    bench: _Bench, say: Callable[[str], None], files: int, rounds: int, delay: int
) -> list[Figure]:
    bench.commit(FILES_A_TASK, 0)
    figures, walls = [], {}
    for wait in (0, delay):
        ours, bare, cpu, memory = [], [], [], []
        for number in range(rounds):
            start = bench.fleet.cpu
            wall, taken = bench.commit(files, wait)
            ours.append(wall)
            memory.append(taken / MIB)
            cpu.append((bench.fleet.cpu - start) / files * 1000)
            bare.append(bench.complete(files, wait))
            say(f"+{wait} ms, round {number + 1}: {ours[-1]:.1f} s, bare client {bare[-1]:.1f} s")
        walls[wait] = ours
        title, against = f"commit of {files:,} files, +{wait} ms", Sample(tuple(bare))
        figures.append(
            Figure(title, "wall", "s", Sample(tuple(ours)), "a bare client", against, goal=GOAL)
        )
    title, each = f"commit of {files:,} files", Sample((MOST_WORKERS / FLEET * 1000,))
    what = f"CPU of a completion, for {FLEET:,} a second by {MOST_WORKERS} workers"
    figures.append(Figure(title, what, "ms", Sample(tuple(cpu)), "their time", each, goal=1.0))
    allowed = Sample((float(MEMORY),))
    figures.append(
        Figure(
            title, "memory of the steps", "MB", Sample((max(memory),)), "256 MB", allowed, goal=1.0
        )
    )
    fewer = [bench.commit(files // FEWER, 0)[0] for _ in range(rounds)]
    figures.append(
        Figure(
            title,
            "wall, +0 ms",
            "s",
            Sample(tuple(walls[0])),
            f"a tenth of the files, times {FEWER}^{EXPONENT}",
            Sample(tuple(one * FEWER**EXPONENT for one in fewer)),
            goal=1.0,
        )
    )
    return figures


class _Bench:
    """The server and the workers."""

    def __init__(self, front: Front, fleet: Fleet) -> None:
        self.front = front
        self.fleet = fleet
        self._pipeline = make_pipeline(S3ObjectStore(make_client()))
        self._store = self._pipeline.store

    def commit(self, files: int, delay: int) -> tuple[float, int]:
        """Seconds from the request to the end of the execution, TidyUp included; bytes of memory.

        The latter is the peak of this process, which runs all steps but the completions, above what
        it had before.
        """
        directory = _directory()
        self._store.put(
            BUCKET, directory.job, JOB_JSON.encode(JobSpec(directory.job_id, directory.destination))
        )
        attempts = self._in_tasks(_write, directory, files)
        request = encode_request(CommitRequest(directory.job_id, tuple(attempts)))
        first = directory.prefix + attempts[0].manifest
        note_manifest(
            self._pipeline, MemoryExecutions(), BUCKET, first
        )  # as its event does, long before the request
        del attempts
        gc.collect()
        held = reset_peak(os.getpid())
        self.front.delay(delay)
        start = time.perf_counter()
        self._store.put(BUCKET, directory.request, request)
        run_execution(self._pipeline, directory, execution=directory.ref, complete=self.fleet)
        wall = time.perf_counter() - start
        memory = peak(os.getpid()) - held
        self.front.delay(0)
        visible = sum("part-" in found.key for found in self._store.list(BUCKET, _data(directory)))
        if visible != files:
            raise AssertionError(f"{visible} of {files} files are visible")
        return wall, memory

    def complete(self, files: int, delay: int) -> float:
        """Seconds in which the same processes complete so many uploads, and nothing else."""
        tasks = self._in_tasks(_upload, _directory(), files)
        uploads = [file for task in tasks for file in task.files]
        self.front.delay(delay)
        start = time.perf_counter()
        list(self.fleet.shared(_complete, uploads))
        wall = time.perf_counter() - start
        self.front.delay(0)
        return wall

    def _in_tasks(
        self, work: Callable[[JobDirectory, int], T], directory: JobDirectory, files: int
    ) -> list[T]:
        """What each task comes to, one after the other in each process of the fleet."""
        tasks = range(-(-files // FILES_A_TASK))
        return list(chain.from_iterable(self.fleet.shared(partial(_each, work, directory), tasks)))


def _each(
    work: Callable[[JobDirectory, int], T], directory: JobDirectory, tasks: Sequence[int]
) -> list[T]:
    return [work(directory, task) for task in tasks]


def _upload(directory: JobDirectory, task: int) -> PendingSet:
    return PendingSet(directory.job_id, tuple(_files(directory, task)), f"{task:05}", "a")


def _write(directory: JobDirectory, task: int) -> CountedAttempt:
    """Not in this process, whose memory is measured: what was freed there could be used again."""
    pending = _upload(directory, task)
    body = encode_pendingset(pending)
    name = directory.manifest_name(pending.task_id, pending.attempt_id)
    connected().put(BUCKET, directory.prefix + name, body)
    return CountedAttempt(
        pending.task_id, pending.attempt_id, name, digest(body), len(pending.files), pending.bytes
    )


def _files(directory: JobDirectory, task: int) -> Iterator[PendingFile]:
    store = connected()
    for number in range(FILES_A_TASK):
        key = f"{_data(directory)}part-{task:05}-{number:05}-{directory.job_id}.c000.csv"
        upload = store.create_upload(BUCKET, key, metadata={}, content_type="text/csv")
        etag = store.upload_part(BUCKET, key, upload, 1, b"1,2,3\n")
        yield PendingFile(bucket=BUCKET, key=key, upload_id=upload, etags=(etag,), length=6, rows=1)


def _complete(uploads: Sequence[PendingFile]) -> list[None]:
    """In a process of the fleet: by boto3 alone."""
    client = make_client(connections=WORKERS * COMPLETE_WORKERS)

    def one(file: PendingFile) -> None:
        parts: list[CompletedPartTypeDef] = [{"PartNumber": 1, "ETag": file.etags[0]}]
        client.complete_multipart_upload(
            Bucket=file.bucket,
            Key=file.key,
            UploadId=file.upload_id,
            MultipartUpload={"Parts": parts},
        )

    with ThreadPoolExecutor(WORKERS * COMPLETE_WORKERS) as threads:
        return list(threads.map(one, uploads))


def _directory() -> JobDirectory:
    job = str(uuid.uuid4())
    return JobDirectory(Destination(BUCKET, f"{DATA}{job}/"), job)


def _data(directory: JobDirectory) -> str:
    return directory.destination.prefix
