"""Interleavings that once broke a guarantee, one by one; the enumerations can't reach them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3commit.core.model.job import Conflict, CountedAttempt, Outcome
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory
from tests.fakes.faults import Crash, FaultPlan
from tests.fakes.memory import MemoryLedger


def forget(world: World) -> None:
    """The ledger is lost, or its item has expired: an ended job has a time to live there."""
    world.ledger = MemoryLedger()
    world.ports = Ports(world.plan.wrap(world.store), world.ledger, world.clock)


def test_i3_i4_i8_a_late_manifest_of_a_job_that_the_ledger_forgot_does_not_open_it_again() -> None:
    world, directory = World(), job_directory()
    world.open(directory)
    gone = CountedAttempt("t0", "a1", directory.manifest_name("t0", "a1"), "0" * 64, 1, 5)
    world.request(directory, gone)
    world.run(directory)
    assert world.result(directory).outcome is Outcome.ABORTED
    forget(world)
    late = world.attempt(directory, "t0", "a1")
    assert world.announce(directory, late) == 1
    assert world.open_uploads() == []
    assert world.record(directory).state is JobState.ABORTED


def test_i8_a_late_manifest_of_a_committed_job_that_the_ledger_forgot_keeps_it_committed() -> None:
    world, directory = World(), job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    world.store.delete(BUCKET, directory.result)
    forget(world)
    world.announce(directory, world.attempt(directory, "t0", "a1"))
    assert world.record(directory).state is JobState.COMMITTED
    assert world.run(directory)[-1] == "TidyUp"
    assert list(world.visible().values()) == [b"t0 a0"]
    assert world.open_uploads() == []


class Encrypted(World):
    """A bucket behind KMS: an object's etag is no MD5 of its parts' etags."""

    def encrypt(self) -> None:
        bucket = self.store._buckets[BUCKET]
        for key, versions in bucket.objects.items():
            if key.endswith(".parquet"):
                bucket.objects[key] = [
                    replace(one, etag='"' + "e" * 32 + '-1"', metadata={}, opaque=True)
                    for one in versions
                ]


def test_i2_a_roll_back_removes_files_that_neither_metadata_nor_etag_proves() -> None:
    """A client that sets no metadata, on a bucket behind KMS: the name is the proof (ADR 4)."""
    world, directory = Encrypted(), job_directory()
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(3)])
    victim = list(world.store.list_uploads(BUCKET, "sales/"))[1]

    def lose() -> None:
        world.store.abort_upload(BUCKET, victim.key, victim.upload_id)

    world.plan.run_after("decide", lose)
    world.plan.run_after("complete_upload", world.encrypt)
    world.plan.run_after("complete_upload", world.encrypt, nth=3)
    assert world.run(directory)[-2:] == ["RollBack", "TidyUp"]
    assert world.result(directory).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {}


def test_i2_a_roll_back_looks_again_at_a_file_that_changed_before_its_delete() -> None:
    world, directory = World(), job_directory()
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(2)])
    victim = list(world.store.list_uploads(BUCKET, "sales/"))[1]

    def lose() -> None:
        world.store.abort_upload(BUCKET, victim.key, victim.upload_id)

    foreign = f"sales/part-t0-{JOB}.parquet"
    world.plan.run_after("decide", lose)
    world.plan.run_before("delete", lambda: world.store.put(BUCKET, foreign, b"not the same"))
    assert world.run(directory)[-2:] == ["RollBack", "TidyUp"]
    assert world.visible() == {foreign: b"not the same"}


def test_i6_a_claim_that_a_late_waker_puts_is_in_nobodys_way() -> None:
    world, directory, other = World(), job_directory(), job_directory(OTHER_JOB)
    for one in (directory, other):
        world.open(one, conflict=Conflict.REPLACE)
        world.request(one, world.attempt(one, "t0"))
    world.plan.run_before("put_claim", lambda: world.run(directory, "execution-2"))
    assert world.run(directory, "execution-1")[-1] == "Superseded"
    assert {ref for ref, _ in world.ledger._claims} == {directory.ref}
    assert world.run(other).count("AcquireDestination") == 1
    assert world.result(other).outcome is Outcome.COMMITTED


def test_i2_i8_a_job_that_loses_its_ledger_and_an_upload_while_committing_is_rolled_back() -> None:
    world, directory = World(plan=FaultPlan().crash_after("complete_upload")), job_directory()
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(2)])
    with pytest.raises(Crash):
        world.run(directory)
    forget(world)
    world.lose_uploads("sales/", slice(1))  # a lifecycle rule
    world.run(directory, "execution-2")
    assert world.result(directory).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {}
