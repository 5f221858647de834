"""The replace list: many pages, strange keys, and lists that are not the decided one (I5, I7)."""

from __future__ import annotations

import pytest

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.manifest import digest
from s3commit.core.formats.strict_json import dump
from s3commit.core.job import replace_list
from s3commit.core.job.replace_list import listed_files
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.job import Conflict, Scope
from s3commit.core.model.limits import REPLACED_PAGE
from s3commit.core.model.record import ReplacedFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.objects import ListedObject
from tests.core.policy_world import (
    DATA,
    DT1,
    fill,
    is_removal,
    new,
    start,
)
from tests.core.world import BUCKET, JOB, World, job_directory


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
    facts = replace_list.write_list(world.ports, directory, strange)
    assert len(world.all_keys(directory.pages)) == 1
    groups = list(listed_files(world.store, directory, facts))
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
        list(listed_files(world.store, directory, ReplacedFacts(digest(index), 1, 1)))
    assert refused.value.code == "LIST_CHANGED"
