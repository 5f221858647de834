"""A lost answer of CompleteMultipartUpload is recognised as success, by the file's name (I2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from s3commit.core.commit.complete_unit import complete_file
from s3commit.core.model.errors import CONFLICT, PreconditionError, TransientError
from s3commit.core.model.job import Outcome
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import OpenUpload
from tests.core.world import BUCKET, JOB, World, job_directory
from tests.fakes.faults import FaultPlan
from tests.fakes.memory import MemoryObjectStore


def test_i2_behind_kms_a_lost_answer_is_recognised_by_the_name() -> None:
    """Names that carry the job's id are nobody else's (ADR 4)."""
    world = World(opaque=True, plan=FaultPlan().lose_response("complete_upload", nth=2))
    directory = job_directory()
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(3)])
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert len(world.visible()) == 3


class Checksummed(MemoryObjectStore):
    """One upload was created with checksums of its parts."""

    def list_uploads(self, *where: str, **after: str) -> Iterator[OpenUpload]:
        """With the word that S3 has for it."""
        for upload in super().list_uploads(*where, **after):
            yield replace(upload, composite="part-t1-" in upload.key)


def test_i2_an_upload_whose_checksums_nobody_can_repeat_refuses_the_job_before_its_decision() -> (
    None
):
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
