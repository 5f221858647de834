"""The ``_SUCCESS`` of a table inside goes with its files when a job above replaces them (I9)."""

import pytest

from s3commit.core.commit import check_conditions
from s3commit.core.formats.layout import is_inner_marker
from s3commit.core.model.job import Conflict, Outcome, Scope
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, World, job_directory
from tests.fakes.execution import run_execution

ABOVE, INSIDE = job_directory(), job_directory(OTHER_JOB, "sales/dt=1/")
FILE = {f"dt=1/part-{JOB}.parquet": b"new"}


def replace_above(world: World, scope: Scope = Scope.DIRECTORY) -> int:
    """A job that replaces all of the table inside; how many files it says that it has replaced."""
    world.open(ABOVE, conflict=Conflict.REPLACE, scope=scope)
    world.request(ABOVE, world.attempt(ABOVE, "t0", files=FILE))
    world.run(ABOVE)
    assert world.result(ABOVE).outcome is Outcome.COMMITTED
    return world.result(ABOVE).replaced


def stands(world: World) -> bool:
    return world.store.head(BUCKET, INSIDE.success) is not None


@pytest.mark.parametrize(
    ("key", "is_one"),
    [
        ("dt=1/_SUCCESS", True),
        ("_day=1/_SUCCESS", True),
        ("x/_day=1/_SUCCESS", True),
        ("_SUCCESS", False),
        ("_x/_SUCCESS", False),
        (".x=1/_SUCCESS", False),
        ("x//_SUCCESS", False),
        ("dt=1/x_SUCCESS", False),
    ],
)
def test_i9_a_marker_is_inside_where_data_may_be(key: str, is_one: bool) -> None:
    assert is_inner_marker(key) is is_one


@pytest.mark.parametrize("scope", Scope)
def test_i9_a_marker_goes_with_the_files_of_its_job_and_counts_for_no_file(scope: Scope) -> None:
    world = World()
    world.commit(INSIDE)
    assert stands(world)
    assert replace_above(world, scope) == 1
    assert not stands(world)
    assert set(world.visible("sales/")) == {f"sales/{name}" for name in FILE}
    assert world.json(ABOVE.success)["jobId"] == JOB


@pytest.mark.parametrize("body", [b"", b"{}", b"no marker"])
def test_i5_a_marker_that_names_no_job_stays(body: bytes) -> None:
    world = World()
    world.commit(INSIDE)
    world.store.put(BUCKET, INSIDE.success, body)
    replace_above(world)
    assert stands(world)


@pytest.mark.parametrize("prefix", ["sales/dt=1/", "sales/", "sales/dt=1/h=2/"])
def test_i6_i9_a_marker_stays_beside_an_append_that_stays(prefix: str) -> None:
    """Under way at, above or below it: it may have files there, and a marker to come."""
    world, append = World(), job_directory(NEIGHBOUR, prefix)
    world.commit(INSIDE)
    world.ask(append, "t")
    world.plan.crash_after("decide")
    world.dies(append)
    replace_above(world)
    assert stands(world)
    run_execution(world.unplanned, append, execution="execution-2")
    assert world.json(append.success)["jobId"] == NEIGHBOUR


@pytest.mark.parametrize("at", ["decide", "delete_seen"])
def test_i5_a_marker_that_was_put_since_it_was_listed_stays(at: str) -> None:
    """Of an append that was decided later: its files stay, and its marker."""
    world, append = World(), job_directory(NEIGHBOUR, INSIDE.destination.prefix)
    world.commit(INSIDE)
    world.ask(append, "t")
    world.plan.run_before(at, lambda: run_execution(world.unplanned, append))
    replace_above(world)
    assert world.json(INSIDE.success)["jobId"] == NEIGHBOUR
    assert world.result(append).outcome is Outcome.COMMITTED
    assert any(NEIGHBOUR in key for key in world.visible(INSIDE.destination.prefix))


def test_a_job_that_replaces_no_file_removes_no_marker() -> None:
    """Else it had a list of no file: those are passed over."""
    world = World()
    world.commit(INSIDE)
    for key in world.visible(INSIDE.destination.prefix):
        world.store.delete(BUCKET, key)
    assert replace_above(world) == 0
    assert stands(world)


def test_i9_a_marker_outside_the_partitions_that_are_replaced_stays() -> None:
    world, beside = World(), job_directory(OTHER_JOB, "sales/dt=2/")
    world.commit(beside)
    replace_above(world, Scope.PARTITION)
    assert world.json(beside.success)["jobId"] == OTHER_JOB


def test_i12_of_markers_without_number_some_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_conditions, "MOST_MARKERS", 2)
    world = World()
    world.commit(INSIDE)
    body = world.store.get(BUCKET, INSIDE.success, max_bytes=10_000).body
    for number in range(5):
        world.store.put(BUCKET, f"sales/more{number}/_SUCCESS", body)
    replace_above(world)
    assert sum(key.endswith("/_SUCCESS") for key in world.all_keys("sales/")) == 6 - 2 + 1
