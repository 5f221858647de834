"""What the tests of a job's end share: its attempts, and what the pipeline does meanwhile."""

import pytest

from s3commit.core.documents.request_json import (
    AbortRequest,
    CommitRequest,
    CountedAttempt,
    decode_request,
)
from s3commit.core.documents.result_json import RESULT_JSON
from s3commit.core.formats.strict_json import digest
from s3commit.core.model.errors import OutcomeUnknownError
from s3commit.core.model.outcome import Failure, Outcome
from s3commit.writer.job import Job
from tests.fakes.store import MemoryObjectStore
from tests.writer.support import BUCKET, JOB, result_of


def attempt(task_id: str = "0", attempt_id: str = "a", sha256: str = "0" * 64) -> CountedAttempt:
    manifest = f"_tasks/{task_id}/_{attempt_id}.pendingset"
    return CountedAttempt(task_id, attempt_id, manifest, sha256, 1, 3)


def end(store: MemoryObjectStore, job: Job, outcome: Outcome, error: Failure | None = None) -> None:
    """What the pipeline does when the job has ended."""
    body = RESULT_JSON.encode(result_of(job, outcome, error=error))
    store.put(BUCKET, job.directory.result, body)


def standing(store: MemoryObjectStore, job: Job) -> CommitRequest | AbortRequest:
    body = store.get(BUCKET, job.directory.request, max_bytes=1 << 20).body
    return decode_request(body, job.directory)


def commit_of(store: MemoryObjectStore, job: Job, *attempts: CountedAttempt) -> CommitRequest:
    of_job = store.get(BUCKET, job.directory.job, max_bytes=1 << 20).body
    return CommitRequest(JOB, attempts, job_sha256=digest(of_job))


def unknown(job: Job, seconds: float, *attempts: CountedAttempt) -> str:
    """Commit, and wait in vain for so long; what the program is told."""
    job.commit_timeout = seconds
    with pytest.raises(OutcomeUnknownError) as caught:
        job.commit(attempts or [attempt()])
    assert caught.value.__suppress_context__  # not that the object was not found
    return caught.value.message
