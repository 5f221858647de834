"""I12: who may put below one prefix brings the pipeline to no more than that right gives.

The adversary's prefix lies inside an honest table. Found by the simulation
(`tests/engines/sim/attack.py`) and by hand; each test is one attack of its own.
"""

from contextlib import suppress

import pytest

from s3commit.core.formats.documents import encode_job, encode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import (
    AbortRequest,
    Conflict,
    JobSpec,
    Outcome,
    PendingFile,
    PendingSet,
)
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.states import JobState
from tests.core.swept import LIMITS, Swept
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory

BELOW = "sales/dt=1/"  # where it may put
WRITE = "99999999-0000-4000-8000-000000000099"  # the id of a write of Spark's, in its files' names


def test_i12_nothing_that_is_put_over_a_decided_job_keeps_its_locks_from_others() -> None:
    """After the decision no document is read (test_pages.py), and data may be put over."""
    world, evil, honest = World(), job_directory(prefix=BELOW), job_directory(OTHER_JOB)
    world.store.put(BUCKET, f"{BELOW}old.parquet", b"old")
    world.ask(evil, "t0", "t1", conflict=Conflict.REPLACE)

    def spoil() -> None:
        for key in (*world.all_keys(evil.prefix), evil.commits, max(world.visible(BELOW))):
            world.store.put(BUCKET, key, b"put over it")

    world.plan.run_after("advance", spoil, nth=2)  # SEALED, then PUBLISHING
    for number in range(4):
        with suppress(S3CommitError):
            world.run(evil, f"execution-{number}")
    world.commit(honest, conflict=Conflict.REPLACE)
    assert world.result(honest).outcome is Outcome.COMMITTED


def _older_upload(world: World, evil: JobDirectory) -> tuple[str, str, PendingSet]:
    """Another program's upload; a job that is opened for it; its manifest."""
    key = BELOW + f"part-00000-{WRITE}.parquet"
    upload = world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
    world.store.upload_part(BUCKET, key, upload, 1, b"theirs")
    world.clock.advance(S3_CLOCKS + 1)
    world.open(evil)
    file = PendingFile(BUCKET, key, upload, ("etag",), 6, WRITE, "t0", "a0")
    return key, upload, PendingSet(WRITE, (file,), "t0", "a0")


def test_i12_a_job_that_counts_an_upload_of_before_completes_and_aborts_none_of_it() -> None:
    """Its parts are not known to the job."""
    world, evil = World(), job_directory(WRITE, BELOW)
    key, upload, pending = _older_upload(world, evil)
    world.request(evil, world.drop(evil, pending, "t0", "a0"))
    world.run(evil)
    assert world.failure(evil).code == "BAD_FIELD"
    assert world.store.upload_is_open(BUCKET, key, upload)


def test_i12_a_late_manifest_of_an_ended_job_aborts_no_upload_of_before() -> None:
    world, evil = World(), job_directory(WRITE, BELOW)
    key, upload, pending = _older_upload(world, evil)
    world.request_abort(evil)
    world.run(evil)
    own = world.attempt(evil, "t1", "a1", files={f"own-{WRITE}.parquet": b"late"})
    world.announce(evil, world.drop(evil, pending, "t0", "a0"))
    world.clock.advance(3600)
    world.announce(evil, own)
    assert world.open_uploads() == [key]
    assert world.store.upload_is_open(BUCKET, key, upload)
    assert not world.all_keys(evil.tasks)


@pytest.mark.parametrize("said", ["result", "commits", "both"])
def test_i12_the_sweep_aborts_no_upload_for_a_forged_end_of_its_job(said: str) -> None:
    """The ledger does not know the job; anyone may put what says that it has ended."""
    world, evil = Swept(), job_directory(WRITE, BELOW)
    key, upload, _ = _older_upload(world, job_directory(prefix=BELOW))
    world.later(1)
    if said == "both":
        world.store.put(BUCKET, evil.job, encode_job(JobSpec(WRITE, evil.destination)))
    if said != "commits":
        world.store.put(BUCKET, evil.result, b"{}")
    if said != "result":
        world.store.put(BUCKET, evil.commits, b"{}")
    world.later(LIMITS.stuck + 1)
    world.sweep_and_settle()
    assert world.store.upload_is_open(BUCKET, key, upload)


@pytest.mark.parametrize("by", ["execution", "sweep"])
def test_i12_an_id_in_a_name_proves_nothing_of_a_job_without_job_json(by: str) -> None:
    """Anyone who sees the name can ask for the abort of a job with that id."""
    world, evil = Swept(), job_directory(WRITE, BELOW)
    key = f"{BELOW}report-{WRITE}.csv"
    if by == "execution":
        upload = world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
    world.store.put(BUCKET, evil.request, encode_request(AbortRequest(WRITE, "because")))
    world.run(evil)
    assert world.record(evil).state is JobState.ABORTED
    if by == "sweep":
        upload = world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
        world.later(LIMITS.stuck + 1)
        world.sweep_and_settle()
    assert world.store.upload_is_open(BUCKET, key, upload)


def test_i12_the_uploads_of_an_id_are_those_of_the_outermost_job() -> None:
    """Who may put below a directory alone opens a job there with the id of the one further up."""
    world, evil, honest = World(), job_directory(JOB, BELOW), job_directory(JOB)
    for directory in (evil, honest):
        world.open(directory)
    world.attempt(honest, "t0", files={f"dt=1/part-{JOB}.parquet": b"x"})
    world.request_abort(evil)
    world.run(evil)
    assert world.open_uploads() == [f"{BELOW}part-{JOB}.parquet"]
