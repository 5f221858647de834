"""What the protocol stands on, A1 to A5 and A7 of docs/proof.md: without each promise it falls.

Each test takes one promise away and shows what breaks; beside it the same order of calls with the
promise kept.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from s3commit.core.model.errors import UploadGoneError
from s3commit.core.model.limits import FUNCTION_CLOCKS, S3_CLOCKS
from s3commit.core.model.outcome import Outcome
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ObjectFacts, OpenUpload
from tests.core.enumerated import every_point
from tests.core.test_clocks import left_of_an_append, on_late_hosts
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.crash.scenarios import lose_upload
from tests.engines.explorer.explorer import Explorer
from tests.engines.explorer.worlds import LONG
from tests.engines.sim.assumptions import HeedlessLedger
from tests.engines.sim.scheduler import Violation
from tests.fakes.bucket import Upload
from tests.fakes.faults import Call, FaultPlan
from tests.fakes.memory import MemoryObjectStore
from tests.sim.test_sim import simulate

REPLACING = LONG["call by call: replace beside replace"]


def test_without_conditional_updates_two_jobs_replace_one_destination_together() -> None:
    """The shortest way, call by call: both lock one node."""
    with pytest.raises(Violation, match="I6: both jobs") as found:
        Explorer(REPLACING, ledger=HeedlessLedger).run()
    print(found.value)
    assert " lock(" in str(found.value)


@pytest.mark.parametrize("promise", ["strong reads", "conditional put"])
def test_without_a_promise_of_s3_an_invariant_breaks(promise: str) -> None:
    done = simulate("--without", promise, "--schedules", "200")
    print("\n".join(done.stdout.splitlines()[-40:]), done.stderr)
    assert done.returncode == 1
    assert f"--without '{promise}'" in done.stdout


def test_with_all_promises_kept_the_same_world_holds() -> None:
    """As far as the counterexample lay from the start; `make test-long` explores all of it."""
    Explorer(REPLACING).run(most=4000)


# A4 and A5: uploads that are dead stay so, and names are a job's own.


class Undead(MemoryObjectStore):
    """An aborted upload can be completed."""

    def __init__(self, *buckets: str, **options: Any) -> None:
        super().__init__(*buckets, **options)
        self._once: dict[str, Upload] = {}

    def abort_upload(self, bucket: str, key: str, upload_id: str) -> None:
        self.keep(bucket, upload_id)  # no listing shows it any more, but it is not dead
        super().abort_upload(bucket, key, upload_id)

    def complete_upload(
        self, bucket: str, key: str, upload_id: str, etags: Sequence[str], **how: Any
    ) -> ObjectFacts:
        if upload_id in self._once:
            self.bucket(bucket).uploads.setdefault(upload_id, self._once[upload_id])
        return super().complete_upload(bucket, key, upload_id, etags, **how)

    def keep(self, bucket: str, upload_id: str) -> None:
        if upload_id in self.bucket(bucket).uploads:
            self._once[upload_id] = self.bucket(bucket).uploads[upload_id]


class Eternal(Undead):
    """A completed upload can be completed again."""

    abort_upload = MemoryObjectStore.abort_upload

    def complete_upload(
        self, bucket: str, key: str, upload_id: str, etags: Sequence[str], **how: Any
    ) -> ObjectFacts:
        self.keep(bucket, upload_id)
        return super().complete_upload(bucket, key, upload_id, etags, **how)


class Unlisted(MemoryObjectStore):
    """No listing shows an open upload."""

    def list_uploads(self, *where: str, **after: str) -> Iterator[OpenUpload]:
        """Late, for ever."""
        return iter(())


def world_on(store: type[MemoryObjectStore]) -> World:
    world = World()
    world.store = store(BUCKET, clock=world.clock)
    world.ports = Ports(world.plan.wrap(world.store), world.plan.wrap(world.ledger), world.clock)
    return world


def counterexamples(store: type[MemoryObjectStore]) -> list[str]:
    """The calls at which a worker that stalls, while another execution rolls back, does harm.

    The other execution's worker is told that the upload is gone, so that the roll back aborts it.
    """
    directory, found = job_directory(), list[str]()

    def is_of_t1(call: Call) -> bool:
        return call.key == f"sales/part-t1-{JOB}.parquet"

    def check(point: int) -> FaultPlan:
        world = world_on(store)
        world.ask(directory, "t0", "t1", "t2")

        def meanwhile() -> None:
            gone = UploadGoneError("for a moment")
            world.plan.fail("complete_upload", gone, where=is_of_t1)
            world.run(directory, "execution-2")

        world.plan.run_before(None, meanwhile, nth=point)
        world.run(directory, "execution-1")
        if world.result(directory).outcome is Outcome.ROLLED_BACK and world.visible():
            call = world.plan.fired[0]
            found.append(f"before {call.verb} {call.key}: {list(world.visible())} is visible")
        return world.plan

    every_point(check)
    return found


@pytest.mark.parametrize("store", [Undead, Eternal], ids=lambda one: one.__doc__)
def test_without_a4_a_stalled_worker_makes_a_file_of_a_rolled_back_job_visible(
    store: type[MemoryObjectStore],
) -> None:
    """I2: all or none. The upload is the only fence between a worker and a roll back."""
    found = counterexamples(store)
    print("\n".join(found))
    assert any("complete_upload" in line for line in found)


def test_with_a4_kept_no_stalled_worker_does_harm_at_any_call() -> None:
    assert counterexamples(MemoryObjectStore) == []


def test_i2_where_no_listing_shows_an_upload_the_plan_names_it() -> None:
    assert counterexamples(Unlisted) == []


def test_without_a4_a_late_worker_brings_back_what_the_next_job_has_replaced() -> None:
    """I10: a file of before is there again beside the new ones."""
    for store in (Eternal, MemoryObjectStore):
        world, directory = world_on(store), job_directory()
        world.request(directory, world.attempt(directory, "t0"))
        (upload,) = world.store.list_uploads(BUCKET, "sales/part")
        etags = [world.store.upload_part(BUCKET, upload.key, upload.upload_id, 1, b"t0 a0")]
        world.run(directory)
        world.store.delete(BUCKET, upload.key)  # the next job replaces the directory
        late = (BUCKET, upload.key, upload.upload_id, etags)
        if store is Eternal:
            world.store.complete_upload(*late, length=5)
            assert list(world.visible()) == [upload.key]
        else:
            with pytest.raises(UploadGoneError):
                world.store.complete_upload(*late, length=5)
            assert world.visible() == {}


def test_without_a5_uploads_of_a_program_that_uses_the_jobs_id_are_lost() -> None:
    """I5: a name that carries the job's id is the proof by which the job aborts."""
    world, directory = World(), job_directory()
    world.ask(directory, "t0", "t1", "t2")
    lose_upload(world)
    theirs = f"sales/theirs-{JOB}.bin"
    world.store.create_upload(BUCKET, theirs, metadata={}, content_type="x")
    world.store.create_upload(BUCKET, "sales/theirs.bin", metadata={}, content_type="x")
    world.run(directory)
    assert world.result(directory).outcome is Outcome.ROLLED_BACK
    assert world.open_uploads() == ["sales/theirs.bin"], "their upload was aborted for the job's"


def test_without_a5_one_of_two_jobs_of_one_id_is_told_that_its_data_is_there() -> None:
    """I2 for the second client: COMMITTED, and none of its files is visible."""
    world, directory = World(), job_directory()
    world.request(directory, world.attempt(directory, "t0", files={f"one-{JOB}.csv": b"one"}))
    second = world.attempt(directory, "t0", "b0", files={f"two-{JOB}.csv": b"two"})
    assert second.attempt_id == "b0"  # its request finds its place taken
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert list(world.visible().values()) == [b"one"]
    assert world.open_uploads() == []


# A7: clocks differ by no more than the number.


def test_without_a7_a_job_is_refused_for_its_own_upload() -> None:
    world, directory = on_late_hosts(S3_CLOCKS + 2), job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    assert world.ended(directory) == (Outcome.ABORTED, "BAD_FIELD")


@pytest.mark.parametrize("apart", [-8, 8])
def test_without_a7_a_replace_removes_a_part_of_an_append(apart: int) -> None:
    assert left_of_an_append(apart * FUNCTION_CLOCKS) == 1
