"""Drivers and task attempts, by the formats alone."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from s3commit.core.formats.documents import encode_job, encode_request
from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, JobDirectory
from s3commit.core.formats.manifest import digest, encode_pendingset
from s3commit.core.model.errors import PreconditionError, S3CommitError, TransientError
from s3commit.core.model.job import AbortRequest, CommitRequest, CountedAttempt
from s3commit.core.model.pending import PendingFile, PendingSet
from s3commit.core.ports.objects import ObjectStore
from s3commit.writer.paths import encode_note, note_key
from tests.engines.sim.model import Job
from tests.engines.sim.observer import body_of
from tests.engines.sim.scheduler import Scheduler
from tests.fakes.faults import Crash

BUCKET = "lake"

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
        self._set_up(job)
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
            word = encode_request(
                CommitRequest(directory.job_id, None if job.counts_all else chosen)
            )
        try:
            self.put_once(directory.request, word)
        except S3CommitError:
            # Spark calls abort() after a commit() that raised
            self.request_abort(job, "the commit raised")
        for _ in range(5):
            self.scheduler.sleep(60)
            if self.store.head(BUCKET, directory.result) is not None:
                return

    def _set_up(self, job: Job) -> None:
        """S3A's drivers put no document at all."""
        if job.of_s3a:
            return
        self.put_once(job.directory.job, encode_job(job.spec))

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
                files.append(self._write(job, task, attempt, job.prefix + name, len(files)))
            if job.hostile:
                key, upload_id, etag = self.rng.choice(self.prey)
                files.append(replace(files[0], key=key, upload_id=upload_id, etags=(etag,)))
            if job.of_s3a:
                return self._commit_task(job, task, attempt, files)
            return self._finish(job.directory, task, attempt, tuple(files))
        except S3CommitError:
            foreign = {upload_id for _, upload_id, _ in self.prey}
            for file in files:
                if file.upload_id not in foreign:
                    abort = partial(self.store.abort_upload, BUCKET, file.key, file.upload_id)
                    self.patiently(abort)
            raise

    def _write(self, job: Job, task: str, attempt: str, key: str, number: int) -> PendingFile:
        directory, job_id = job.directory, job.directory.job_id
        metadata = {META_JOB: job_id, META_TASK: task, META_ATTEMPT: attempt}
        create = partial(
            self.store.create_upload,
            BUCKET,
            key,
            metadata={} if job.of_s3a else metadata,
            content_type="x",
        )
        upload_id = self.patiently(create)
        if job.exact and not job.of_s3a:
            self.put_once(note_key(directory, task, attempt, number), encode_note(key, upload_id))
        body = body_of(job.name, task, attempt, key)
        etag = self.patiently(partial(self.store.upload_part, BUCKET, key, upload_id, 1, body))
        ids = ("", "") if job.of_s3a else (task, attempt)
        return PendingFile(BUCKET, key, upload_id, (etag,), len(body), job_id, *ids, rows=len(body))

    def _finish(
        self, directory: JobDirectory, task: str, attempt: str, files: tuple[PendingFile, ...]
    ) -> CountedAttempt:
        pending = PendingSet(directory.job_id, files, task, attempt)
        body = encode_pendingset(pending)
        name = directory.manifest_name(task, attempt)
        self.put_once(directory.prefix + name, body)
        return CountedAttempt(task, attempt, name, digest(body), len(files), pending.bytes)

    def _commit_task(
        self, job: Job, task: str, attempt: str, files: list[PendingFile]
    ) -> CountedAttempt:
        """As Hadoop's magic committer: a ``.pending`` file each, then one attempt's manifest."""
        directory = job.directory
        self._note_pending(job, attempt, files)
        if job.committers.setdefault(task, attempt) != attempt:
            raise PreconditionError("the driver lets another attempt commit")
        body = encode_pendingset(PendingSet(directory.job_id, tuple(files)))
        self.put_once(f"{directory.s3a}00/{task}.pendingset", body)
        return CountedAttempt(task, "00", f"job-{directory.job_id}/00/{task}", "", 0, 0)

    def _note_pending(self, job: Job, attempt: str, files: list[PendingFile]) -> None:
        for file in files:
            body = encode_pendingset(PendingSet(job.directory.job_id, (file,)))
            single = json.dumps(json.loads(body)["commits"][0]).encode()
            base = f"{job.directory.s3a}00/tasks/{attempt}/__base/"
            self.put_once(f"{base}{file.key[len(job.prefix) :]}.pending", single)

    def retry_late(self, job: Job, task: str) -> None:
        """Two tries of a task of S3A's that wake up after the end; the second one overwrites."""
        for _ in range(20):
            if not job.over:
                self.scheduler.sleep(600)
        process = self.scheduler.current
        if not job.over or process is None:
            return
        for attempt in ("late0", "late1"):
            process.about = (task, attempt)
            file = self._write(job, task, attempt, f"{job.prefix}part-{task}-late", 0)
            self._note_pending(job, attempt, [file])
            body = encode_pendingset(PendingSet(job.directory.job_id, (file,)))
            manifest = f"{job.directory.s3a}00/{task}.pendingset"
            self.scheduler.wait_until_shown(manifest, self.store.put(BUCKET, manifest, body))

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
