"""Drivers and task attempts, by the formats alone."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from s3commit.core.documents.job_json import JOB_JSON
from s3commit.core.documents.pendingset import PendingFile, PendingSet, encode_pendingset
from s3commit.core.documents.request_json import (
    AbortRequest,
    CommitRequest,
    CountedAttempt,
    encode_request,
)
from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, JobDirectory
from s3commit.core.formats.strict_json import digest
from s3commit.core.model.errors import PreconditionError, S3CommitError, TransientError
from s3commit.core.ports.objects import ObjectStore, PartSource
from tests.engines.sim.model import Job
from tests.engines.sim.observer import body_of
from tests.engines.sim.scheduler import Scheduler
from tests.fakes.faults import Crash

BUCKET = "lake"
ATTEMPTS = [f"a{number}{letter}" for number in range(3) for letter in "xy"]  # of a task

T = TypeVar("T")
Counted = dict[str, CountedAttempt]


@dataclass
class Clients:
    """Starts the processes of the clients of one run."""

    scheduler: Scheduler
    store: ObjectStore
    rng: random.Random
    prey: list[tuple[str, str, str]] = field(default_factory=list)

    def driver(self, job: Job, tasks: list[list[str]], *, gives_up: bool, dies: bool) -> None:
        """Set the job up, run its tasks, and say the word; then wait for the result."""
        directory = job.directory
        self.put_once(directory.job, JOB_JSON.encode(job.spec))
        counted: Counted = {}
        attempts = [
            self.scheduler.spawn(
                f"{job.name}:t{number}",
                partial(self._task, job, f"t{number}", names, counted),
                role="task",
                job=job.name,
            )
            for number, names in enumerate(tasks)
        ]
        self.scheduler.join(*attempts)
        if dies:
            raise Crash("the driver's machine is gone")
        if gives_up or len(counted) < len(tasks):
            word = encode_request(AbortRequest(directory.job_id, "the driver gave up"))
        else:
            chosen = tuple(counted[task] for task in sorted(counted))
            word = encode_request(CommitRequest(directory.job_id, chosen))
        try:
            self.put_once(directory.request, word)
        except S3CommitError:
            # Spark calls abort() after a commit() that raised
            self.request_abort(job, "the commit raised")
        for _ in range(5):
            self.scheduler.sleep(60)
            if self.store.head(BUCKET, directory.result) is not None:
                return

    def request_abort(self, job: Job, reason: str) -> None:
        """The abort of a driver, or of a person; whoever spoke first is not spoken over."""
        with suppress(PreconditionError):
            word = encode_request(AbortRequest(job.directory.job_id, reason))
            self.put_once(job.directory.request, word)

    def _task(self, job: Job, task: str, names: list[str], counted: Counted) -> None:
        """Attempts of one task, one after the other or two at once, until one has finished."""
        for number in range(3):
            together = 2 if self.rng.random() < 0.25 else 1
            tries = []
            for letter in "xy"[:together]:
                attempt = f"a{number}{letter}"
                one = self.scheduler.spawn(
                    f"{job.name}:{task}.{attempt}",
                    partial(self._attempt, job, task, attempt, names),
                    role="task",
                    job=job.name,
                )
                one.about = (task, attempt)
                tries.append(one)
            waited_for = self.rng.choice(tries)  # the other one goes on, a zombie
            self.scheduler.join(waited_for)
            if waited_for.error is None:
                if waited_for.result:
                    counted[task] = waited_for.result
                return

    def _attempt(self, job: Job, task: str, attempt: str, names: list[str]) -> CountedAttempt:
        files: list[PendingFile] = []
        pause = self.rng.choice([2000.0, 3500.0, 7000.0]) if self.rng.random() < 0.03 else 0.0
        try:
            for name in names:
                if pause:
                    self.scheduler.sleep(pause)  # it computes, and shows no sign of life
                files.append(self._write(job, task, attempt, job.prefix + name))
            if job.hostile:
                key, upload_id, etag = self.rng.choice(self.prey)
                files.append(replace(files[0], key=key, upload_id=upload_id, etags=(etag,)))
            return self._finish(job.directory, task, attempt, tuple(files))
        except S3CommitError:
            foreign = {upload_id for _, upload_id, _ in self.prey}
            for file in files:
                if file.upload_id not in foreign:
                    abort = partial(self.store.abort_upload, BUCKET, file.key, file.upload_id)
                    self.patiently(abort)
            raise

    def _write(self, job: Job, task: str, attempt: str, key: str) -> PendingFile:
        names = (job.directory.job_id, task, attempt)
        metadata = dict(zip((META_JOB, META_TASK, META_ATTEMPT), names, strict=True))
        create = partial(self.store.create_upload, BUCKET, key, metadata=metadata, content_type="x")
        upload_id = self.patiently(create)
        copy, origin = job.copies.get(key), ""
        body = copy.body if copy else body_of(job.name, task, attempt, key)
        send = partial(self.store.upload_part, BUCKET, key, upload_id, 1, body)
        if copy:
            source, origin = PartSource(copy.key, copy.version_id, 0, len(body)), copy.origin
            send = partial(self.store.copy_part, BUCKET, key, upload_id, 1, source)
        etag = self.patiently(send)
        return PendingFile(
            BUCKET, key, upload_id, (etag,), len(body), *names, rows=len(body), origin=origin
        )

    def _finish(
        self, directory: JobDirectory, task: str, attempt: str, files: tuple[PendingFile, ...]
    ) -> CountedAttempt:
        pending = PendingSet(directory.job_id, files, task, attempt)
        body = encode_pendingset(pending)
        name = directory.manifest_name(task, attempt)
        self.put_once(directory.prefix + name, body)
        return CountedAttempt(task, attempt, name, digest(body), len(files), pending.bytes)

    def put_once(self, key: str, body: bytes) -> None:
        """A conditional put; whoever loses reads what stands there."""

        def put() -> None:
            try:
                self.store.put(BUCKET, key, body, if_absent=True)
            except PreconditionError:
                if self.store.get(BUCKET, key, max_bytes=10**9).body != body:
                    raise

        self.patiently(put)

    def patiently(self, call: Callable[[], T]) -> T:
        """As the client libraries try again."""
        for _ in range(3):
            try:
                return call()
            except TransientError:
                self.scheduler.sleep(1)
        return call()
