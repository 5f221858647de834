"""I12: who may put below one prefix, or has seen an id, brings nobody to harm by it."""

from contextlib import suppress

import pytest

from s3commit.core.documents.job_json import JOB_JSON, JobSpec
from s3commit.core.documents.pendingset import PendingFile, PendingSet
from s3commit.core.documents.request_json import AbortRequest, encode_request
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs import names_free
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.outcome import Outcome
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
        world.store.put(BUCKET, evil.job, JOB_JSON.encode(JobSpec(WRITE, evil.destination)))
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


HONEST = job_directory(prefix="lake/sales/")
INSIDE = job_directory(prefix="lake/sales/dt=1/")
FILE = f"lake/sales/dt=1/part-t0-{JOB}.parquet"


def honest(world: World) -> None:
    """A job whose only task writes into the directory in which the stranger may write."""
    world.request(HONEST, world.attempt(HONEST, "t0", files={f"dt=1/part-t0-{JOB}.parquet": b"x"}))


@pytest.mark.parametrize("aborts", [True, False])
def test_i12_inside_a_job_of_the_id_nothing_of_it_is_touched(aborts: bool) -> None:
    """Also before the first manifest of the job has come, when the ledger knows nothing of it."""
    world = World()
    honest(world)
    if aborts:
        world.request_abort(INSIDE)
    else:
        world.request(INSIDE)
    world.run(INSIDE)
    outcome, code = world.ended(INSIDE)
    assert outcome is Outcome.ABORTED
    assert aborts or code == "JOB_ID_TAKEN"
    assert "lake/sales/ " not in str(world.result(INSIDE).error), "nothing is told of the other"
    assert world.open_uploads() == [FILE]
    world.run(HONEST)
    assert world.result(HONEST).outcome is Outcome.COMMITTED


def forgotten() -> World:
    """The job's record has expired and its documents are retired; its list stays for ever."""
    world = World()
    honest(world)
    world.run(HONEST)
    forget(world)
    return world


def forget(world: World) -> None:
    world.ledger.expire()
    for key in world.all_keys(HONEST.prefix) + world.all_keys(HONEST.pipeline_prefix):
        world.store.delete(BUCKET, key)
    world.store.delete(BUCKET, HONEST.decision)


@pytest.mark.parametrize("inside", [True, False], ids=["inside", "at the same place"])
def test_i12_a_forgotten_job_that_is_brought_back_deletes_nothing(inside: bool) -> None:
    world = forgotten()
    before = world.visible("lake/")
    directory = INSIDE if inside else HONEST
    world.open(directory, conflict=Conflict.FAIL)
    world.store.put(BUCKET, directory.request, b"not acceptable")
    world.run(directory, "execution-2")
    assert world.result(directory).outcome is Outcome.ABORTED
    assert world.visible("lake/") == before
    assert not [call for call in world.plan.calls if call.verb == "delete"]


def test_i12_a_manifest_in_the_directory_of_a_forgotten_job_brings_nothing_back() -> None:
    """It was published once: without a decision on record it has ended, and its marker is gone."""
    world = forgotten()
    later = job_directory(OTHER_JOB, HONEST.destination.prefix)
    world.commit(later)
    marker = world.json(later.success)
    with pytest.raises(InvalidInputError, match="does not exist"):
        world.announce(HONEST, world.attempt(HONEST, "t9"))
    assert world.ledger.job(HONEST.ref) is None
    world.run(HONEST, "execution-2")
    assert world.json(later.success) == marker
    assert marker["jobId"] == OTHER_JOB


@pytest.mark.parametrize("put", [(), ("request",), ("job",), ("job", "request")])
def test_i8_a_forgotten_job_of_which_an_event_comes_can_be_undone(put: tuple[str, ...]) -> None:
    """The event may come from a queue; a replication may bring the documents back."""
    world, undo = World(), job_directory(OTHER_JOB, HONEST.destination.prefix)
    honest(world)
    bodies = {
        name: world.store.get(BUCKET, getattr(HONEST, name), max_bytes=10_000).body
        for name in ("job", "request")
    }
    world.run(HONEST)
    forget(world)
    before = world.all_keys()
    for name in put:
        world.store.put(BUCKET, getattr(HONEST, name), bodies[name])
    states = world.run(HONEST, "execution-2")
    if "job" not in put:  # else it may be a second job of the id: it is told that it can't be
        assert states == ["SealJob", "Superseded"]
        assert world.ledger.job(HONEST.ref) is None
        assert set(world.all_keys()) - {HONEST.request} == set(before)
    world.open(undo, conflict=Conflict.REPLACE, undoes=HONEST.job_id)
    world.request(undo)
    world.run(undo)
    assert world.result(undo).outcome is Outcome.COMMITTED
    assert world.visible("lake/") == {}


@pytest.mark.parametrize(("later", "most"), [(0, 9), (30, 9), (0, 1)])
def test_i5_i12_a_job_is_refused_where_a_file_of_its_names_lies_already(
    later: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger plans another program's file, of the same bytes, to have it rolled back."""
    monkeypatch.setattr(names_free, "FILES_LOOKED_AT", most)  # more are found by a listing
    monkeypatch.setattr(names_free, "PAGE", 10)
    world = World()
    key = f"lake/sales/dt=1/x/part-0-{OTHER_JOB}.csv"
    made = world.upload(
        job_directory(OTHER_JOB, "lake/"), key.removeprefix("lake/"), b"x", task="t", attempt="a"
    )
    for number in range(later):  # so many that a page of a listing does not reach as far
        world.store.put(BUCKET, f"lake/sales/dt=1/many/{number:04}.csv", b"")
    directory = job_directory(OTHER_JOB, "lake/sales/dt=1/")
    first = {f"a-{OTHER_JOB}.csv": b"y", f"x/part-0-{OTHER_JOB}.csv": b"x"}
    counted = world.attempt(directory, "t", "a", files=first)
    world.store.complete_upload(BUCKET, key, made.upload_id, made.etags, length=1)
    world.request(directory, counted)
    world.lose_after_decision("lake/")
    world.run(directory)
    assert world.ended(directory) == (Outcome.ABORTED, "NAME_TAKEN")
    visible = {one: body for one, body in world.visible("lake/").items() if "/many/" not in one}
    assert visible == {key: b"x"}
    assert world.open_uploads() == []


@pytest.mark.parametrize("what", ["too large", "not json", "directory"])
@pytest.mark.parametrize("name", ["success", "commits", "result"])
def test_i12_what_lies_at_a_name_of_ours_stops_no_decided_job(name: str, what: str) -> None:
    body = {"too large": b" " * (2 * 1024 * 1024), "not json": b"{", "directory": b""}[what]
    world, directory = World(), job_directory()
    for key in ("sales/old.csv", "sales/older.csv"):
        world.store.put(BUCKET, key, b"old")
    world.ask(directory, conflict=Conflict.REPLACE)
    key = getattr(directory, name)
    world.plan.run_after(
        "decide", lambda: world.store.put(BUCKET, key if what != "directory" else key + "/", body)
    )
    world.run(directory)
    assert world.record(directory).state is JobState.COMMITTED
    assert set(world.visible()) == {f"sales/part-t0-{JOB}.parquet"}
    assert world.ledger.holders == set()


def test_i12_a_record_of_another_directory_under_the_same_ref_is_left_alone() -> None:
    """A ref has 128 bits; should somebody find two directories with one, nothing is done."""
    world, directory, elsewhere = World(), job_directory(), job_directory(JOB, "elsewhere/")
    world.commit(elsewhere)
    theirs = world.record(elsewhere)
    world.ledger.write(directory.ref, theirs)
    world.request(directory, world.attempt(directory, "t0"))
    assert world.run(directory, "execution-2") == ["SealJob", "Superseded"]
    assert world.ledger.job(directory.ref) == theirs
    assert world.visible() == {}
