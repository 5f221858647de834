"""The plan: every counted file in exactly one unit, the same cut every time, a bounded number."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3commit.core.formats.plan import cut_units, decode_plan, encode_plan
from s3commit.core.model.limits import MAX_UNITS, UNIT_FILES, UNIT_PARTS

Manifests = list[tuple[str, str, list[int]]]

weights = st.lists(st.integers(1, 10_000), max_size=300)
manifests = st.lists(weights, max_size=20).map(
    lambda found: [(f"tasks/t{i}/a.pendingset", "0" * 64, parts) for i, parts in enumerate(found)]
)


def total(found: Manifests) -> int:
    return sum(len(parts) for _, _, parts in found)


@given(manifests)
def test_every_file_is_in_exactly_one_unit_and_in_order(found: Manifests) -> None:
    units = list(cut_units(found, total_files=total(found)))
    covered = [
        (part.manifest, index)
        for unit in units
        for part in unit.slices
        for index in range(part.start, part.stop)
    ]
    assert covered == [(name, index) for name, _, parts in found for index in range(len(parts))]
    assert [unit.number for unit in units] == list(range(len(units)))
    assert all(0 < unit.files <= UNIT_FILES for unit in units)


@given(manifests)
def test_a_plan_comes_back_and_is_the_same_each_time(found: Manifests) -> None:
    units = list(cut_units(found, total_files=total(found)))
    body = encode_plan(units)
    assert decode_plan(body) == units
    assert encode_plan(cut_units(found, total_files=total(found))) == body


@given(manifests.filter(lambda found: total(found) <= MAX_UNITS))
def test_a_unit_of_several_files_stays_within_its_parts(found: Manifests) -> None:
    by_name = {name: parts for name, _, parts in found}
    for unit in cut_units(found, total_files=total(found)):
        parts = sum(sum(by_name[part.manifest][part.start : part.stop]) for part in unit.slices)
        assert parts <= UNIT_PARTS or unit.files == 1


@settings(max_examples=5)
@given(st.sampled_from([1, 10, 100]), st.integers(1, 10_000))
@pytest.mark.parametrize(
    "files", [MAX_UNITS + 100, 20_000, 100_000, pytest.param(1_000_000, marks=pytest.mark.long)]
)
def test_many_files_make_no_more_units_than_the_state_machine_carries(
    files: int, per_task: int, parts: int
) -> None:
    tasks = files // per_task
    found = ((f"t{i}", "0", [parts] * per_task) for i in range(tasks))
    assert sum(1 for _ in cut_units(found, total_files=tasks * per_task)) <= MAX_UNITS
