"""A client, a bucket and a ledger for the tests of the protocol, all in memory."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from s3commit.core.commit.note_arrivals import note_manifest
from s3commit.core.documents.job_json import JOB_JSON, JobSpec
from s3commit.core.documents.pendingset import PendingFile, PendingSet, encode_pendingset
from s3commit.core.documents.request_json import (
    AbortRequest,
    CommitRequest,
    CountedAttempt,
    encode_request,
)
from s3commit.core.documents.result_json import JobResult, decode_result
from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, JobDirectory, is_data
from s3commit.core.formats.strict_json import digest
from s3commit.core.jobs.healing import heal
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import OutcomeUnknownError
from s3commit.core.model.moments import seconds
from s3commit.core.model.outcome import Failure, Outcome
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.writer.requests import ASK_AGAIN_AFTER, Patience, wait_for_result
from tests.fakes.execution import run_execution
from tests.fakes.executions import MemoryExecutions
from tests.fakes.faults import Crash, FaultPlan
from tests.fakes.memory import ManualClock, MemoryLedger, MemoryObjectStore
from tests.writer.support import ScriptedEnvironment

BUCKET = "lake"
JOB = "0b6f6f0e-0000-4000-8000-000000000001"
OTHER_JOB = "0b6f6f0e-0000-4000-8000-000000000002"
NEIGHBOUR = "0b6f6f0e-0000-4000-8000-000000000003"

# What is no moment to a client's reader (RFC 3339, UTC), most of them by one member alone.
NO_MOMENTS = [
    *("", "soon", "2026-11-21", "2026-11-21T22:00:00", "2026-11-21T22:00:00+01:00"),
    *("2026-13-21T22:00:00Z", "2026-02-31T22:00:00Z", "2026-11-21T24:00:00Z"),
    *("2026-11-21T22:00:99Z", "2026-11-21T22:00:60Z", "2026-11-21T22:00:30.Z"),
    *("2026-11-21t22:00:30z", "2026-11-21T22:00:\u0663\u0660Z", "2026-11-21T22:00:30Z "),
    *("0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
]


def job_directory(job_id: str = JOB, prefix: str = "sales/") -> JobDirectory:
    """The directory of a job."""
    return JobDirectory(Destination(BUCKET, prefix), job_id)


REF = job_directory().ref


@dataclass
class World:
    """One bucket, one ledger, one clock, and a fault plan over both."""

    versioned: bool = False
    repeats_complete: bool = False
    opaque: bool = False
    plan: FaultPlan = field(default_factory=FaultPlan)

    def __post_init__(self) -> None:
        self.clock = ManualClock(step=0.001)
        self.store = MemoryObjectStore(
            BUCKET,
            versioned=self.versioned,
            repeats_complete=self.repeats_complete,
            opaque=self.opaque,
            clock=self.clock,
        )
        self.ledger = MemoryLedger(self.clock)
        self.ports = Ports(self.plan.wrap(self.store), self.plan.wrap(self.ledger), self.clock)
        self.late = MemoryExecutions(
            lambda directory, name: run_execution(self.unplanned, directory, execution=name)
        )
        self._opened: set[JobDirectory] = set()

    def copy(self) -> "World":
        """Another world that stands as this one does, without its faults."""
        other = World(self.versioned, self.repeats_complete, self.opaque)
        other.clock.advance(seconds(other.clock.now(), self.clock.now()))
        other.store.resume(self.store)
        other.ledger.resume(self.ledger)
        other._opened |= self._opened
        return other

    # What a client does, by the formats alone.

    def open(self, directory: JobDirectory, **spec: Any) -> None:
        self._opened.add(directory)
        said = JobSpec(directory.job_id, directory.destination, **spec)
        self.store.put(BUCKET, directory.job, JOB_JSON.encode(said), if_absent=True)

    def upload(
        self,
        directory: JobDirectory,
        name: str,
        body: bytes,
        *,
        task: str,
        attempt: str,
        **counts: Any,
    ) -> PendingFile:
        """An upload that is not completed; ``counts`` are a PendingFile's rows."""
        key = f"{directory.destination.prefix}{name}"
        metadata = {META_JOB: directory.job_id, META_TASK: task, META_ATTEMPT: attempt}
        upload_id = self.store.create_upload(
            BUCKET, key, metadata=metadata, content_type="application/octet-stream"
        )
        etag = self.store.upload_part(BUCKET, key, upload_id, 1, body)
        return PendingFile(
            bucket=BUCKET,
            key=key,
            upload_id=upload_id,
            etags=(etag,),
            length=len(body),
            job_id=directory.job_id,
            task_id=task,
            attempt_id=attempt,
            **{"rows": len(body), **counts},
        )

    def attempt(
        self,
        directory: JobDirectory,
        task: str,
        attempt: str = "a0",
        *,
        files: Mapping[str, bytes] | None = None,
        **counts: Any,
    ) -> CountedAttempt:
        """A task attempt that uploads its files and drops its manifest; its job is open by then."""
        self._open_first(directory)
        if files is None:
            files = {f"part-{task}-{directory.job_id}.parquet": f"{task} {attempt}".encode()}
        uploads = tuple(
            self.upload(directory, name, body, task=task, attempt=attempt, **counts)
            for name, body in files.items()
        )
        pending = PendingSet(directory.job_id, uploads, task, attempt)
        return self.drop(directory, pending, task, attempt)

    def drop(
        self,
        directory: JobDirectory,
        pending: PendingSet,
        task: str,
        attempt: str,
        body: bytes = b"",
    ) -> CountedAttempt:
        """The manifest of an attempt, or ``body`` in its place."""
        body = body or encode_pendingset(pending)
        name = directory.manifest_name(task, attempt)
        self.store.put(BUCKET, directory.prefix + name, body, if_absent=True)
        return CountedAttempt(task, attempt, name, digest(body), len(pending.files), pending.bytes)

    def _open_first(self, directory: JobDirectory) -> None:
        if directory not in self._opened and self.store.head(BUCKET, directory.job) is None:
            self.open(directory)

    def request(self, directory: JobDirectory, *attempts: CountedAttempt) -> None:
        self._open_first(directory)
        body = encode_request(CommitRequest(directory.job_id, attempts))
        self.store.put(BUCKET, directory.request, body, if_absent=True)

    def ask(
        self,
        directory: JobDirectory,
        *tasks: str,
        files: Mapping[str, bytes] | None = None,
        **spec: Any,
    ) -> None:
        """Have a new job with a file, or ``files``, of each task committed; the default is t0."""
        self.open(directory, **spec)
        counted = [self.attempt(directory, task, files=files) for task in tasks or ("t0",)]
        self.request(directory, *counted)

    def request_abort(self, directory: JobDirectory, reason: str = "driver gave up") -> None:
        self._open_first(directory)
        body = encode_request(AbortRequest(directory.job_id, reason))
        self.store.put(BUCKET, directory.request, body, if_absent=True)

    def ask_again(self, directory: JobDirectory) -> None:
        """Its client waits so long for the result that it puts the request again."""
        patience = Patience(ScriptedEnvironment(), ASK_AGAIN_AFTER + 1)
        with pytest.raises(OutcomeUnknownError):
            wait_for_result(self.store, directory, patience)

    @property
    def unplanned(self) -> Ports:
        """The ports of somebody to whom the plan of faults does not happen."""
        return Ports(self.store, self.ledger, self.clock)

    # What the pipeline does.

    def announce(self, directory: JobDirectory, attempt: CountedAttempt) -> bool:
        """The event of a manifest; whether it was noted. An execution that it starts runs."""
        key = directory.prefix + attempt.manifest
        return note_manifest(self.ports, self.late, BUCKET, key)

    def run(self, directory: JobDirectory, execution: str = "execution-1") -> list[str]:
        return run_execution(self.ports, directory, execution=execution)

    def dies(self, directory: JobDirectory, execution: str = "execution-1") -> None:
        """`run`, up to the crash that the plan has for it."""
        with pytest.raises(Crash):
            self.run(directory, execution)

    def heal(self) -> None:
        """What the executions do that wait for an empty ledger, without faults."""
        while pause := heal(self.unplanned, BUCKET):
            self.clock.advance(pause)

    def commit(self, directory: JobDirectory, **spec: Any) -> None:
        """A new job with one file, to its end."""
        self.ask(directory, **spec)
        self.run(directory)

    # What goes wrong.

    def delete_documents(self, directory: JobDirectory) -> None:
        """A client, which knows the job to be undone, or the sweep deletes them."""
        for key in self.all_keys(directory.prefix):
            self.store.delete(BUCKET, key)

    def lose_uploads(self, prefix: str, which: slice = slice(None)) -> None:
        """Somebody aborts the open uploads below a prefix: ``which`` of them, in their order."""
        for upload in list(self.store.list_uploads(BUCKET, prefix))[which]:
            self.store.abort_upload(BUCKET, upload.key, upload.upload_id)

    def lose_after_decision(self, prefix: str, which: slice = slice(None)) -> None:
        """`lose_uploads` once a job is decided, which has to be rolled back then."""
        self.plan.run_after("decide", lambda: self.lose_uploads(prefix, which))

    # What one sees.

    def visible(self, prefix: str = "sales/") -> dict[str, bytes]:
        """The data files below a prefix, by key."""
        found = {}
        for listed in self.store.list(BUCKET, prefix):
            if is_data(listed.key[len(prefix) :]):
                found[listed.key] = self.store.get(BUCKET, listed.key, max_bytes=10**9).body
        return found

    def all_keys(self, prefix: str = "") -> list[str]:
        """Every key below a prefix; the decisions of jobs only below their own."""
        keys = (listed.key for listed in self.store.list(BUCKET, prefix))
        return [key for key in keys if prefix or not key.endswith("/_decision.json")]

    def open_uploads(self, prefix: str = "") -> list[str]:
        return [upload.key for upload in self.store.list_uploads(BUCKET, prefix)]

    def result(self, directory: JobDirectory) -> JobResult:
        return decode_result(
            self.store.get(BUCKET, directory.result, max_bytes=10**6).body, directory
        )

    def failure(self, directory: JobDirectory) -> Failure:
        """What the result says of why the job was not committed."""
        error = self.result(directory).error
        assert error is not None
        return error

    def ended(self, directory: JobDirectory) -> tuple[Outcome, str]:
        """How the job has ended, and the code of why it was not committed."""
        result = self.result(directory)
        return result.outcome, result.error.code if result.error else ""

    def json(self, key: str) -> Any:
        return json.loads(self.store.get(BUCKET, key, max_bytes=10**6).body)

    def record(self, directory: JobDirectory) -> JobRecord:
        record = self.ledger.job(directory.ref)
        assert record is not None
        return record
