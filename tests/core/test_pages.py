"""The pipeline's own lists: the same every time, and acted on as they were decided or not at all.

Plan, replace list and partitions are pages and an index below ``_s3commit/``, named by digests.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3commit.core.documents.job_json import JobSpec
from s3commit.core.documents.pages import grouped, read_index, whole_pages
from s3commit.core.documents.partition_list import read_partitions, write_partitions
from s3commit.core.documents.pendingset import MAX_ETAG, MAX_PARTS, PendingFile
from s3commit.core.documents.plan import (
    files_of_unit,
    parts_of,
    planned_files,
    unit_limits,
    write_plan,
)
from s3commit.core.documents.replace_list import decode_replaced, replaced_files, write_replaced
from s3commit.core.formats.layout import PIPELINE
from s3commit.core.formats.strict_json import dump
from s3commit.core.jobs.record import new_record
from s3commit.core.model import limits
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import PAGE_CHANGED, InvalidInputError, NeedsOperatorError
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.record import JobRecord, PlanFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.objects import ListedObject
from tests.core.policy_world import DATA, DT1, DT2, fill, new, start
from tests.core.world import BUCKET, JOB, World, job_directory

weights = st.lists(st.integers(1, MAX_PARTS), max_size=4_200)


def files_of(parts: list[int]) -> list[PendingFile]:
    return [
        PendingFile(BUCKET, f"sales/{number}-{JOB}.csv", f"u{number}", ("e",) * one, 5, rows=number)
        for number, one in enumerate(parts)
    ]


def record_of(plan: PlanFacts) -> JobRecord:
    directory = job_directory()
    record = new_record(JobSpec(JOB, directory.destination), directory, "2026-11-21T22:00:00.000Z")
    return replace(record, plan=plan)


def cut(files: Iterable[PendingFile], total: int) -> Iterator[list[PendingFile]]:
    most, most_parts = unit_limits(total)
    return grouped(files, most, parts_of, most_parts)


@given(weights)
def test_every_file_is_in_exactly_one_unit_and_in_order(parts: list[int]) -> None:
    files = files_of(parts)
    units = list(cut(files, total=len(files)))
    assert [file for unit in units for file in unit] == files
    assert len(units) <= limits.MAX_UNITS
    for unit in units:
        assert 0 < len(unit) <= limits.UNIT_FILES
        weight = sum(len(file.etags) for file in unit)
        assert weight <= limits.UNIT_PARTS or len(unit) == 1


@settings(max_examples=5)
@given(parts=st.sampled_from([1, 10_000]))
@pytest.mark.parametrize(
    "files",
    [limits.MAX_UNITS + 100, 10_240, pytest.param(limits.MAX_JOB_FILES, marks=pytest.mark.long)],
)
def test_many_files_make_no_more_units_than_the_machine_carries(files: int, parts: int) -> None:
    assert -(-limits.MAX_JOB_FILES // limits.UNIT_FILES) < limits.MAX_UNITS
    one = PendingFile(BUCKET, "sales/x.csv", "u", ("e",) * parts, 5)
    assert sum(1 for _ in cut((one for _ in range(files)), total=files)) <= limits.MAX_UNITS


def test_a_plan_comes_back_and_is_the_same_each_time() -> None:
    world, directory = World(), job_directory()
    files = files_of([1, 3, 10_000] * 10 + [1] * 500)
    sha256, units = write_plan(world.ports, directory, files, total=len(files))
    again, _ = write_plan(world.ports, directory, files, total=len(files))
    assert again == sha256
    record = record_of(PlanFacts(sha256, len(units), len(files), 5, None))
    assert list(planned_files(world.ports, directory, record)) == files
    assert [file for one in units for file in files_of_unit(world.store, directory, one)] == files
    pages = whole_pages(units)
    assert len(world.all_keys(PIPELINE)) == len(pages) + 1 < len(units)
    assert all(page.stop - page.start <= limits.PAGE_FILES for page in pages)


def test_a_page_of_the_longest_and_strangest_keys_can_be_read_again() -> None:
    """After the decision it is too late to find a page too long."""
    world, directory = World(), job_directory()
    strange = [
        ListedObject("sales/dt=1/" + chr(1) * 1_000 + f"{n:08d}", "e", n)
        for n in range(limits.DELETE_AT_ONCE)
    ]
    facts = write_replaced(world.ports, directory, strange)
    assert list(replaced_files(world.ports, directory, facts)) == strange

    widest = PendingFile(
        BUCKET, "sales/" + chr(1) * 1_000, "u", ("\x01" * MAX_ETAG,) * MAX_PARTS, 5
    )
    sha256, _ = write_plan(world.ports, directory, [widest], total=1)
    record = record_of(PlanFacts(sha256, 1, 1, 5, None))
    assert list(planned_files(world.ports, directory, record)) == [widest]


def test_i12_a_file_that_could_not_be_read_again_is_refused_before_the_decision() -> None:
    world, directory = World(), job_directory()
    commas = PendingFile(BUCKET, "sales/x.csv", "u", ("," * MAX_ETAG,) * MAX_PARTS, 5)
    with pytest.raises(InvalidInputError) as refused:
        write_plan(world.ports, directory, [commas], total=1)
    assert refused.value.code == "TOO_LARGE"


def test_a_line_of_the_replace_list_has_what_a_deletion_needs_and_no_more() -> None:
    """A field of a listing that no deletion needs is to be named as unwritten."""
    world, directory = World(), job_directory()
    facts = write_replaced(world.ports, directory, [ListedObject("sales/a", '"e"', 5, "2026Z")])
    (unit,) = read_index(world.store, directory.of_replaced, facts.sha256)
    key = directory.of_replaced.page(unit.page)
    page = world.store.get(BUCKET, key, max_bytes=10**6).body
    assert json.loads(page).keys() == {"key", "length", "etag"}


def test_partitions_come_back_the_root_among_them() -> None:
    world, directory = World(), job_directory()
    names = {"", "dt=1/", *(f"dt={number}/hour=é\n/" for number in range(2_500))}
    sha256 = write_partitions(world.ports, directory, names)
    record = record_of(PlanFacts("p", 1, 1, 1, None, partitions=sha256))
    assert read_partitions(world.ports, directory, record) == sorted(names)


def delete(world: World, key: str) -> None:
    world.store.delete(BUCKET, key)


def change(world: World, key: str) -> None:
    body = world.store.get(BUCKET, key, max_bytes=10**6).body
    world.store.put(BUCKET, key, body.replace(b"dt=1", b"dt=9") + b"\n")


def swell(world: World, key: str) -> None:
    world.store.put(BUCKET, key, b" " * (33 * 1024**2))


@pytest.mark.parametrize("strike", [delete, change, swell])
@pytest.mark.parametrize("number", range(5))
def test_i2_i5_a_list_that_is_not_the_decided_one_stops_the_job_until_it_is_restored(
    monkeypatch: pytest.MonkeyPatch, number: int, strike: Callable[[World, str], None]
) -> None:
    """Only a person with rights below ``_s3commit/`` can do that. Nothing is guessed or undone."""
    monkeypatch.setattr("s3commit.core.commit.verify_manifests.UNITS_OF_A_JOB", 0)  # not small
    world = World()
    fill(world, DATA)
    directory = start(world, Conflict.REPLACE, Scope.DIRECTORY, [DT1, DT2])
    kept: dict[str, bytes] = {}

    def tamper() -> None:
        own = world.all_keys(directory.pipeline_prefix)
        keys = [key for key in own if key != directory.decision]
        assert len(keys) == 4, "an index and a page of the plan, and of the replace list"
        for key in keys if number == 4 else [keys[number]]:
            kept[key] = world.store.get(BUCKET, key, max_bytes=10**6).body
            strike(world, key)

    world.plan.run_after("decide", tamper)
    with pytest.raises(NeedsOperatorError) as stopped:
        world.run(directory)
    assert stopped.value.code in {PAGE_CHANGED, "PLAN_NOT_READ"}
    assert set(DATA) <= set(world.visible())
    assert world.record(directory).state in {JobState.COMMITTING, JobState.PUBLISHING}
    for key, body in kept.items():
        world.store.put(BUCKET, key, body)
    world.run(directory, "execution-2")
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert set(world.visible()) == new(DT1, DT2)


@pytest.mark.parametrize(
    "key", ["sales2/x.parquet", "sales/_SUCCESS", "sales/_commits/x", "sales/dt=1/", "x"]
)
def test_i5_i7_a_replace_list_that_names_no_data_of_the_destination_is_refused(key: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        decode_replaced(dump({"key": key, "etag": "e", "length": 1}), job_directory())
    assert refused.value.code == "NOT_CONTAINED"


@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
def test_i3_i12_after_the_decision_no_document_of_the_client_is_read(conflict: Conflict) -> None:
    """All of them may be gone, or say something else: a second request too."""
    world = World()
    fill(world, DATA)
    directory = start(world, conflict, Scope.PARTITION, [DT1, DT2])

    def replace_all() -> None:
        for key in world.all_keys(directory.prefix):
            world.store.put(BUCKET, key, b"{}")
        world.plan.forget_calls()

    world.plan.run_after("decide", replace_all)
    world.run(directory)
    reads = [call.key for call in world.plan.calls if call.verb == "get"]
    assert [key for key in reads if key.startswith(directory.prefix)] == []
    assert world.result(directory).outcome is Outcome.COMMITTED
    assert new(DT1, DT2) <= set(world.visible())
