"""What a replacement leaves: appends beside it, markers inside, prefixes that it may not reach."""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from s3commit.core.commit import check_conditions
from s3commit.core.formats.layout import JobDirectory, is_inner_marker
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.limits import APPEND_SECONDS
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, World, job_directory
from tests.fakes.execution import run_execution

# The step reads the appends at "top/sales/" and at "top/", and each twice, before it lists.
MOMENT = 4


@pytest.mark.parametrize("moment", ["before", "under way", "decided since", "ended since"])
@pytest.mark.parametrize("prefix", ["sales/", "sales/dt=1/", ""], ids=["at", "below", "above"])
def test_i6_a_replace_removes_appends_that_had_ended_and_leaves_all_others(
    moment: str, prefix: str
) -> None:
    world = World()
    replacing, appending = (
        job_directory(JOB, "top/sales/"),
        job_directory(OTHER_JOB, f"top/{prefix}"),
    )
    name = f"part-{OTHER_JOB}.csv" if prefix else f"sales/part-{OTHER_JOB}.csv"
    world.ask(appending, files={name: b"new"})
    world.ask(replacing, "t", conflict=Conflict.REPLACE)
    if moment in {"under way", "ended since"}:
        world.plan.crash_before("advance", nth=2)
        world.dies(appending)
        assert world.record(appending).state is JobState.COMMITTING
        assert world.visible("top/")

    def append() -> None:
        run_execution(world.unplanned, appending, execution="execution-2")

    if moment == "before":
        append()
    elif moment != "under way":
        listing = {"prefix": "top/sales/", "after": ""}.items()
        world.plan.run_before("list", append, where=lambda call: listing <= call.arguments.items())
    world.run(replacing)
    append()
    for directory in (appending, replacing):
        assert world.result(directory).outcome is Outcome.COMMITTED
    left = any(OTHER_JOB in key for key in world.visible("top/sales/"))
    assert left == (moment != "before")


def test_i6_appends_that_end_while_they_are_read_are_read_again() -> None:
    """Else one that has ended between two requests could come before in one place, after in one."""
    world = World()
    replacing = job_directory(JOB, "top/sales/")
    appending = job_directory(OTHER_JOB, "top/")
    world.ask(appending, "t")
    world.ask(replacing, "t", conflict=Conflict.REPLACE)
    world.plan.run_after(
        "appends", lambda: run_execution(world.unplanned, appending), nth=MOMENT - 1
    )
    world.run(replacing)
    readings = [call for call in world.plan.calls if call.verb == "appends"]
    assert len(readings) == MOMENT + 2


def test_i12_an_append_of_the_same_id_elsewhere_keeps_no_file_from_being_replaced() -> None:
    """Who may write beside a file may know the id in its name, and open a job with it there."""
    world = World()
    old = job_directory(OTHER_JOB, "top/sales/dt=1/")
    beside = job_directory(OTHER_JOB, "top/sales/dt=2/")
    replacing = job_directory(JOB, "top/sales/")
    for directory in (old, beside):
        world.request(directory, world.attempt(directory, "t"))
    world.run(old)
    world.clock.advance(APPEND_SECONDS * 2)
    world.plan.crash_after("decide")
    world.dies(beside)
    world.ask(replacing, "t", conflict=Conflict.REPLACE)
    world.run(replacing)
    run_execution(world.unplanned, beside, execution="execution-2")
    left = {key for key in world.visible("top/sales/") if OTHER_JOB in key}
    assert {key.split("/")[2] for key in left} == {"dt=2"}


def test_i6_a_replace_beside_appends_without_end_is_refused_and_holds_nothing() -> None:
    world, replacing, serial = World(), job_directory(JOB, "top/sales/"), itertools.count()
    world.ask(replacing, "t", conflict=Conflict.REPLACE)

    def append() -> None:
        directory = job_directory(f"0b6f6f0e-0000-4000-8000-{next(serial):012x}", "top/")
        world.request(directory, world.attempt(directory, "t"))
        run_execution(world.unplanned, directory)

    world.plan.run_after("appends", append, times=None)
    world.run(replacing)
    assert world.failure(replacing).code == "DESTINATION_BUSY"
    assert world.ledger.holders == set()


ABOVE, INSIDE = job_directory(), job_directory(OTHER_JOB, "sales/dt=1/")
FILE = {f"dt=1/part-{JOB}.parquet": b"new"}


def replace_above(world: World, scope: Scope = Scope.DIRECTORY) -> int:
    """A job that replaces all of the table inside; how many files it says that it has replaced."""
    world.ask(ABOVE, files=FILE, conflict=Conflict.REPLACE, scope=scope)
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


def deployed(*allowed: str) -> World:
    """A bucket with data, behind a pipeline that allows replacing below ``allowed``."""
    world = World()
    world.ports = replace(world.ports, replace_below=allowed)
    for prefix in ("sales/", "sales10/", "sale/", "sales/eu/"):
        world.store.put(BUCKET, f"{prefix}old.parquet", b"old")
    return world


def asked(world: World, directory: JobDirectory, *tasks: str, **spec: Any) -> JobDirectory:
    """A job that replaces, with a file a task; without tasks it is empty."""
    world.open(directory, **{"conflict": Conflict.REPLACE, **spec})
    world.request(directory, *[world.attempt(directory, task) for task in tasks])
    return directory


def data(world: World) -> set[str]:
    return {key for key in world.all_keys() if key.endswith(".parquet")}


@pytest.mark.parametrize("tasks", [(), ("t0",)], ids=["empty", "with a file"])
@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize(
    ("allowed", "prefix", "refused"),
    [
        ([""], "sales/", False),
        (["sales/"], "sales/", False),
        (["finance/", "sales/"], "sales/eu/", False),
        ([], "sales/", True),
        (["finance/"], "sales/", True),
        (["sales/"], "sales10/", True),
        (["sales/"], "sale/", True),
        (["sales/eu/"], "sales/", True),
    ],
)
def test_i12_a_job_replaces_below_the_allowed_prefixes_alone(
    allowed: Iterable[str], prefix: str, refused: bool, scope: Scope, tasks: tuple[str, ...]
) -> None:
    world = deployed(*allowed)
    before = data(world)
    directory = asked(world, job_directory(prefix=prefix), *tasks, scope=scope)
    world.run(directory)
    if refused:
        failure = world.failure(directory)
        assert failure.code == "REPLACE_NOT_ALLOWED"
        assert directory.destination.uri in failure.message
        assert "replacePrefixes" in failure.message
        assert "finance" not in failure.message, "whose that is concerns no one else"
        assert data(world) == before
        assert world.open_uploads() == []
        assert "lock" not in world.plan.counts()
    else:
        assert world.result(directory).outcome is Outcome.COMMITTED


def test_i2_a_job_that_was_decided_before_the_list_got_shorter_is_finished() -> None:
    world = deployed("")
    directory = asked(world, job_directory(), "t0")
    world.plan.crash_after("decide")
    world.dies(directory)
    world.ports = replace(world.ports, replace_below=())
    world.run(directory, "execution-2")
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert set(world.visible()) == {f"sales/part-t0-{JOB}.parquet"}


@pytest.mark.parametrize("conflict", Conflict)
def test_i5_a_job_replaces_only_where_the_store_judges_the_etag(conflict: Conflict) -> None:
    """One that replaces nothing is not asked, nor whether it may."""

    def refuse(bucket: str) -> None:
        raise JobRefusedError(f"{bucket} ignores it", code="REPLACE_NOT_ALLOWED")

    world = deployed("") if conflict is Conflict.REPLACE else deployed()
    world.ports = replace(world.ports, check_deletes=refuse)
    before = data(world)
    directory = asked(world, job_directory(prefix="new/"), "t0", conflict=conflict)
    world.run(directory)
    if conflict is Conflict.REPLACE:
        assert world.failure(directory).code == "REPLACE_NOT_ALLOWED"
        assert data(world) == before
    else:
        assert world.result(directory).outcome is Outcome.COMMITTED
