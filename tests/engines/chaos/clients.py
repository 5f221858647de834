"""The programs: each plays one plan by the public API, and does about errors what programs do."""

from __future__ import annotations

import contextlib
import threading
from random import Random
from typing import Any, TypeVar

import s3commit
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.formats.documents import encode_request
from s3commit.core.formats.layout import JobDirectory, parse_destination
from s3commit.core.model.errors import (
    JobFailedError,
    OutcomeUnknownError,
    S3CommitError,
    TransientError,
)
from s3commit.core.model.job import CommitRequest, CountedAttempt
from s3commit.writer.environment import SystemEnvironment
from s3commit.writer.job import Job
from s3commit.writer.paths import file_key
from tests.engines.chaos.plans import Death, Extra, Kind, Plan, TaskPlan, new_id
from tests.engines.chaos.played import Played, Register

T = TypeVar("T")
TASK_TRIES = 4  # as Spark's spark.task.maxFailures
OPEN_TRIES = 5
COMMIT_SECONDS = 15.0  # then the client asks again


class Patient(SystemEnvironment):
    """Looks half as often for its result: two dozen clients look at one small server."""

    def sleep(self, seconds: float) -> None:
        """Wait, twice as long."""
        super().sleep(2 * seconds)


class Client:
    """One program. ``over`` is set when nobody answers any more."""

    def __init__(
        self, plan: Plan, register: Register, s3: Any, seed: int, over: threading.Event
    ) -> None:
        self.plan = plan
        self._register = register
        self._s3 = s3
        self._store = S3ObjectStore(s3)
        self._random = Random(f"client {seed} {plan.number}")
        self._over = over

    def play(self) -> None:
        """From beginning to end, or to the client's death."""
        played, job = self._open()
        if job is None:
            return
        try:
            self._write_and_ask(played, job)
        finally:
            played.done = True

    def _begin(self) -> Played:
        destination = parse_destination(f"s3://{self._register.bucket}/{self.plan.prefix}")
        played = Played(self.plan, JobDirectory(destination, new_id(self._random)))
        self._register.add(played)
        return played

    def _open(self) -> tuple[Played, Job | None]:
        """A program that could not set its job up begins another one."""
        for _ in range(OPEN_TRIES):
            played = self._begin()
            try:
                job = s3commit.open_job(
                    played.directory.destination.uri,
                    conflict=self.plan.conflict,
                    scope=self.plan.scope,
                    job_id=played.job_id,
                    store=self._store,
                    environment=Patient(),
                    **self.plan.options,
                )
            except S3CommitError as error:
                played.answer, played.code, played.done = "not opened", error.code, True
                continue
            played.answer = "opened"
            return played, job
        return played, None

    def _write_and_ask(self, played: Played, job: Job) -> None:
        death = self.plan.death
        if death is Death.OPENED:
            return
        counted = []
        for task in self.plan.tasks:
            if death is Death.WRITING and task is self.plan.tasks[-1]:
                self._killed(played, task)
                return
            made = self._task(played, job, task)
            if made is None:
                self._abort(played, job)
                return
            counted.append(made)
        if death is Death.WRITTEN:
            return
        if self.plan.kind is Kind.ABORT:
            self._abort(played, job)
            return
        played.asked = "commit"
        if death is Death.ASKED:
            self._ask(played, CommitRequest(played.job_id, tuple(counted)))
            return
        self._commit(played, job, counted)
        for task in self.plan.tasks:
            if task.extra is Extra.LATE:
                self._attempt(played, job, task, counts=False)

    def _task(self, played: Played, job: Job, task: TaskPlan) -> CountedAttempt | None:
        if task.extra is Extra.LOSES:
            self._attempt(played, job, task, counts=False)
        elif task.extra is Extra.KILLED:
            self._killed(played, task)
        for _ in range(TASK_TRIES):
            made = self._attempt(played, job, task, counts=True)
            if made is not None:
                return made
        return None

    def _attempt(
        self, played: Played, job: Job, task: TaskPlan, *, counts: bool
    ) -> CountedAttempt | None:
        """One try; None if it failed, which a scheduler answers with another one."""
        tried = job.task(task.task_id)
        files: dict[str, bytes] = {}
        try:
            for partition in task.partitions:
                name = f"{partition}part-{task.task_id}.csv"
                body = self._body(played, task, tried.attempt_id, partition)
                with tried.open(name) as file:
                    key = file_key(job.directory, name)
                    played.written.setdefault(key, set()).add(body)
                    file.write(body)
                files[key] = body
            made = tried.finish()
        except S3CommitError:
            with contextlib.suppress(S3CommitError):
                tried.abort()
            return None
        if counts:
            played.files.update(files)
        return made

    def _body(self, played: Played, task: TaskPlan, attempt: str, partition: str) -> bytes:
        line = f"{played.job_id} {played.name} task {task.task_id} {attempt} {partition}\n"
        return line.encode() * self._random.randint(1, 40)

    def _killed(self, played: Played, task: TaskPlan) -> None:
        """A task that dies while it writes leaves an upload behind, and nothing that names it."""
        name = f"part-{task.task_id}-{played.job_id}.csv"
        where = {
            "Bucket": self._register.bucket,
            "Key": played.directory.destination.prefix + task.partitions[0] + name,
        }
        try:
            upload = self._s3.create_multipart_upload(**where)["UploadId"]
            self._s3.upload_part(**where, UploadId=upload, PartNumber=1, Body=b"killed")
        except Exception:  # whatever it is: the task is dead
            return

    def _commit(self, played: Played, job: Job, counted: list[CountedAttempt]) -> None:
        """Ask, and ask again, until there is an answer."""
        while True:
            try:
                result = job.commit(counted, timeout=COMMIT_SECONDS)
            except JobFailedError as error:
                played.answer, played.code = "failed", error.code
            except (OutcomeUnknownError, TransientError) as error:
                played.answer, played.code = "unknown", error.code
                if not self._over.is_set():
                    continue
            except S3CommitError as error:
                played.answer, played.code = "refused", error.code
            else:
                played.answer = "already committed" if result.already_committed else "committed"
            return

    def _abort(self, played: Played, job: Job) -> None:
        played.asked = played.asked or "abort"
        for _ in range(OPEN_TRIES):
            try:
                job.abort("chaos")
            except TransientError:
                continue
            played.answer = "aborted"
            return
        played.answer = "abort not heard"

    def _ask(self, played: Played, request: CommitRequest) -> bool:
        body = encode_request(request)
        for _ in range(OPEN_TRIES):
            try:
                self._store.put(
                    played.directory.bucket, played.directory.request, body, if_absent=True
                )
            except TransientError:
                continue
            except S3CommitError:  # its own, of a try whose answer was lost
                pass
            return True
        return False
