"""I12: who may put below one prefix brings the pipeline to no more than that right gives.

The adversary's prefix lies inside an honest table. Found by the simulation
(`tests/engines/sim/attack.py`) and by hand; each test is one attack of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from s3commit.core.commit import ingest_pendingsets
from s3commit.core.formats.documents import encode_job, encode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import AccessError, S3CommitError
from s3commit.core.model.job import AbortRequest, Conflict, JobSpec, Outcome
from s3commit.core.model.pending import PendingFile, PendingSet
from s3commit.core.model.states import JobState
from tests.core.lost_world import Checked
from tests.core.swept import LIMITS, Swept
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory

BELOW = "sales/dt=1/"  # where it may put
WRITE = "99999999-0000-4000-8000-000000000099"  # the id of a write of Spark's, in its files' names

Strike = Callable[[World, JobDirectory], None]


def forge_a_list(world: World, directory: JobDirectory) -> None:
    world.lose_uploads(BELOW, slice(1))  # its own: a roll back follows
    world.store.put(BUCKET, directory.commits, b"{}")


def spoil_the_manifests(world: World, directory: JobDirectory) -> None:
    assert not world.all_keys(directory.prefix + "plan-")  # plans lie where no client may write
    for key in world.all_keys(directory.tasks):
        world.store.put(BUCKET, key, b"[]")


def spoil_the_list(world: World, directory: JobDirectory) -> None:
    spoil_the_manifests(world, directory)
    world.store.put(BUCKET, directory.commits, b"{")


def spoil_the_replace_list(world: World, directory: JobDirectory) -> None:
    world.store.put(BUCKET, f"{BELOW}new.parquet", b"new")
    assert not world.all_keys(directory.prefix + "replaced")


def spoil_what_is_visible(world: World, directory: JobDirectory) -> None:
    spoil_the_manifests(world, directory)
    world.store.put(BUCKET, max(world.visible(BELOW)), b"put over it")


@pytest.mark.parametrize(
    ("verb", "strike"),
    [
        ("decide", forge_a_list),
        ("decide", spoil_the_manifests),
        ("decide", spoil_the_replace_list),
        ("advance", spoil_the_list),
        ("advance", spoil_what_is_visible),
    ],
)
def test_i12_no_document_of_a_decided_job_keeps_its_locks_from_others(
    verb: str, strike: Strike
) -> None:
    """A sibling of the ``_SUCCESS`` that can't be read: each kept the table above it for ever."""
    world, evil, honest = World(), job_directory(prefix=BELOW), job_directory(OTHER_JOB)
    world.store.put(BUCKET, f"{BELOW}old.parquet", b"old")
    world.open(evil, conflict=Conflict.REPLACE)
    world.request(evil, *(world.attempt(evil, f"t{number}") for number in range(2)))
    nth = 2 if verb == "advance" else 1  # SEALED, then PUBLISHING
    world.plan.run_after(verb, lambda: strike(world, evil), nth=nth)
    for number in range(4):
        with suppress(S3CommitError):
            world.run(evil, f"execution-{number}")
    world.open(honest, conflict=Conflict.REPLACE)
    world.request(honest, world.attempt(honest, "t0"))
    world.run(honest)
    assert world.result(honest).outcome is Outcome.COMMITTED


@pytest.mark.parametrize("forged", ["result", "commits"])
def test_i12_the_sweep_aborts_no_upload_for_what_is_said_of_an_id_of_sparks_own(
    forged: str,
) -> None:
    world = Swept()
    key = f"{BELOW}part-00000-{WRITE}-c000.parquet"
    upload = world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
    world.store.upload_part(BUCKET, key, upload, 1, b"theirs")
    said = job_directory(WRITE, BELOW)
    world.store.put(BUCKET, said.result if forged == "result" else said.commits, b"{}")
    world.clock.advance(LIMITS.stuck + 1)
    world.sweep_and_settle()
    assert world.store.upload_is_open(BUCKET, key, upload)


def test_i12_a_job_that_takes_the_id_of_a_write_of_sparks_aborts_no_upload_of_it() -> None:
    world, evil = World(), job_directory(WRITE, BELOW)
    key = f"{BELOW}part-00000-{WRITE}-c000.parquet"
    upload = world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
    world.store.upload_part(BUCKET, key, upload, 1, b"theirs")
    world.open(evil)
    world.request_abort(evil)
    world.run(evil)
    assert world.store.upload_is_open(BUCKET, key, upload)


def test_i12_a_document_that_nobody_may_read_stops_no_rebuild_for_the_others() -> None:
    """Put under a KMS key to which the pipeline has no right: listed, and a GET is refused."""
    world, evil, honest = World(), job_directory(prefix=BELOW), job_directory(OTHER_JOB)
    for directory in (evil, honest):
        world.open(directory)
        world.request(directory, world.attempt(directory, "t0"))

    world.clock.advance(24 * 60 * 60)  # both requests went unheard

    def refuse() -> None:
        raise AccessError(f"{evil.job} is encrypted under another's key")

    for _ in range(9):
        world.plan.run_before("get", refuse, where=lambda call: call.key == evil.job)
    assert any(OTHER_JOB in str(one) for one in Checked(world).rebuild())


def _older_upload(world: World, evil: JobDirectory) -> tuple[str, str, PendingSet]:
    """Another program's upload; a job that is opened for it; its manifest."""
    key = BELOW + f"part-00000-{WRITE}.parquet"
    upload = world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
    world.store.upload_part(BUCKET, key, upload, 1, b"theirs")
    world.open(evil)
    file = PendingFile(BUCKET, key, upload, ("etag",), 6, WRITE, "t0", "a0")
    return key, upload, PendingSet(WRITE, (file,), "t0", "a0")


def test_i12_a_job_that_counts_an_upload_of_before_completes_and_aborts_none_of_it() -> None:
    """Its parts are not known to the job."""
    world, evil = World(), job_directory(WRITE, BELOW)
    key, upload, pending = _older_upload(world, evil)
    world.request(evil, world.drop(evil, pending, "t0", "a0"))
    world.run(evil)
    error = world.result(evil).error
    assert error is not None
    assert error.code == "BAD_FIELD"
    assert world.store.upload_is_open(BUCKET, key, upload)


def test_i12_a_late_manifest_of_an_ended_job_aborts_no_upload_of_before() -> None:
    world, evil = World(), job_directory(WRITE, BELOW)
    key, upload, pending = _older_upload(world, evil)
    world.request_abort(evil)
    world.run(evil)
    own = world.attempt(evil, "t1", "a1", files={f"own-{WRITE}.parquet": b"late"})
    assert world.announce(evil, own) == 1
    assert world.announce(evil, world.drop(evil, pending, "t0", "a0")) == 0
    assert world.open_uploads() == [key]
    assert world.store.upload_is_open(BUCKET, key, upload)
    assert not world.all_keys(evil.tasks)


def test_i12_a_look_for_a_late_upload_ends_however_many_lie_at_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ingest_pendingsets, "LOOKED_AT", 3)
    world, evil = Swept(), job_directory(WRITE, BELOW)
    world.open(evil)
    world.request_abort(evil)
    world.run(evil)
    name = f"own-{WRITE}.parquet"
    for _ in range(3):
        world.store.create_upload(BUCKET, BELOW + name, metadata={}, content_type="x")
    late = world.attempt(evil, "t1", "a1", files={name: b"late"})
    assert world.announce(evil, late) == 0
    world.later(LIMITS.stuck + 1)
    assert world.sweep_and_settle().started == 1
    assert world.open_uploads() == []


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


def test_i4_an_abort_asks_for_no_other_job_though_many_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whose the others' uploads are is no question of this one's end."""
    world, directory = World(), job_directory()
    for number in range(70):
        other = f"{number:08x}-0000-4000-8000-000000000000"
        key = f"sales/part-{other}.parquet"
        world.store.create_upload(BUCKET, key, metadata={}, content_type="x")
    world.attempt(directory, "t0")
    world.request_abort(directory)
    before = len(world.plan.calls)
    world.run(directory)
    lists = [call for call in world.plan.calls[before:] if call.verb == "list"]
    assert len(lists) < 8
    assert len(world.open_uploads()) == 70


def test_i12_the_uploads_of_an_id_are_those_of_the_outermost_job() -> None:
    """Who may put below a directory alone opens a job there with the id of the one further up."""
    world, evil, honest = World(), job_directory(JOB, BELOW), job_directory(JOB)
    for directory in (evil, honest):
        world.open(directory)
    world.attempt(honest, "t0", files={f"dt=1/part-{JOB}.parquet": b"x"})
    world.request_abort(evil)
    world.run(evil)
    assert world.open_uploads() == [f"{BELOW}part-{JOB}.parquet"]
