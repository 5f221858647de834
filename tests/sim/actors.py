"""Who acts: drivers and task attempts by the formats alone; handlers and executions as deployed."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from s3commit.core.documents import encode_job, encode_request
from s3commit.core.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NotFoundError,
    PreconditionError,
    S3CommitError,
    TransientError,
)
from s3commit.core.layout import META_ATTEMPT, META_JOB, META_TASK
from s3commit.core.manifest import digest, encode_pendingset
from s3commit.core.model import (
    AbortRequest,
    CommitRequest,
    CountedAttempt,
    Failure,
    PendingFile,
    PendingSet,
)
from s3commit.core.plan import MAX_PLAN_BYTES, decode_plan
from s3commit.core.ports import LostRaceError, OpenUpload
from s3commit.core.protocol.complete import complete_unit
from s3commit.core.protocol.ingest import judge_arrival, note_arrivals
from s3commit.core.protocol.pipeline import Pipeline, beside_twins
from s3commit.core.ticket import Ticket, UnitResult
from s3commit.testing.execution import REFUSING, RETRIES, ROUTES, STEPS
from s3commit.testing.faults import Crash
from s3commit.testing.memory import MemoryObjectStore
from s3commit.writer.paths import encode_note, note_key
from tests.sim.faults import Faults
from tests.sim.model import File, Job
from tests.sim.observer import body_of
from tests.sim.scheduler import Process, Scheduler, Violation

BUCKET = "lake"
WAIT_SECONDS = 300.0  # of AcquireDestination; the numbers of the protocol are scaled to it

T = TypeVar("T")


@dataclass
class Actors:
    """Starts processes for the jobs of one run."""

    scheduler: Scheduler
    faults: Faults
    pipeline: Pipeline
    rng: random.Random
    raw: MemoryObjectStore
    files: dict[str, File]
    closed: Callable[[Job, int], None]
    prey: list[tuple[str, str, str]] = field(default_factory=list)
    executions: set[str] = field(default_factory=set)
    entered: dict[str, int] = field(default_factory=dict)

    # Clients.

    def driver(self, job: Job, tasks: list[list[str]], *, gives_up: bool) -> None:
        """Set the job up, run its tasks, and say the word; then wait for the result."""
        place = job.place
        store = self.pipeline.store
        body = encode_job(job.spec)
        self._patiently(lambda: self._put_once(place.job, body))
        counted: dict[str, CountedAttempt] = {}
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
        if gives_up or len(counted) < len(tasks):
            word = encode_request(AbortRequest(place.job_id, "the driver gave up"))
        else:
            chosen = None if job.counts_all else tuple(counted[task] for task in sorted(counted))
            word = encode_request(CommitRequest(place.job_id, chosen))
        try:
            self._patiently(lambda: self._put_once(place.request, word))
        except S3CommitError:
            # Spark calls abort() after a commit() that raised
            word = encode_request(AbortRequest(place.job_id, "the commit raised"))
            self._patiently(lambda: self._put_once(place.request, word))
        for _ in range(5):
            self.scheduler.sleep(60)
            if store.head(BUCKET, place.result) is not None:
                return

    def _task(
        self, job: Job, task: str, names: list[str], counted: dict[str, CountedAttempt]
    ) -> None:
        """Attempts of one task, one after the other or two at once, until one has finished."""
        for number in range(3):
            together = 2 if self.rng.random() < 0.25 else 1
            tries = [
                self.scheduler.spawn(
                    f"{job.name}:{task}.a{number}{letter}",
                    partial(self._attempt, job, task, f"a{number}{letter}", names),
                    role="task",
                    job=job.name,
                )
                for letter in "xy"[:together]
            ]
            waited_for = self.rng.choice(tries)  # the other one goes on, a zombie
            self.scheduler.join(waited_for)
            if waited_for.error is None:
                if waited_for.result is not None:
                    counted[task] = waited_for.result
                return

    def _attempt(self, job: Job, task: str, attempt: str, names: list[str]) -> CountedAttempt:
        place, store = job.place, self.pipeline.store
        files: list[PendingFile] = []
        try:
            for name in names:
                key = job.prefix + name
                metadata = {META_JOB: place.job_id, META_TASK: task, META_ATTEMPT: attempt}
                create = partial(
                    store.create_upload, BUCKET, key, metadata=metadata, content_type="x"
                )
                upload_id = self._patiently(create)
                if job.exact:
                    note = note_key(place, task, attempt, len(files))
                    self._patiently(partial(self._put_once, note, encode_note(key, upload_id)))
                body = body_of(job.name, task, attempt, key)
                etag = self._patiently(partial(store.upload_part, BUCKET, key, upload_id, 1, body))
                files.append(
                    PendingFile(
                        BUCKET, key, upload_id, (etag,), len(body), place.job_id, task, attempt,
                        rows=len(body),
                    )
                )  # fmt: skip
            if job.hostile:
                key, upload_id, etag = self.rng.choice(self.prey)
                files.append(replace(files[0], key=key, upload_id=upload_id, etags=(etag,)))
            pending = PendingSet(place.job_id, tuple(files), task, attempt)
            body = encode_pendingset(pending)
            name = place.manifest_name(task, attempt)
            self._patiently(lambda: self._put_once(place.prefix + name, body))
            return CountedAttempt(task, attempt, name, digest(body), len(files), pending.bytes)
        except S3CommitError:
            for file in files[: len(names)]:
                self._patiently(partial(store.abort_upload, BUCKET, file.key, file.upload_id))
            raise

    def _put_once(self, key: str, body: bytes) -> None:
        """A conditional put; whoever loses reads what stands there."""
        try:
            self.pipeline.store.put(BUCKET, key, body, if_absent=True)
        except PreconditionError:
            if self.pipeline.store.get(BUCKET, key, max_bytes=10**9).body != body:
                raise

    def _patiently(self, call: Callable[[], T]) -> T:
        for _ in range(3):
            try:
                return call()
            except TransientError:
                self.scheduler.sleep(1)
        return call()

    # The pipeline.

    def ingest(self, key: str) -> None:
        """The handler of a manifest's event; SQS brings the event again if it fails."""
        for _ in range(4):
            try:
                arrival = judge_arrival(self.pipeline, BUCKET, key)
                note_arrivals(self.pipeline, [arrival])
                return
            except InvalidInputError:
                return  # to the dead letter queue
            except TransientError:
                self.scheduler.sleep(30)

    def dispatch(self, job: Job) -> None:
        """The handler of a request's event: an execution by the job's name, once."""
        name = f"{job.name}:run"
        if name not in self.executions:
            self.execute(job, name)

    def execute(self, job: Job, name: str) -> Process:
        """Start an execution."""
        self.executions.add(name)
        return self.scheduler.spawn(
            name, partial(self._execution, job, name), role="execution", job=job.name
        )

    def _execution(self, job: Job, execution: str) -> str:
        ticket = Ticket(job.place.job_id, BUCKET, job.place.prefix, execution=execution)
        name = "SealJob"
        while name:
            self.entered[name] = self.entered.get(name, 0) + 1
            try:
                ticket = self._tried(job, name, ticket)
                following = ROUTES[name](ticket)
            except LostRaceError:
                return "Superseded"
            except (JobRefusedError, InvalidInputError) as error:
                if name not in REFUSING:
                    raise Violation("progress", f"{execution} failed at {name}: {error}") from error
                ticket = replace(ticket, refusal=Failure(error.code, error.message))
                following = "AbortJob"
            if self.faults.chance(0.02):
                self.faults.strike("execution killed")
                return "killed"
            if following == name:
                self.scheduler.sleep(WAIT_SECONDS if name == "AcquireDestination" else 5)
            name = following
        return "ended"

    def _tried(self, job: Job, name: str, ticket: Ticket) -> Ticket:
        """A step, tried again as the machine does; a try that is given up goes on unheard."""
        for number in range(RETRIES):
            label = f"{ticket.execution}/{name}" + (f"#{number + 1}" if number else "")
            body = (
                partial(self._map, job, ticket, label)
                if name == "CompleteUploads"
                else partial(self._step, name, ticket)
            )
            begun = self.scheduler.steps
            child = self.scheduler.spawn(label, body, role="pipeline", job=job.name)
            if self.faults.chance(0.03):
                self.faults.strike("given up")
                self.scheduler.sleep(self.faults.stall())
                continue
            self.scheduler.join(child)
            if child.error is None:
                if name == "TidyUp":
                    self.closed(job, begun)
                result: Ticket = child.result
                return result
            if not isinstance(child.error, TransientError | Crash):
                raise child.error
            if number == RETRIES - 1:
                raise child.error
            self.scheduler.sleep(2.0 * 2**number)
        raise TransientError("every try was given up")

    def _step(self, name: str, ticket: Ticket) -> Ticket:
        with beside_twins(ticket):
            return STEPS[name](self.pipeline, ticket)

    def _map(self, job: Job, ticket: Ticket, label: str) -> Ticket:
        """The Map: a worker a unit, all at once, each tried again."""
        try:
            stored = self.pipeline.store.get(BUCKET, ticket.plan, max_bytes=MAX_PLAN_BYTES)
            units = decode_plan(stored.body)
        except (NotFoundError, AccessError, InvalidInputError):
            return ticket
        workers = [
            self.scheduler.spawn(
                f"{label}/{unit.number}",
                partial(self._worker, partial(complete_unit, self.pipeline, ticket, unit)),
                role="pipeline",
                job=job.name,
            )
            for unit in units
        ]
        self.scheduler.join(*workers)
        for worker in workers:
            if worker.error is not None:
                raise worker.error
        return replace(ticket, completed=tuple(worker.result for worker in workers))

    def _worker(self, complete: Callable[[], UnitResult]) -> UnitResult:
        for _ in range(4):
            try:
                return complete()
            except TransientError:
                self.scheduler.sleep(1)
        return complete()

    # Others.

    def ask_abort(self, job: Job) -> None:
        """What the sweep says of a job that shows no sign of life."""
        word = encode_request(AbortRequest(job.place.job_id, "no sign of life"))
        with suppress(PreconditionError):  # the driver was faster
            self._patiently(lambda: self._put_once(job.place.request, word))

    def lose_upload(self, job: Job, pick: Callable[[list[Any]], Any]) -> None:
        """A lifecycle rule, or a person, aborts an upload of the job."""
        found = list(self.pipeline.store.list_uploads(BUCKET, job.prefix))
        mine = [upload for upload in found if self._owner(upload) == job.name]
        if mine:
            upload = pick(mine)
            job.sabotaged.add("upload")
            self.pipeline.store.abort_upload(BUCKET, upload.key, upload.upload_id)

    def spoil_manifest(self, job: Job, pick: Callable[[list[Any]], Any]) -> None:
        """Someone deletes a manifest, or writes another one over it.

        After the decision only together with an upload that it names, so that the job can not
        be finished: one whose files are all visible, and whose manifest is gone, waits for a
        person. Not with exact names, of which nothing but the manifest tells.
        """
        self.scheduler.sleep(0.001 * pick(list(range(20))))
        self.scheduler.pause()
        if job.exact:
            return
        found = [one.key for one in self.raw.list(BUCKET, job.place.tasks)]
        if job.decided:
            uploads = self.raw.list_uploads(BUCKET, job.prefix)
            lost = [one for one in uploads if self._counts(job, one)]
            if lost:
                file = self.files[pick(lost).upload_id]
                self.raw.abort_upload(BUCKET, file.key, file.upload_id)
                found = [job.place.manifest(file.task, file.attempt)]
            else:
                found = []
        if found:
            job.sabotaged.add("manifest")
            if pick([True, False]):
                self.raw.delete(BUCKET, pick(found))
            else:
                self.raw.put(BUCKET, pick(found), b'{"version":3,"commits":[]}')

    def _owner(self, upload: OpenUpload) -> str:
        file = self.files.get(upload.upload_id)
        return file.job if file else ""

    def _counts(self, job: Job, upload: OpenUpload) -> bool:
        return self.files.get(upload.upload_id) in job.planned.values()
