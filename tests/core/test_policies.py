"""Append, fail and replace, by directory and by partition: what is visible, and when."""

import pytest

from s3commit.core.formats.layout import PIPELINE, SUMMARIES
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.outcome import Failure, Outcome
from tests.core.enumerated import every_point
from tests.core.policy_world import (
    AT_ROOT,
    DATA,
    DT1,
    DT2,
    ONE,
    ONE_DEEP,
    ROOT,
    TEN,
    TWO,
    UNDERSCORED,
    fill,
    new,
    start,
)
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, World
from tests.fakes.faults import Crash, FaultPlan

OTHERS = f"sales/dt=1/part-0-{OTHER_JOB}.parquet"  # of a job that was committed before

# What is no data, or no matter of the destination.
KEPT = [
    "sales/",  # markers of directories
    "sales/dt=1/",
    "sales/_SUCCESS",
    "sales/dt=1/_SUCCESS",
    "sales/_metadata.txt",
    "sales/_temporary/_metadata",
    "sales/dt=1/.part.crc",
    "sales/.hidden/file.parquet",
    "sales/_temporary/0/part-0.parquet",
    f"sales/_commits/_{OTHER_JOB}.jsonl",
    f"sales/__magic_job-{OTHER_JOB}/_tasks/t/_a.pendingset",
    f"sales/dt=1/__magic_job-{NEIGHBOUR}/_job.json",
    "sales2/old.parquet",  # siblings, in the alphabet around it
    "sales10/dt=1/old.parquet",
    "sales-1/old.parquet",
    "sales.parquet",
    "sale/old.parquet",
]
DEEP = f"dt=1/hour=7/part-0-{JOB}.parquet"


def data_keys(world: World) -> set[str]:
    """Everything in the bucket that is not the protocol's own."""
    return {
        key
        for key in world.all_keys()
        if f"__magic_job-{JOB}/" not in key
        and f"_commits/_{JOB}" not in key
        and not key.startswith(PIPELINE)
    }


# Append and fail


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize(
    ("conflict", "found"), [(Conflict.APPEND, [*DATA, *KEPT]), (Conflict.FAIL, KEPT)]
)
def test_append_and_fail_remove_no_file(conflict: Conflict, found: list[str], scope: Scope) -> None:
    """Who fails where there is data minds nothing hidden and nothing beside the destination."""
    world = World()
    fill(world, found)
    directory = start(world, conflict, scope, [DT1, AT_ROOT])
    world.run(directory)
    assert data_keys(world) == set(found) | new(DT1, AT_ROOT)
    result = world.result(directory)
    assert (result.outcome, result.replaced) == (Outcome.COMMITTED, 0)


@pytest.mark.parametrize(
    ("scope", "names", "found", "refused"),
    [
        *((Scope.DIRECTORY, [DT1], found, True) for found in [*DATA, OTHERS]),
        (Scope.PARTITION, [DT1], ONE, True),
        (Scope.PARTITION, [DT1], ONE_DEEP, True),
        (Scope.PARTITION, [DEEP], ONE_DEEP, True),
        (Scope.PARTITION, [DT1, DT2], TWO, True),
        (Scope.PARTITION, [AT_ROOT], ROOT, True),
        (Scope.PARTITION, [DT1, AT_ROOT], ROOT, True),
        (Scope.PARTITION, [DEEP], ONE, False),
        (Scope.PARTITION, [DT1], TWO, False),
        (Scope.PARTITION, [DT1], TEN, False),
        (Scope.PARTITION, [DT1], ROOT, False),
        (Scope.PARTITION, [DT1], UNDERSCORED, False),
        (Scope.PARTITION, [AT_ROOT], ONE, False),
        # An object that has the name of a directory.
        (Scope.DIRECTORY, [DT1], "sales", True),
        (Scope.DIRECTORY, [DT1], "sales/dt=1", True),
        (Scope.PARTITION, [DT1], "sales", True),
        (Scope.PARTITION, [AT_ROOT], "sales", True),
        (Scope.PARTITION, [DT2, DT1], "sales/dt=1", True),
        (Scope.PARTITION, [DEEP], "sales/dt=1", True),
        (Scope.PARTITION, [DEEP], "sales/dt=1/hour=7", True),
    ],
)
def test_fail_minds_what_lies_in_the_directory_or_in_the_partitions_that_it_writes(
    scope: Scope, names: list[str], found: str, refused: bool
) -> None:
    world = World()
    fill(world, [found])
    directory = start(world, Conflict.FAIL, scope, names)
    world.run(directory)
    if refused:
        told = f"the destination is not empty (found {found}) and conflict is 'fail'"
        assert world.failure(directory) == Failure("DESTINATION_NOT_EMPTY", told)
        assert data_keys(world) == {found}
        assert world.open_uploads() == []
        assert world.ledger.holders == set()
    else:
        assert data_keys(world) == {found, "sales/_SUCCESS"} | new(*names)


# Replace


@pytest.mark.parametrize(
    ("scope", "names", "removed"),
    [
        (Scope.DIRECTORY, [DT1], [*DATA, OTHERS]),
        (Scope.DIRECTORY, [AT_ROOT], [*DATA, OTHERS]),
        (Scope.DIRECTORY, [], [*DATA, OTHERS]),
        (Scope.PARTITION, [DT1], [ONE, ONE_DEEP, OTHERS]),
        (Scope.PARTITION, [DEEP], [ONE_DEEP]),
        (Scope.PARTITION, [DEEP, DT1], [ONE, ONE_DEEP, OTHERS]),
        (Scope.PARTITION, [DT1, DT2], [ONE, ONE_DEEP, OTHERS, TWO]),
        (Scope.PARTITION, [AT_ROOT], [ROOT]),
        (Scope.PARTITION, [AT_ROOT, DT2], [ROOT, TWO]),
        (Scope.PARTITION, [], []),
    ],
)
def test_i5_replace_removes_what_its_scope_says_and_nothing_else(
    scope: Scope, names: list[str], removed: list[str]
) -> None:
    summaries = {
        f"{one.rpartition('/')[0]}/{name}": one in removed for one in DATA for name in SUMMARIES
    }
    world = World()
    fill(world, [*DATA, OTHERS, *KEPT, *summaries])
    directory = start(world, Conflict.REPLACE, scope, names)
    world.run(directory)
    kept = {one for one, goes in summaries.items() if not goes}
    assert data_keys(world) == {*DATA, OTHERS, *KEPT} - set(removed) | kept | new(*names)
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert world.result(directory).replaced == len(removed) + sum(summaries.values())


def test_i5_what_came_or_changed_or_went_after_it_was_listed_is_left_alone() -> None:
    world = World()
    fill(world, DATA)
    late = "sales/dt=1/late.parquet"

    def meanwhile() -> None:
        world.store.put(BUCKET, late, b"late")
        world.store.put(BUCKET, ONE, b"changed")
        world.store.delete(BUCKET, TWO)

    world.plan.run_after("decide", meanwhile)
    directory = start(world, Conflict.REPLACE, Scope.DIRECTORY, [DT1])
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert world.visible() == {
        late: b"late",
        ONE: b"changed",
        f"sales/{DT1}": f"new: {DT1}".encode(),
    }


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("when", ["before", "answer lost"])
def test_i10_at_no_point_is_anything_of_before_gone_while_a_new_file_is_invisible(
    when: str, scope: Scope
) -> None:
    """Looked at before each single call, of an execution that dies anywhere and of the next."""

    def check(point: int) -> FaultPlan:
        plan = FaultPlan()
        {"before": plan.crash_before, "answer lost": plan.lose_response}[when](nth=point)
        world = World(plan=plan)
        fill(world, [ONE, ONE_DEEP])
        directory = start(world, Conflict.REPLACE, scope, [DT1, DEEP])

        def look() -> None:
            there = set(world.visible())
            assert {ONE, ONE_DEEP} <= there or new(DT1, DEEP) <= there
            committed = f"sales/_commits/_{JOB}.jsonl" in world.all_keys()
            assert {ONE, ONE_DEEP} <= there or committed

        world.plan.run_before(None, look, times=None)
        try:
            world.run(directory)
        except Crash:
            world.run(directory, "execution-2")
        assert set(world.visible()) == new(DT1, DEEP)
        assert world.result(directory).replaced == 2
        return plan

    every_point(check, least=30)


@pytest.mark.parametrize("name", SUMMARIES)
def test_i5_a_summary_goes_with_an_overwrite_that_finds_nothing_else(name: str) -> None:
    world = World()
    fill(world, [f"sales/{name}"])
    directory = start(world, Conflict.REPLACE, Scope.DIRECTORY, [DT1])
    world.run(directory)
    assert data_keys(world) == {*new(DT1), "sales/_SUCCESS"}
