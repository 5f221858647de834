"""Partitions that lie outside the destination: documents, keys and manifests, each in its place."""

from __future__ import annotations

import pickle

import pytest

from s3commit.core.formats.documents import decode_job, decode_main, decode_request, encode_result
from s3commit.core.formats.manifest import decode_pendingset
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import CommitRequest, CountedAttempt, JobResult, Names, Outcome
from s3commit.writer.job import Job, open_job
from s3commit.writer.requests import Patience, request_commit
from tests.fakes.faults import FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.writer.support import BUCKET, DESTINATION, JOB, ScriptedEnvironment, open_uploads

THERE = "elsewhere/dt1/"
LOCATIONS = {"dt=1": f"s3://{BUCKET}/{THERE}"}


def opened(store: MemoryObjectStore, plan: FaultPlan, names: Names = Names.UNIQUE) -> Job:
    return open_job(
        DESTINATION,
        locations=LOCATIONS,
        names=names,
        store=plan.wrap(store),
        environment=ScriptedEnvironment(),
        job_id=JOB,
    )


def entries(counted: CountedAttempt | None) -> list[CountedAttempt]:
    assert counted is not None
    return [counted, *counted.elsewhere]


def test_the_job_json_of_a_location_comes_first_and_names_the_main_one(
    store: MemoryObjectStore, plan: FaultPlan
) -> None:
    job = opened(store, plan)
    there = job.directory.at(THERE)
    assert [call.key for call in plan.calls if call.verb == "put"] == [
        there.job,
        job.directory.job,
    ]
    assert decode_main(store.get(BUCKET, there.job, max_bytes=10**6).body, there) == job.directory
    body = store.get(BUCKET, job.directory.job, max_bytes=10**6).body
    assert decode_main(body, job.directory) is None
    assert decode_job(body, job.directory).locations == {"dt=1/": THERE}
    with pytest.raises(InvalidInputError, match="is a location of the job at"):
        decode_job(store.get(BUCKET, there.job, max_bytes=10**6).body, there)


@pytest.mark.parametrize("names", Names)
def test_i7_each_place_has_a_manifest_of_its_own_files(
    store: MemoryObjectStore, plan: FaultPlan, names: Names
) -> None:
    job = pickle.loads(pickle.dumps(opened(store, plan, names)))
    job.connect(plan.wrap(store))
    with job.task("0", "a") as task:
        for name in ("dt=1/x.csv", "dt=1/h=2/x.csv", "dt=10/x.csv", "x.csv"):
            with task.open(name, rows=1) as file:
                file.write(b"1")
    counted = {one.location: one for one in entries(task.counted)}
    assert {where: one.files for where, one in counted.items()} == {"": 2, THERE: 2}
    tail = f"-{JOB}.csv" if names is Names.UNIQUE else ".csv"
    wanted = {
        "": [f"t/dt=10/x{tail}", f"t/x{tail}"],
        THERE: [f"{THERE}x{tail}", f"{THERE}h=2/x{tail}"],
    }
    for where, one in counted.items():
        directory = job.directory.at(where) if where else job.directory
        body = store.get(BUCKET, directory.prefix + one.manifest, max_bytes=10**6).body
        found = decode_pendingset(body, directory, names=names)
        assert [file.key for file in found.files] == wanted[where]
        notes = [found.key for found in store.list(BUCKET, f"{directory.tasks}0/a/")]
        assert len(notes) == (2 if names is Names.EXACT else 0)


def test_i3_the_request_lists_every_manifest_of_the_attempt(
    store: MemoryObjectStore, plan: FaultPlan
) -> None:
    job = opened(store, plan)
    with job.task("0", "a") as task, task.open("dt=1/x.csv") as there, task.open("x.csv") as here:
        there.write(b"1")
        here.write(b"22")
    plan.run_after("put", lambda: end(store, job))
    assert job.commit([task.counted]).outcome is Outcome.COMMITTED
    body = store.get(BUCKET, job.directory.request, max_bytes=10**6).body
    request = decode_request(body, job.directory)
    assert isinstance(request, CommitRequest)
    assert request.attempts is not None
    assert [(one.location, one.bytes) for one in request.attempts] == [("", 2), (THERE, 1)]
    patience = Patience(job.environment, 1)
    request_commit(store, job.directory, request, patience)  # the same once more: nothing changes


def end(store: MemoryObjectStore, job: Job) -> None:
    result = JobResult(JOB, Outcome.COMMITTED, None, 2, 3, None, "2026Z", "2026Z", "")
    store.put(BUCKET, job.directory.result, encode_result(result))


def test_a_task_with_files_at_a_location_alone_counts_them(
    store: MemoryObjectStore, plan: FaultPlan
) -> None:
    job = opened(store, plan)
    with job.task("0") as task, task.open("dt=1/x.csv") as file:
        file.write(b"1")
    assert [one.location for one in entries(task.counted)] == [THERE]


def test_i4_an_aborted_task_leaves_no_upload_at_any_place(
    store: MemoryObjectStore, plan: FaultPlan
) -> None:
    job = opened(store, plan)
    task = job.task("0")
    for name in ("dt=1/x.csv", "x.csv"):
        with task.open(name) as file:
            file.write(b"1")
    assert task.abort() == []
    assert open_uploads(store) == []


@pytest.mark.parametrize("path", ["s3://lake/elsewhere/dt1/x.csv", "/elsewhere/x.csv"])
def test_an_absolute_path_is_refused_with_the_way_that_works(
    store: MemoryObjectStore, plan: FaultPlan, path: str
) -> None:
    task = opened(store, plan).task("0")
    with pytest.raises(
        InvalidInputError, match=r"relative to the destination.*the job's locations"
    ):
        task.open(path)


def test_another_bucket_is_refused_before_anything_is_written(
    store: MemoryObjectStore, plan: FaultPlan
) -> None:
    with pytest.raises(InvalidInputError, match="one job writes to one bucket") as refused:
        open_job(DESTINATION, locations={"dt=1": "s3://other/x/"}, store=plan.wrap(store))
    assert refused.value.code == "BAD_LOCATION"
    assert plan.calls == []


def test_a_job_id_that_is_taken_at_a_location_is_refused_with_the_place(
    store: MemoryObjectStore, plan: FaultPlan
) -> None:
    open_job(f"s3://{BUCKET}/{THERE}", store=store, job_id=JOB)
    with pytest.raises(InvalidInputError, match=f"taken at s3://{BUCKET}/{THERE}") as refused:
        opened(store, plan)
    assert refused.value.code == "JOB_EXISTS"
    assert not list(store.list(BUCKET, "t/"))
