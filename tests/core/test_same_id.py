"""One job id at several directories: who has seen an id can bring nobody to harm by it (I12).

Ids are seen by everyone who may list the bucket. At another directory an id is another job; inside
a directory that has a job of the id it is refused, and nothing that carries the id is touched.
"""

import pytest

from s3commit.core.commit import check_conditions
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conflict, Outcome
from s3commit.core.model.states import JobState
from tests.core.world import BUCKET, JOB, OTHER_JOB, World, job_directory
from tests.fakes.faults import FaultPlan

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
    world.open(INSIDE)
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
    world.ledger._jobs.clear()
    for key in world.all_keys(HONEST.prefix) + world.all_keys(HONEST.pipeline_prefix):
        world.store.delete(BUCKET, key)
    return world


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
    with pytest.raises(InvalidInputError, match="is not there"):
        world.announce(HONEST, world.attempt(HONEST, "t9"))
    assert world.ledger.job(HONEST.ref) is None
    world.run(HONEST, "execution-2")
    assert world.json(later.success) == marker
    assert marker["jobId"] == OTHER_JOB


@pytest.mark.parametrize(("later", "most"), [(0, 9), (3_000, 9), (0, 1)])
def test_i5_i12_a_job_is_refused_where_a_file_of_its_names_lies_already(
    later: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger plans another program's file, of the same bytes, to have it rolled back."""
    monkeypatch.setattr(check_conditions, "FILES_LOOKED_AT", most)  # more are found by a listing
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
    world, directory = World(plan=FaultPlan()), job_directory()
    for key in ("sales/old.csv", "sales/older.csv"):
        world.store.put(BUCKET, key, b"old")
    world.ask(directory, conflict=Conflict.REPLACE)
    key = getattr(directory, name)
    world.plan.run_after(
        "decide",
        lambda: world.store.put(BUCKET, key if what != "directory" else key + "/", body),
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
    world.ledger._jobs[directory.ref] = theirs
    world.request(directory, world.attempt(directory, "t0"))
    assert world.run(directory, "execution-2") == ["SealJob", "Superseded"]
    assert world.ledger.job(directory.ref) == theirs
    assert world.visible() == {}
