"""Roll back against what a bucket and its other users do meanwhile (I2, I4, I5)."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from s3commit.core.commit.complete_unit import complete_file
from s3commit.core.documents.job_json import JobSpec
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs.ownership import abort_uploads
from s3commit.core.jobs.record import new_record
from s3commit.core.model.errors import CONFLICT, PreconditionError, TransientError, UploadGoneError
from s3commit.core.model.limits import ABORT_ROUNDS
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.clock import CallTime
from s3commit.core.ports.objects import OpenUpload
from tests.core.enumerated import every_point
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.fakes.bucket import Upload
from tests.fakes.faults import Call
from tests.fakes.memory import MemoryObjectStore

LONG_AGO = "1970-01-01T00:00:00.000Z"
KEYS = [f"sales/part-t{number}-{job_directory().job_id}.parquet" for number in range(3)]


def losing(world: World) -> JobDirectory:
    """A job of three tasks, ready to run, that loses an upload right after its decision."""
    directory = job_directory()
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(3)])
    world.lose_after_decision(KEYS[1])
    return directory


def is_delete_of(key: str) -> Callable[[Call], bool]:
    return lambda call: call.verb == "delete" and call.key == key


@pytest.mark.parametrize("versioned", [False, True], ids=["plain", "versioned"])
def test_i5_a_file_that_is_put_over_ours_right_before_its_delete_stays(versioned: bool) -> None:
    world = World(versioned=versioned)
    directory = losing(world)
    world.plan.run_before(
        "delete",
        lambda: world.store.put(BUCKET, KEYS[0], b"a stranger's"),
        where=is_delete_of(KEYS[0]),
    )
    world.run(directory)
    assert world.result(directory).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {KEYS[0]: b"a stranger's"}


class PartsUnderWay(MemoryObjectStore):
    """A part that is under way when its upload is aborted survives, and listings do not show it.

    "It might be necessary to abort a given multipart upload multiple times", says the reference of
    AbortMultipartUpload; ListParts has the last word.
    """

    survivals = 2

    def __init__(self, *buckets: str) -> None:
        super().__init__(*buckets)
        self.aborts: dict[str, int] = {}
        self.surviving: dict[str, Upload] = {}

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        """Gone for listings; for ListParts after some more."""
        upload = self.bucket(bucket).uploads.pop(upload_id, None)
        if upload is not None:
            self.surviving[upload_id] = upload
        self.aborts[upload_id] = self.aborts.get(upload_id, 0) + 1
        if self.aborts[upload_id] > self.survivals:
            self.surviving.pop(upload_id, None)

    def upload_is_open(self, bucket: str, key: str, upload_id: str) -> bool:
        """Whether there are parts."""
        return super().upload_is_open(bucket, key, upload_id) or upload_id in self.surviving


@pytest.mark.parametrize("survivals", [0, 1, 2, 100])
def test_i4_an_upload_is_aborted_until_list_parts_does_not_know_it(survivals: int) -> None:
    store = PartsUnderWay(BUCKET)
    store.survivals = survivals
    directory = job_directory()
    world = World()
    for key in KEYS:
        store.create_upload(BUCKET, key, metadata={}, content_type="")
    spec = JobSpec(directory.job_id, directory.destination, put_at=LONG_AGO)
    world.ledger.open_job(new_record(spec, directory, world.clock.now()))
    ports = Ports(store, world.ledger, world.clock)
    gone = survivals < ABORT_ROUNDS
    assert abort_uploads(ports, directory, CallTime(ports.clock)) is gone
    assert set(store.aborts.values()) == {min(survivals + 1, ABORT_ROUNDS)}
    assert (store.surviving == {}) is gone


def test_i4_a_job_is_rolled_back_when_no_upload_is_open_that_was_begun_during_its_deletes() -> None:
    """TidyUp would abort it too; but the result that is out by then says that nothing is left."""
    world = World()
    directory = losing(world)
    zombie = partial(world.store.create_upload, BUCKET, KEYS[0], metadata={}, content_type="")
    world.plan.run_after("delete", zombie, where=is_delete_of(KEYS[0]))
    left: list[list[str]] = []
    world.plan.run_before(
        "advance",
        lambda: left.append(world.open_uploads()),
        where=lambda call: call.arguments["target"] is JobState.ROLLED_BACK,
    )
    assert world.run(directory)[-2:] == ["RollBack", "TidyUp"]
    assert left == [[]]


def test_i2_a_zombie_that_completes_an_upload_at_any_call_of_a_roll_back_is_found() -> None:
    """Its worker was told that the upload is gone, so the roll back meets it open."""
    completed: list[bool] = []

    def check(point: int) -> bool:
        world, directory = World(), job_directory()
        world.ask(directory, "t0", "t1", "t2")
        (upload,) = world.store.list_uploads(BUCKET, KEYS[1])
        parts = [world.store.upload_part(BUCKET, upload.key, upload.upload_id, 1, b"t1 a0")]
        world.plan.fail(
            "complete_upload",
            UploadGoneError("not yet known"),
            where=lambda call: call.key == KEYS[1],
        )
        woke: list[int] = []

        def wake() -> None:
            woke.append(point)
            with suppress(UploadGoneError):
                world.store.complete_upload(BUCKET, upload.key, upload.upload_id, parts, length=5)
                completed.append(True)

        def undoing(_call: Call) -> bool:
            record = world.ledger.job(directory.ref)
            return record is not None and record.state is JobState.ROLLING_BACK

        world.plan.run_before(None, wake, nth=point, where=undoing)
        world.run(directory)
        assert world.result(directory).outcome is Outcome.ROLLED_BACK
        assert world.visible() == {}
        assert world.open_uploads() == []
        return bool(woke)

    every_point(check, least=10)
    assert len(completed) > 1


class Checksummed(MemoryObjectStore):
    """One upload was created with checksums of its parts."""

    def list_uploads(self, *where: str, **after: str) -> Iterator[OpenUpload]:
        """With the word that S3 has for it."""
        for upload in super().list_uploads(*where, **after):
            yield replace(upload, composite="part-t1-" in upload.key)


def test_i2_an_upload_whose_checksums_nobody_can_repeat_refuses_the_job() -> None:
    """S3 would refuse its completion, when other files are visible already."""
    world, directory = World(), job_directory()
    world.store = Checksummed(BUCKET, clock=world.clock)
    world.ports = Ports(world.plan.wrap(world.store), world.plan.wrap(world.ledger), world.clock)
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(3)])
    world.run(directory)
    assert world.failure(directory).code == "UNSUPPORTED_CHECKSUM"
    assert "complete_upload" not in world.plan.counts()
    assert world.open_uploads() == []


@pytest.mark.parametrize("opaque", [False, True], ids=["plain", "SSE-KMS"])
@pytest.mark.parametrize("length", [1, 2])
def test_i2_where_the_upload_is_gone_the_key_and_its_length_tell(length: int, opaque: bool) -> None:
    """As after a lost answer: names that carry the job's id are nobody else's (ADR 4)."""
    world, directory = World(opaque=opaque), job_directory()
    file = world.upload(directory, f"part-{JOB}.csv", b"x", task="t0", attempt="a0")
    world.store.complete_upload(BUCKET, file.key, file.upload_id, file.etags, length=1)
    assert (complete_file(world.ports, replace(file, length=length)) is None) is (length == 1)
    world.store.delete(BUCKET, file.key)
    assert complete_file(world.ports, file) is not None


def test_i2_two_workers_that_complete_one_upload_at_once_do_not_undo_the_job() -> None:
    """S3 refuses one of them with 409, maybe before the other one's file is there."""
    world, directory = World(), job_directory()
    file = world.upload(directory, f"part-{JOB}.csv", b"x", task="t0", attempt="a0")
    world.plan.fail("complete_upload", PreconditionError("409", code=CONFLICT))
    with pytest.raises(TransientError):
        complete_file(world.ports, file)
    assert complete_file(world.ports, file) is None
