"""Jobs of S3A's own committers, from what they were recorded to leave (tests/golden/s3a)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from s3commit.core.commit.ingest_pendingsets import judge_arrival, note_arrivals
from s3commit.core.formats.documents import encode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import InvalidInputError, PreconditionError
from s3commit.core.model.job import CommitRequest, Names, Outcome
from s3commit.core.ownership.other_jobs import ASKED_ONE_BY_ONE, OtherJobs
from tests.core.world import BUCKET, NEIGHBOUR, OTHER_JOB, World, job_directory
from tests.golden.s3a.replay import Recorded, read, renewed, replay

FINISHED = ["plain", "partitioned", "in_memory", "halfway"]


def commit(world: World, directory: JobDirectory) -> None:
    body = encode_request(CommitRequest(directory.job_id, None))
    world.store.put(BUCKET, directory.request, body, if_absent=True)


def dead_job(case: str = "plain") -> tuple[World, Recorded, JobDirectory]:
    world, recorded = World(), read(case)
    replay(world.store, recorded)
    return world, recorded, recorded.directory


def data(world: World) -> dict[str, bytes]:
    """What is visible, without the marker that S3A makes of the destination itself."""
    return {key: body for key, body in world.visible().items() if not key.endswith("/")}


def outcome(world: World, directory: JobDirectory) -> tuple[Outcome, str | None]:
    result = world.result(directory)
    return result.outcome, result.error.code if result.error else None


def all_gone(world: World, directory: JobDirectory) -> bool:
    """Nothing is left of the job but what stays for the retention time."""
    stays = {directory.prefix, directory.request, directory.result}
    return set(world.all_keys(directory.prefix)) <= stays and not world.open_uploads()


@pytest.mark.parametrize("case", FINISHED)
def test_i2_a_dead_drivers_job_is_committed_whole(case: str) -> None:
    world, recorded, directory = dead_job(case)
    commit(world, directory)
    world.run(directory)
    assert outcome(world, directory) == (Outcome.COMMITTED, None)
    assert data(world) == recorded.files != {}
    assert world.result(directory).files == len(recorded.files)
    assert world.json(directory.success)["jobId"] == directory.job_id
    assert all_gone(world, directory)
    assert world.record(directory).names is Names.EXACT


@pytest.mark.parametrize("case", [*FINISHED, "task_running"])
def test_i2_i4_a_dead_drivers_job_is_aborted_whole(case: str) -> None:
    world, recorded, directory = dead_job(case)
    world.request_abort(directory)
    world.run(directory)
    assert outcome(world, directory) == (Outcome.ABORTED, "ABORTED_BY_CLIENT")
    # What the driver had completed before it died stays: of an undecided job nothing visible goes.
    assert data(world).items() <= recorded.files.items()
    assert (data(world) != {}) is (case == "halfway")
    nameless = [key for key, part in recorded.uploads.items() if part is None]
    assert world.open_uploads() == nameless  # no manifest, no .pending: see rescue
    assert set(world.all_keys(directory.prefix)) <= {
        directory.prefix,
        directory.request,
        directory.result,
    }


def test_i4_what_an_uncommitted_attempt_wrote_is_aborted_by_its_pending_files() -> None:
    world, recorded, directory = dead_job("task_running")
    commit(world, directory)
    world.run(directory)
    assert outcome(world, directory) == (Outcome.COMMITTED, None)
    assert data(world) == recorded.files
    assert not any("part-00002" in key for key in recorded.files)
    assert [key for key in world.open_uploads() if not key.endswith("c002.snappy.parquet")] == []


def test_manifests_are_noted_as_they_arrive() -> None:
    world, recorded, directory = dead_job()
    arrivals = [judge_arrival(world.ports, BUCKET, key) for key in recorded.manifests]
    assert note_arrivals(world.ports, arrivals) == 3
    noted = {
        (one.task_id, one.attempt_id, one.files) for one in world.ledger.attempts(directory.ref)
    }
    tasks = {key.rsplit("/", 1)[-1].removesuffix(".pendingset") for key in recorded.manifests}
    assert noted == {(task, "00", 1) for task in tasks}
    assert world.record(directory).names is Names.EXACT


def test_i3_a_manifest_that_arrives_after_the_end_is_aborted() -> None:
    world, recorded, directory = dead_job()
    late, body = sorted(recorded.manifests.items())[-1]
    world.store.delete(BUCKET, late)
    commit(world, directory)
    world.run(directory)
    assert len(data(world)) == 2
    (key,) = recorded.files.keys() - data(world).keys()
    upload_id = next(one.upload_id for one in world.store.list_uploads(BUCKET, key))
    world.store.put(BUCKET, late, renewed(body, recorded, {**recorded.ids, key: upload_id}))
    assert judge_arrival(world.ports, BUCKET, late).late == 1
    assert world.open_uploads() == []
    assert late not in world.all_keys()


def test_i4_a_manifest_that_comes_over_a_late_one_is_left_to_its_own_event() -> None:
    """A retried task of S3A's overwrites; unread, it alone tells which uploads it names."""
    world, recorded, directory = dead_job()
    key, body = sorted(recorded.manifests.items())[-1]
    commit(world, directory)
    world.run(directory)
    (file,) = (name for name in recorded.files if name.encode() in body)

    def attempt() -> None:
        upload_id = world.store.create_upload(BUCKET, file, metadata={}, content_type="")
        world.store.put(BUCKET, key, renewed(body, recorded, {**recorded.ids, file: upload_id}))

    attempt()
    world.plan.run_before("delete", attempt, where=lambda call: call.key == key)
    with pytest.raises(PreconditionError):
        judge_arrival(world.ports, BUCKET, key)
    assert judge_arrival(world.ports, BUCKET, key).late == 1
    assert world.open_uploads() == []
    assert key not in world.all_keys()


def test_i3_two_application_attempts_are_refused() -> None:
    world, recorded, directory = dead_job()
    first = sorted(recorded.manifests)[0]
    body = world.store.get(BUCKET, first, max_bytes=10**6).body
    world.store.put(BUCKET, first.replace("/00/", "/01/").replace("000000.p", "000009.p"), body)
    commit(world, directory)
    world.run(directory)
    assert outcome(world, directory) == (Outcome.ABORTED, "TWO_ATTEMPTS")
    assert data(world) == {}
    assert all_gone(world, directory)


def test_i9_i12_a_job_whose_uploads_have_expired_is_refused_and_deletes_nothing() -> None:
    world, _recorded, directory = dead_job("halfway")
    world.lose_uploads("sales/", slice(1))
    commit(world, directory)
    world.run(directory)
    assert outcome(world, directory) == (Outcome.ABORTED, "UPLOAD_GONE")
    assert len(data(world)) == 1, "what the driver had completed: the pipeline has done nothing"
    assert directory.success not in world.all_keys()


def exact_names(recorded: Recorded) -> Recorded:
    """The same job, as MapReduce names files: nothing in a name says who wrote it."""

    def plain(text: str) -> str:
        head, _, name = text.rpartition("/")
        return f"{head}/{name[:10]}.parquet" if name.startswith("part-") else text

    def plain_body(body: bytes) -> bytes:
        for key in recorded.ids:
            body = body.replace(key.encode(), plain(key).encode())
        return body

    return Recorded(
        {plain(key): plain_body(body) for key, body in recorded.objects.items()},
        {plain(key): part for key, part in recorded.uploads.items()},
        {plain(key): old for key, old in recorded.ids.items()},
    )


@pytest.mark.parametrize("same", [True, False], ids=["the same bytes", "other bytes"])
def test_i5_files_that_a_second_run_wrote_under_the_same_names_stay(same: bool) -> None:
    recorded = exact_names(read("plain"))
    world = World()
    replay(world.store, recorded)
    key, part = next(iter(recorded.files.items()))
    body = part if same else b"other"
    upload_id = world.store.create_upload(BUCKET, key, metadata={}, content_type="")
    etag = world.store.upload_part(BUCKET, key, upload_id, 1, body)
    world.store.complete_upload(BUCKET, key, upload_id, [etag], length=len(body))
    commit(world, recorded.directory)
    world.run(recorded.directory)
    assert outcome(world, recorded.directory) == (Outcome.ABORTED, "KEY_EXISTS")
    assert data(world) == {key: body}
    assert all_gone(world, recorded.directory)


def edited(change: Callable[[dict[str, Any]], None], body: bytes) -> bytes:
    value = json.loads(body)
    change(value)
    return json.dumps(value).encode()


def first_commit(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda value: value["commits"][0].update(changes)


HOSTILE = [
    pytest.param(first_commit(bucket="vault"), "NOT_CONTAINED", id="another bucket"),
    pytest.param(first_commit(destinationKey="data/x"), "NOT_CONTAINED", id="outside"),
    pytest.param(first_commit(destinationKey="sales10/x"), "NOT_CONTAINED", id="a sibling"),
    pytest.param(first_commit(destinationKey="sales/../x"), "NOT_CONTAINED", id="above"),
    pytest.param(first_commit(destinationKey="sales/_SUCCESS"), "NOT_CONTAINED", id="hidden"),
    pytest.param(
        first_commit(destinationKey=f"sales/__magic_job-{NEIGHBOUR}/request.json"),
        "NOT_CONTAINED",
        id="another job's directory",
    ),
    pytest.param(first_commit(etags=[]), "BAD_FIELD", id="no parts"),
    pytest.param(first_commit(etags=[{"etag": ""}]), "BAD_FIELD", id="an empty etag"),
    pytest.param(first_commit(etags=[{}]), "BAD_FIELD", id="no etag"),
    pytest.param(first_commit(etags=['"e"', {"etag": '"e"'}]), "BAD_FIELD", id="mixed etags"),
    pytest.param(
        first_commit(etags=[{"etag": '"e"', "checksumAlgorithm": "CRC32C", "checksum": "AA=="}]),
        "UNSUPPORTED_CHECKSUM",
        id="checksums",
    ),
    pytest.param(first_commit(jobId=OTHER_JOB), "WRONG_JOB", id="a file of another job"),
    pytest.param(lambda value: value.update(jobId=OTHER_JOB), "WRONG_JOB", id="another job"),
    pytest.param(lambda value: value.update(version=2), "BAD_VERSION", id="another version"),
    pytest.param(
        lambda value: value["commits"].append(value["commits"][0]), "DUPLICATE_KEY", id="twice"
    ),
]


# Found by what else there is, not by the manifest's bytes alone.
FOUND_LATER = [
    pytest.param(
        first_commit(destinationKey=f"sales/part-0-{NEIGHBOUR}.c000.parquet"),
        "NAME_NOT_UNIQUE",
        id="another job's file",
    ),
    pytest.param(first_commit(taskId="attempt_1_0000_m_000007_0"), "WRONG_JOB", id="another task"),
]


@pytest.mark.parametrize(("change", "code"), HOSTILE)
def test_i7_a_hostile_manifest_is_refused_as_it_arrives(
    change: Callable[[dict[str, Any]], None], code: str
) -> None:
    world, recorded, _directory = dead_job()
    bad = sorted(recorded.manifests)[0]
    body = world.store.get(BUCKET, bad, max_bytes=10**6).body
    world.store.put(BUCKET, bad, edited(change, body))
    with pytest.raises(InvalidInputError) as refused:
        judge_arrival(world.ports, BUCKET, bad)
    assert refused.value.code == code


@pytest.mark.parametrize(("change", "code"), HOSTILE + FOUND_LATER)
def test_i5_i7_a_hostile_manifest_is_refused_and_touches_nothing(
    change: Callable[[dict[str, Any]], None], code: str
) -> None:
    world, recorded, directory = dead_job()
    neighbour = job_directory(NEIGHBOUR)
    world.open(neighbour)
    theirs = world.upload(
        neighbour, f"part-0-{NEIGHBOUR}.c000.parquet", b"theirs", task="t0", attempt="a0"
    )
    bad = sorted(recorded.manifests)[0]
    body = edited(change, world.store.get(BUCKET, bad, max_bytes=10**6).body)
    body = edited(lambda value: value["commits"][0].update(uploadId=theirs.upload_id), body)
    world.store.put(BUCKET, bad, body)
    commit(world, directory)
    world.run(directory)
    assert outcome(world, directory) == (Outcome.ABORTED, code)
    assert data(world) == {}
    assert theirs.key in world.open_uploads()
    assert world.json(neighbour.job)["jobId"] == NEIGHBOUR


def test_i5_i7_a_hostile_pending_file_aborts_nothing_but_its_own() -> None:
    world, _recorded, directory = dead_job("task_running")
    neighbour = job_directory(NEIGHBOUR)
    world.open(neighbour)
    theirs = world.upload(neighbour, f"part-0-{NEIGHBOUR}.parquet", b"x", task="t0", attempt="a0")
    pending = next(key for key in world.all_keys(directory.s3a) if key.endswith(".pending"))
    body = world.store.get(BUCKET, pending, max_bytes=10**6).body
    change = {"destinationKey": theirs.key, "uploadId": theirs.upload_id}
    for name in ("elsewhere", f"part-0-{NEIGHBOUR}.parquet"):
        at = f"{pending.rsplit('/', 1)[0]}/{name}.pending"
        world.store.put(BUCKET, at, edited(lambda value: value.update(change), body))
    world.request_abort(directory)
    world.run(directory)
    assert outcome(world, directory) == (Outcome.ABORTED, "ABORTED_BY_CLIENT")
    assert theirs.key in world.open_uploads()


def test_the_ids_of_names_are_asked_for_one_by_one_until_they_are_many() -> None:
    world = World()
    directory = job_directory()
    world.open(job_directory(NEIGHBOUR))
    world.store.put(BUCKET, job_directory(OTHER_JOB).commits, b"{}")
    world.store.put(BUCKET, "sales/__magic_job-1/x", b"")
    other_jobs = OtherJobs(world.store, directory)
    strangers = [f"00000000-0000-4000-8000-{number:012d}" for number in range(ASKED_ONE_BY_ONE)]
    for ids in (strangers[:1], strangers):
        assert [other_jobs.own(f"sales/p-{one}.x") for one in ids] == [False] * len(ids)
        assert [
            other_jobs.own(f"sales/p-{one}.x") for one in (directory.job_id, NEIGHBOUR, OTHER_JOB)
        ] == [False, True, True]
    assert not other_jobs.own("sales/part-00000.parquet")
    more = f"00000000-0000-4000-8000-{ASKED_ONE_BY_ONE:012d}"
    assert not other_jobs.own(f"sales/p-{more}.x")
