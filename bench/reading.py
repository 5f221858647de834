"""What a process of the benchmark `documents` does: import a function, read, say the peak RSS.

``python -m bench.reading FUNCTION READER FILE``; the file is the document, made by another process,
so that making it costs no memory here.
"""

import importlib
import os
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.processes import peak
from s3commit.aws.clients import MAX_POOL_CONNECTIONS
from s3commit.aws.clock import SystemClock
from s3commit.aws.parallel import ThreadMap
from s3commit.core.commit.seal_job import seal_job
from s3commit.core.commit.verify_manifests import verify_manifests
from s3commit.core.documents.job_json import JOB_JSON, JobSpec, decode_job
from s3commit.core.documents.pendingset import (
    PendingFile,
    PendingSet,
    decode_pendingset,
    encode_pendingset,
)
from s3commit.core.documents.request_json import (
    CommitRequest,
    CountedAttempt,
    decode_request,
    encode_request,
)
from s3commit.core.documents.result_json import decode_result
from s3commit.core.documents.success_marker import success_job_id
from s3commit.core.documents.ticket import UNKNOWN, Ticket
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import digest
from s3commit.core.jobs.counted_manifests import counted_manifests
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import InvalidInputError, JobRefusedError
from s3commit.core.model.limits import MAX_JOB_FILES
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ObjectFacts, ObjectStore, OpenUpload, StoredObject
from tests.fakes.memory import MemoryLedger, MemoryObjectStore

BUCKET: Final = "bench"
JOB: Final = "0b6f6f0e-0000-4000-8000-000000000001"
DIRECTORY: Final = JobDirectory(Destination(BUCKET, "sales/"), JOB)
SIDE_BY_SIDE: Final = 200  # manifests: more than are handed out at once
TASKS: Final = 100_000
FILES: Final = MAX_JOB_FILES
AFTER_THE_JOB: Final = "9999"  # when an upload was started, as any that is the job's


def _decoded(decode: Callable[[bytes], object]) -> Callable[[bytes], object]:
    def read(body: bytes) -> object:
        try:
            return decode(body)
        except InvalidInputError as error:
            if error.code in {"TOO_LARGE", "BAD_JSON"}:
                raise  # then it was not even made objects of
            return None

    return read


def _side_by_side(body: bytes) -> None:
    """Many manifests of one job, each with bytes of its own, as a call has them from S3."""

    class Store(MemoryObjectStore):
        def get(self, bucket: str, key: str, *, max_bytes: int) -> StoredObject:
            if len(body) > max_bytes:
                raise InvalidInputError("too large", code="TOO_LARGE")
            return StoredObject(ObjectFacts(key, '"e"', len(body)), bytes(bytearray(body)))

    ports, sha256 = _pipeline(Store(BUCKET)), digest(body)
    attempts = [
        CountedAttempt(f"t{number}", "a", DIRECTORY.manifest_name(f"t{number}", "a"), sha256, 0, 0)
        for number in range(SIDE_BY_SIDE)
    ]

    with suppress(JobRefusedError):
        for _done in counted_manifests(ports, DIRECTORY, attempts):
            pass


def _whole_job(_body: bytes) -> None:
    """SealJob and VerifyManifests of `FILES` files of `TASKS` tasks."""

    class Store(MemoryObjectStore):
        def get(self, bucket: str, key: str, *, max_bytes: int) -> StoredObject:
            task = key.removeprefix(DIRECTORY.tasks).split("/")[0]
            if not task.isdecimal():
                return super().get(bucket, key, max_bytes=max_bytes)
            made = encode_pendingset(_task(int(task)))
            return StoredObject(ObjectFacts(key, '"e"', len(made)), made)

        def list_uploads(
            self, bucket: str, prefix: str, *, after: str = ""
        ) -> Iterator[OpenUpload]:
            first = bisect_right(range(TASKS), after, key=lambda task: _task(task).files[-1].key)
            for task in range(first, TASKS):
                for file in _task(task).files:
                    if file.key > after:
                        yield OpenUpload(file.key, file.upload_id, AFTER_THE_JOB)

    pipeline = _pipeline(Store(BUCKET))
    ticket = sealed(pipeline, (_task(task) for task in range(TASKS)))
    if verify_manifests(pipeline, ticket).files != FILES:
        raise AssertionError("not all files were verified")


def _task(task: int) -> PendingSet:
    return task_of(task, FILES // TASKS)


def task_of(task: int, files: int) -> PendingSet:
    """The manifest of a task with so many files, small as Spark's are."""
    pending = tuple(
        PendingFile(
            bucket=BUCKET,
            key=f"sales/dt=2026-11-21/part-{task:06}-{number:06}-{JOB}.c000.snappy.parquet",
            upload_id=f"{task:06}{number:06}".ljust(100, "u"),
            etags=('"0123456789abcdef0123456789abcdef"',),
            length=9,
            rows=1,
        )
        for number in range(files)
    )
    return PendingSet(JOB, pending, str(task), "a")


def sealed(pipeline: Ports, tasks: Iterable[PendingSet]) -> Ticket:
    """A job that counts these tasks, after SealJob; their manifests are the caller's to put."""
    ticket = asked(pipeline.store, tasks)
    return replace(seal_job(pipeline, ticket), known=UNKNOWN)


def asked(store: ObjectStore, tasks: Iterable[PendingSet]) -> Ticket:
    """The ticket of a job that counts these tasks, before SealJob."""
    store.put(BUCKET, DIRECTORY.job, JOB_JSON.encode(JobSpec(JOB, DIRECTORY.destination)))
    request = encode_request(CommitRequest(JOB, tuple(map(_attempt, tasks))))
    store.put(BUCKET, DIRECTORY.request, request)
    return Ticket(JOB, BUCKET, DIRECTORY.prefix, execution="bench")


def _attempt(pending: PendingSet) -> CountedAttempt:
    name = DIRECTORY.manifest_name(pending.task_id, "a")
    sha256 = digest(encode_pendingset(pending))
    return CountedAttempt(pending.task_id, "a", name, sha256, len(pending.files), pending.bytes)


def _pipeline(store: MemoryObjectStore) -> Ports:
    return Ports(store, MemoryLedger(), SystemClock(), parallel=ThreadMap(MAX_POOL_CONNECTIONS))


READERS: Final[dict[str, Callable[[bytes], object]]] = {
    "pendingset": _decoded(
        lambda body: decode_pendingset(body, DIRECTORY, DIRECTORY.manifest_name("t0", "a"))
    ),
    "job": _decoded(lambda body: decode_job(body, DIRECTORY)),
    "request": _decoded(lambda body: decode_request(body, DIRECTORY)),
    "result": _decoded(lambda body: decode_result(body, DIRECTORY)),
    "success": success_job_id,
    "side by side": _side_by_side,
    "whole job": _whole_job,
}


def main() -> None:
    """Read, and print the peak RSS before and after, in bytes, and whether the document was taken.

    It is not inherited, as getrusage's is.
    """
    function, reader, name = sys.argv[1:]
    importlib.import_module(function)
    before = peak(os.getpid())
    body = Path(name).read_bytes()
    try:
        READERS[reader](body)
        taken = True
    except InvalidInputError:
        taken = False
    print(before, peak(os.getpid()), int(taken))


if __name__ == "__main__":
    main()
