"""Jobs of one idempotency key are found by the beginning of their ids."""

from __future__ import annotations

from s3commit.core.formats.documents import encode_request
from s3commit.core.formats.layout import check_job_id
from s3commit.core.model.job import AbortRequest
from s3commit.spark.earlier import unanswered
from s3commit.writer.environment import SystemEnvironment
from s3commit.writer.job import Job, new_job_id, open_job
from tests.fakes.memory import MemoryObjectStore

BUCKET, KEY = "bucket", "sales 2026-11-23"


def opened(store: MemoryObjectStore, key: str | None = KEY) -> Job:
    return open_job(f"s3://{BUCKET}/t/", store=store, idempotency_key=key)


def test_ids_of_a_key_begin_alike_and_are_ids() -> None:
    environment = SystemEnvironment()
    ids = {check_job_id(new_job_id(environment, KEY)) for _ in range(100)}
    assert (len(ids), len({one[:8] for one in ids})) == (100, 1)
    others = {new_job_id(environment, key)[:8] for key in ("another", None)}
    assert not others & {one[:8] for one in ids}


def test_a_job_that_was_asked_and_not_answered_is_found_until_it_is() -> None:
    store = MemoryObjectStore(BUCKET)
    jobs = [opened(store) for _ in range(3)]
    other = opened(store, "another")

    def found() -> set[str]:
        return {one.job_id for one in unanswered(store, other.spec.destination, KEY)}

    assert found() == set()
    for job in (jobs[0], jobs[1], other):
        request = encode_request(AbortRequest(job.job_id, "x"))
        store.put(BUCKET, job.directory.request, request)
    assert found() == {jobs[0].job_id, jobs[1].job_id}
    store.put(BUCKET, jobs[1].directory.result, b"{}")
    assert found() == {jobs[0].job_id}
    store.delete(BUCKET, jobs[0].directory.job)  # whose it is can't be told
    assert found() == set()
