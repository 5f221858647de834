"""Append, fail and replace, by directory and by partition: what is visible before, during, after.

`PLACES` holds everything that may lie about a destination; each policy says what it minds of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from s3commit.core.formats.layout import PIPELINE, JobDirectory
from s3commit.core.formats.manifest import digest
from s3commit.core.formats.strict_json import dump
from s3commit.core.job import replace_list
from s3commit.core.job.replace_list import listed_files
from s3commit.core.model.conditions import Conditions
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.job import Conflict, JobResult, Outcome, Scope
from s3commit.core.model.limits import REPLACED_PAGE
from s3commit.core.model.record import ReplacedFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.objects import ListedObject
from s3commit.testing.faults import Call, Crash, FaultPlan
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, World, job_directory

# Data of before, by where it lies.
ROOT = "sales/old.parquet"
ONE = "sales/dt=1/old.parquet"
ONE_DEEP = "sales/dt=1/hour=7/old.parquet"
TWO = "sales/dt=2/old.parquet"
TEN = "sales/dt=10/old.parquet"
UNDERSCORED = "sales/_dt=1/old.parquet"  # a partition whose column begins with _
DATA = [ROOT, ONE, ONE_DEEP, TWO, TEN, UNDERSCORED]
OTHERS = f"sales/dt=1/part-0-{OTHER_JOB}.parquet"  # of a job that was committed before

# What is no data, or no matter of the destination.
KEPT = [
    "sales/",  # markers of directories
    "sales/dt=1/",
    "sales/_SUCCESS",
    "sales/dt=1/_SUCCESS",
    "sales/_metadata",
    "sales/dt=1/.part.crc",
    "sales/.hidden/file.parquet",
    "sales/_temporary/0/part-0.parquet",
    f"sales/_commits/{OTHER_JOB}.jsonl",
    f"sales/__magic_job-{OTHER_JOB}/tasks/t/a.pendingset",
    f"sales/dt=1/__magic_job-{NEIGHBOUR}/job.json",
    "sales2/old.parquet",  # siblings, in the alphabet around it
    "sales10/dt=1/old.parquet",
    "sales-1/old.parquet",
    "sales.parquet",
    "sale/old.parquet",
]

DT1, DT2, AT_ROOT = f"dt=1/part-0-{JOB}.parquet", f"dt=2/part-0-{JOB}.parquet", f"p-{JOB}.parquet"
DEEP = f"dt=1/hour=7/part-0-{JOB}.parquet"


def is_removal(call: Call) -> bool:
    """Whether data is deleted, and not what the job's work has left behind."""
    if call.verb != "delete_seen":
        return False
    return any(
        "/__magic_job-" not in seen.key and not seen.key.startswith(PIPELINE)
        for seen in call.arguments["objects"]
    )


def fill(world: World, keys: Iterable[str]) -> None:
    for key in keys:
        world.store.put(BUCKET, key, f"before: {key}".encode())


def start(
    world: World,
    conflict: Conflict,
    scope: Scope,
    names: Iterable[str],
    directory: JobDirectory | None = None,
) -> JobDirectory:
    """A job that is asked for: a task a file."""
    directory = directory or job_directory()
    world.open(directory, conflict=conflict, scope=scope)
    counted = [
        world.attempt(directory, f"t{number}", files={name: f"new: {name}".encode()})
        for number, name in enumerate(names)
    ]
    world.request(directory, *counted)
    return directory


def data_keys(world: World) -> set[str]:
    """Everything in the bucket that is not the protocol's own."""
    return {
        key
        for key in world.all_keys()
        if f"__magic_job-{JOB}/" not in key
        and f"_commits/{JOB}" not in key
        and not key.startswith(PIPELINE)
    }


def new(*names: str) -> set[str]:
    return {f"sales/{name}" for name in names}


def failure_of(result: JobResult) -> tuple[str, str]:
    assert result.error is not None
    return result.error.code, result.error.message


def watch(world: World, look: Callable[[], object]) -> None:
    """``look`` before each call of the pipeline."""

    def never(_: Call) -> bool:
        look()
        return False

    world.plan.run_before(None, lambda: None, where=never)


# Append


@pytest.mark.parametrize("scope", Scope)
def test_append_adds_files_and_removes_none(scope: Scope) -> None:
    world = World()
    fill(world, [*DATA, *KEPT])
    directory = start(world, Conflict.APPEND, scope, [DT1, AT_ROOT])
    world.run(directory)
    assert data_keys(world) == {*DATA, *KEPT} | new(DT1, AT_ROOT)
    assert (world.result(directory).outcome, world.result(directory).replaced) == (
        Outcome.COMMITTED,
        0,
    )


# Fail


@pytest.mark.parametrize("found", [*DATA, OTHERS])
def test_fail_by_directory_refuses_any_visible_file_and_names_it(found: str) -> None:
    world = World()
    fill(world, [found])
    directory = start(world, Conflict.FAIL, Scope.DIRECTORY, [DT1])
    world.run(directory)
    assert failure_of(world.result(directory)) == (
        "DESTINATION_NOT_EMPTY",
        f"conflict 'fail': {found} is there already",
    )
    assert data_keys(world) == {found}
    assert world.open_uploads() == []
    assert world.ledger._claims == {}


@pytest.mark.parametrize(
    ("names", "found", "refused"),
    [
        ([DT1], ONE, True),
        ([DT1], ONE_DEEP, True),
        ([DEEP], ONE_DEEP, True),
        ([DT1, DT2], TWO, True),
        ([AT_ROOT], ROOT, True),
        ([DT1, AT_ROOT], ROOT, True),
        ([DEEP], ONE, False),
        ([DT1], TWO, False),
        ([DT1], TEN, False),
        ([DT1], ROOT, False),
        ([DT1], UNDERSCORED, False),
        ([AT_ROOT], ONE, False),
    ],
)
def test_fail_by_partition_minds_the_partitions_that_it_writes_alone(
    names: list[str], found: str, refused: bool
) -> None:
    world = World()
    fill(world, [found])
    directory = start(world, Conflict.FAIL, Scope.PARTITION, names)
    world.run(directory)
    if refused:
        assert failure_of(world.result(directory))[0] == "DESTINATION_NOT_EMPTY"
        assert data_keys(world) == {found}
    else:
        assert data_keys(world) == {found, "sales/_SUCCESS"} | new(*names)


@pytest.mark.parametrize("scope", Scope)
def test_fail_minds_nothing_hidden_and_nothing_beside_the_destination(scope: Scope) -> None:
    world = World()
    fill(world, KEPT)
    directory = start(world, Conflict.FAIL, scope, [DT1])
    world.run(directory)
    assert data_keys(world) == set(KEPT) | new(DT1)


# Replace


@pytest.mark.parametrize("versioned", [False, True], ids=["plain", "versioned"])
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
    scope: Scope, names: list[str], removed: list[str], versioned: bool
) -> None:
    world = World(versioned=versioned)
    fill(world, [*DATA, OTHERS, *KEPT])
    directory = start(world, Conflict.REPLACE, scope, names)
    world.run(directory)
    assert data_keys(world) == {*DATA, OTHERS, *KEPT} - set(removed) | new(*names)
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert world.result(directory).replaced == len(removed)


@pytest.mark.parametrize("scope", Scope)
def test_i1_i9_i10_the_order_of_a_replacement(scope: Scope) -> None:
    """New files, then the manifest, then the deletes, then the marker: at the root, and last."""
    world = World()
    fill(world, [ONE, TWO])
    world.store.put(BUCKET, "sales/_SUCCESS", b"of the run before")
    directory = start(world, Conflict.REPLACE, scope, [DT1, DT2])
    world.run(directory)
    told = []
    for call in world.plan.calls:
        if call.verb == "complete_upload" or is_removal(call):
            told.append(call.verb)
        elif call.verb == "put" and call.key in {
            directory.commits,
            directory.success,
            directory.result,
        }:
            told.append(call.key.rsplit("/", 1)[-1])
    assert told == [
        "complete_upload",
        "complete_upload",
        f"{JOB}.jsonl",
        *["delete_seen"] * told.count("delete_seen"),
        "_SUCCESS",
        "result.json",
    ]
    assert world.all_keys("sales/dt=1/") == [f"sales/{DT1}"]
    assert world.json("sales/_SUCCESS")["jobId"] == JOB


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
def test_a_long_list_goes_over_several_pages_and_calls(
    scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replace_list, "REPLACED_PAGE", 7)
    monkeypatch.setattr(replace_list, "DELETE_AT_ONCE", 3)
    world = World()
    before = [f"sales/dt=1/{number:03d}.parquet" for number in range(40)]
    fill(world, before)
    pages: list[str] = []
    world.plan.run_before("decide", lambda: pages.extend(world.all_keys(job_directory().pages)))
    directory = start(world, Conflict.REPLACE, scope, [DT1])
    world.run(directory)
    assert len(pages) == 6
    deleted = [call.arguments["objects"] for call in world.plan.calls if is_removal(call)]
    assert sorted(listed.key for group in deleted for listed in group) == before
    assert max(map(len, deleted)) == 3
    assert world.result(directory).replaced == 40
    assert set(world.visible()) == new(DT1)
    assert world.all_keys(directory.pages) == []


def test_i5_hundreds_of_partitions_are_replaced_each_and_no_other_under_one_lock() -> None:
    world = World()
    keys = [f"sales/dt={number}/old.parquet" for number in range(300)]
    fill(world, keys)
    names = [f"dt={number}/part-{JOB}.parquet" for number in range(0, 300, 2)]
    world.open(directory := job_directory(), conflict=Conflict.REPLACE, scope=Scope.PARTITION)
    held: list[object] = []
    world.plan.run_before("decide", lambda: held.append(world.record(directory).locks))
    world.request(directory, world.attempt(directory, "t", files=dict.fromkeys(names, b"new")))
    world.run(directory)
    assert held == [("lake/sales/",)]
    assert world.result(directory).replaced == 150
    assert set(world.visible()) == set(keys[1::2]) | new(*names)


def test_a_page_of_the_longest_and_strangest_keys_can_be_read_again() -> None:
    """After the decision it is too late to find a page too long."""
    world, directory = World(), job_directory()
    start_of_key = "sales/dt=1/"
    strange = [
        ListedObject(start_of_key + chr(1) * (1024 - 8 - len(start_of_key)) + f"{n:08d}", "e", n)
        for n in range(REPLACED_PAGE)
    ]
    facts = replace_list.write_list(world.ports, directory, strange, overwrites=False)
    assert len(world.all_keys(directory.pages)) == 1
    groups = list(listed_files(world.store, [directory], facts))
    assert [listed for group in groups for listed in group] == strange


def test_i5_i7_a_list_that_is_not_the_decided_one_is_not_acted_on() -> None:
    for changed in ("index", "page", "gone"):
        world = World()
        fill(world, DATA)
        directory = start(world, Conflict.REPLACE, Scope.DIRECTORY, [DT1])

        def tamper(
            world: World = world, directory: JobDirectory = directory, what: str = changed
        ) -> None:
            world.store.put(BUCKET, "sales/dt=1/new.parquet", b"so that nothing proves the list")
            page = world.all_keys(directory.pages)[0]
            index = next(
                key for key in world.all_keys(directory.pipeline_prefix) if "/replaced-" in key
            )
            if what == "gone":
                world.store.delete(BUCKET, page)
                return
            key = page if what == "page" else index
            body = world.store.get(BUCKET, key, max_bytes=10**6).body
            world.store.put(BUCKET, key, body.replace(b"dt=1", b"dt=9") + b"\n")

        world.plan.run_after("decide", tamper)
        with pytest.raises(JobRefusedError) as refused:
            world.run(directory)
        assert refused.value.code == "LIST_CHANGED"
        assert set(DATA) <= set(world.visible())
        assert world.record(directory).state is JobState.PUBLISHING


@pytest.mark.parametrize(
    "key", ["sales2/x.parquet", "sales/_SUCCESS", "sales/_commits/x", "sales/dt=1/", "x"]
)
def test_i5_i7_a_list_that_names_what_is_no_data_of_the_destination_is_refused(key: str) -> None:
    world, directory = World(), job_directory()
    page = dump({"key": key, "etag": "e", "length": 1}) + b"\n"
    index = dump({"version": 1, "pages": [digest(page)]})
    world.store.put(BUCKET, directory.page(digest(page)), page)
    world.store.put(BUCKET, directory.replaced(digest(index)), index)
    with pytest.raises(JobRefusedError) as refused:
        list(listed_files(world.store, [directory], ReplacedFacts(digest(index), 1, 1)))
    assert refused.value.code == "LIST_CHANGED"


# Replace, and it comes to nothing


def lose_an_upload(world: World, name: str) -> Callable[[], None]:
    def lose() -> None:
        for upload in list(world.store.list_uploads(BUCKET, f"sales/{name}")):
            world.store.abort_upload(BUCKET, upload.key, upload.upload_id)

    return lose


@pytest.mark.parametrize("versioned", [False, True], ids=["plain", "versioned"])
@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("when", ["refused", "asked to abort", "rolled back"])
def test_i10_a_job_that_is_not_committed_removes_nothing(
    when: str, scope: Scope, versioned: bool
) -> None:
    world, directory = World(versioned=versioned), job_directory()
    fill(world, [*DATA, *KEPT])
    before = {key: world.store.get(BUCKET, key, max_bytes=99).body for key in [*DATA, *KEPT]}
    if when == "asked to abort":
        world.open(directory, conflict=Conflict.REPLACE, scope=scope)
        world.attempt(directory, "t", files={DT1: b"new"})
        world.request_abort(directory)
    else:
        start(world, Conflict.REPLACE, scope, [DT1, DT2], directory)
        verb = {"refused": "list_uploads", "rolled back": "decide"}[when]
        hook = world.plan.run_before if when == "refused" else world.plan.run_after
        hook(verb, lose_an_upload(world, DT2))
    world.run(directory)
    expected = Outcome.ROLLED_BACK if when == "rolled back" else Outcome.ABORTED
    assert world.result(directory).outcome is expected
    assert world.result(directory).replaced == 0
    assert data_keys(world) == {*DATA, *KEPT}
    assert {key: world.store.get(BUCKET, key, max_bytes=99).body for key in before} == before
    assert not [call for call in world.plan.calls if is_removal(call)]


@pytest.mark.parametrize("scope", Scope)
@pytest.mark.parametrize("when", ["before", "answer lost"])
def test_i10_at_no_point_is_anything_of_before_gone_while_a_new_file_is_invisible(
    when: str, scope: Scope
) -> None:
    """Looked at before each single call, of an execution that dies anywhere and of the next."""
    point = 0
    while True:
        point += 1
        plan = FaultPlan()
        {"before": plan.crash_before, "answer lost": plan.lose_response}[when](nth=point)
        world = World(plan=plan)
        fill(world, [ONE, ONE_DEEP])
        directory = start(world, Conflict.REPLACE, scope, [DT1, DEEP])

        def look(world: World = world) -> None:
            there = set(world.visible())
            assert {ONE, ONE_DEEP} <= there or new(DT1, DEEP) <= there
            committed = f"sales/_commits/{JOB}.jsonl" in world.all_keys()
            assert {ONE, ONE_DEEP} <= there or committed

        watch(world, look)
        try:
            world.run(directory)
        except Crash:
            world.run(directory, "execution-2")
        assert set(world.visible()) == new(DT1, DEEP)
        assert world.result(directory).replaced == 2
        if not [call for call in plan.fired if call.number == point]:
            assert point > 30, "the enumeration must have reached the whole job"
            return


# Conditions


def judged(
    conditions: Conditions, *bodies: bytes, nulls: dict[str, int] | None = None
) -> JobResult:
    """A job with a file of so many rows as it has bytes, a task a file."""
    world, directory = World(), job_directory()
    world.open(directory, conditions=conditions)
    counted = []
    for number, body in enumerate(bodies):
        files = {f"part-{number}-{JOB}.parquet": body}
        counted.append(world.attempt(directory, f"t{number}", files=files, nulls=nulls or {}))
    world.request(directory, *counted)
    world.run(directory)
    committed = world.result(directory).outcome is Outcome.COMMITTED
    assert len(world.visible()) == (len(bodies) if committed else 0)
    assert world.open_uploads() == []
    return world.result(directory)


@pytest.mark.parametrize(
    "conditions",
    [
        Conditions(min_rows=6),
        Conditions(max_rows=6),
        Conditions(min_files=2),
        Conditions(min_rows=6, max_rows=6, min_files=2, max_null_fraction={"x": 2 / 6}),
        Conditions(max_null_fraction={"x": 1.0}),
    ],
)
def test_a_job_that_meets_its_conditions_to_the_letter_is_committed(conditions: Conditions) -> None:
    assert judged(conditions, b"abcd", b"ef", nulls={"x": 1}).outcome is Outcome.COMMITTED


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        (Conditions(min_rows=7), "minRows is 7, the job has 6"),
        (Conditions(max_rows=5), "maxRows is 5, the job has 6"),
        (Conditions(max_rows=0), "maxRows is 0, the job has 6"),
        (Conditions(min_files=3), "minFiles is 3, the job has 2"),
        (
            Conditions(max_null_fraction={"x": 0.3, "y": 0}),
            "maxNullFraction.x is 0.3, the job has 0.3333 (2 of 6 rows)",
        ),
        (
            Conditions(max_null_fraction={"x": 0}),
            "maxNullFraction.x is 0, the job has 0.3333 (2 of 6 rows)",
        ),
        (Conditions(max_null_fraction={"z": 1}), "the nulls of column 'z' were not counted"),
    ],
)
def test_a_job_that_fails_a_condition_is_aborted_with_the_figure(
    conditions: Conditions, told: str
) -> None:
    result = judged(conditions, b"abcd", b"ef", nulls={"x": 1, "y": 0})
    assert result.outcome is Outcome.ABORTED
    assert failure_of(result) == ("CONDITION_FAILED", told)


def test_a_job_without_rows_meets_every_share_and_no_minimum() -> None:
    assert judged(Conditions(max_null_fraction={"x": 0.0})).outcome is Outcome.COMMITTED
    assert judged(Conditions(max_rows=0)).outcome is Outcome.COMMITTED
    empty = judged(Conditions(max_null_fraction={"x": 0.0}), b"", nulls={"x": 0})
    assert empty.outcome is Outcome.COMMITTED
    assert failure_of(judged(Conditions(min_rows=1)))[1] == "minRows is 1, the job has 0"
    assert failure_of(judged(Conditions(min_files=1)))[1] == "minFiles is 1, the job has 0"


def test_a_task_without_files_has_no_nulls_to_count() -> None:
    world, directory = World(), job_directory()
    world.open(directory, conditions=Conditions(max_null_fraction={"x": 0.0}))
    counted = world.attempt(directory, "t0", nulls={"x": 0})
    world.request(directory, counted, world.attempt(directory, "t1", files={}))
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED


def test_a_share_is_refused_if_one_file_did_not_count_its_nulls() -> None:
    world, directory = World(), job_directory()
    world.open(directory, conditions=Conditions(max_null_fraction={"x": 1.0}))
    first = world.attempt(directory, "t0", nulls={"x": 0})
    world.request(directory, first, world.attempt(directory, "t1"))
    world.run(directory)
    assert failure_of(world.result(directory))[1] == "the nulls of column 'x' were not counted"


@pytest.mark.parametrize("conditions", [Conditions(min_rows=1), Conditions(max_rows=9)])
def test_rows_that_nobody_counted_meet_no_condition_on_rows(conditions: Conditions) -> None:
    world, directory = World(), job_directory()
    world.open(directory, conditions=conditions)
    world.request(
        directory, world.attempt(directory, "t0", rows=None), world.attempt(directory, "t1")
    )
    world.run(directory)
    assert failure_of(world.result(directory)) == (
        "CONDITION_FAILED",
        "the rows were not counted: give the writer each file's rows",
    )


def test_rows_need_not_be_counted_where_no_condition_asks() -> None:
    world, directory = World(), job_directory()
    world.open(directory, conditions=Conditions(min_files=1))
    world.request(directory, world.attempt(directory, "t0", rows=None))
    world.run(directory)
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert world.result(directory).rows is None


def test_the_ledger_keeps_the_nulls_of_the_columns_that_a_condition_names_alone() -> None:
    """A manifest may name any columns: the item of a job is bounded all the same."""
    world, directory = World(), job_directory()
    world.open(directory, conditions=Conditions(max_null_fraction={"x": 1.0}))
    many = {"x": 1} | {f"{number}" * 100: 1 for number in range(90)}
    world.request(directory, world.attempt(directory, "t0", nulls=many))
    world.run(directory)
    plan = world.record(directory).plan
    assert plan is not None
    assert plan.nulls == {"x": 1}
    assert world.result(directory).outcome is Outcome.COMMITTED


def test_conditions_are_judged_before_the_policy_looks_and_nothing_is_listed() -> None:
    world, directory = World(), job_directory()
    fill(world, DATA)
    world.open(directory, conflict=Conflict.REPLACE, conditions=Conditions(min_rows=10**6))
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    assert failure_of(world.result(directory))[0] == "CONDITION_FAILED"
    assert set(world.visible()) == set(DATA)
