"""Partitions outside the destination: one decision for all places, and nothing at a stranger's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from s3commit.core.formats.documents import encode_job, encode_location
from s3commit.core.formats.locations import parse_locations, relative_in_table
from s3commit.core.formats.published import decode_commit_manifest
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import (
    Conflict,
    Destination,
    JobSpec,
    Scope,
)
from s3commit.core.model.limits import MAX_LOCATIONS
from s3commit.core.model.locks import LockMode
from s3commit.core.model.pending import PendingSet
from tests.core.lock_crowd import claims_of
from tests.core.two_places import (
    HERE_FILE,
    LOCATIONS,
    MAIN,
    OLD,
    OLD_HERE,
    OLD_THERE,
    PREFIX,
    THERE,
    THERE_FILE,
    asked,
    code,
    data,
    here,
    put_old,
    there,
)
from tests.core.world import BUCKET, JOB, OTHER_JOB, REF, World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash, FaultPlan


def test_i1_i2_all_places_have_one_decision() -> None:
    world = World()
    seen: list[object] = []
    world.plan.run_before("decide", lambda: seen.append(data(world)))
    asked(world)
    assert world.run(MAIN)[-1] == "TidyUp"
    assert seen == [{}]
    assert data(world) == {HERE_FILE: b"here", THERE_FILE: b"there"}
    assert world.open_uploads() == []
    assert world.all_keys("archive/") == [THERE.job, THERE_FILE]
    assert world.ledger._claims == {}


def test_the_commit_manifest_lists_the_keys_of_all_places() -> None:
    world = World()
    asked(world)
    world.run(MAIN)
    body = world.store.get(BUCKET, MAIN.commits, max_bytes=10**6).body
    header, files = decode_commit_manifest(body)
    assert header.locations == LOCATIONS
    assert [file.key for file in files] == [HERE_FILE, THERE_FILE]
    names = [relative_in_table(header.locations, MAIN.destination, file.key) for file in files]
    assert names == [f"dt=2/part-t0-{JOB}.parquet", f"dt=1/part-t0-{JOB}.parquet"]
    assert world.json("sales/_SUCCESS")["filenames"] == [f"/{HERE_FILE}", f"/{THERE_FILE}"]
    assert (world.result(MAIN).files, world.result(MAIN).bytes) == (2, 9)


def test_a_request_that_names_no_attempts_counts_what_lies_at_all_places() -> None:
    world = World()
    world.open(MAIN, locations=LOCATIONS)
    here(world)
    there(world, task="t1")
    body = json.dumps({"version": 1, "jobId": JOB, "action": "commit"}).encode()
    world.store.put(BUCKET, MAIN.request, body)
    world.run(MAIN)
    assert len(data(world)) == 2


@pytest.mark.parametrize("versioned", [False, True])
def test_i10_replace_in_scope_directory_takes_the_locations_with_it(versioned: bool) -> None:
    world = World(versioned=versioned)
    put_old(world)
    world.store.put(BUCKET, f"{PREFIX}_hidden", b"hidden")
    world.open(MAIN, locations=LOCATIONS, conflict=Conflict.REPLACE)
    world.request(MAIN, here(world))
    seen: list[object] = []
    world.plan.run_before("delete_seen", lambda: seen.append(data(world)))
    world.run(MAIN)
    assert seen == [{**OLD, HERE_FILE: b"here"}]
    assert data(world) == {HERE_FILE: b"here"}
    assert world.result(MAIN).replaced == 2
    assert f"{PREFIX}_hidden" in world.all_keys()


@pytest.mark.parametrize(
    ("counted", "left"),
    [
        ([here], {HERE_FILE: b"here", OLD_THERE: b"old"}),
        ([there], {THERE_FILE: b"there", OLD_HERE: b"old"}),
        ([here, there], {HERE_FILE: b"here", THERE_FILE: b"there"}),
    ],
    ids=["here", "there", "both"],
)
def test_i10_replace_in_scope_partition_takes_the_partitions_that_are_written(
    counted: list[Any], left: Mapping[str, bytes]
) -> None:
    world = World()
    put_old(world)
    world.open(MAIN, locations=LOCATIONS, conflict=Conflict.REPLACE, scope=Scope.PARTITION)
    world.request(MAIN, *[write(world) for write in counted])
    world.run(MAIN)
    assert data(world) == left


@pytest.mark.parametrize(
    ("scope", "write", "old", "refused"),
    [
        (Scope.DIRECTORY, here, OLD_THERE, True),
        (Scope.DIRECTORY, there, OLD_HERE, True),
        (Scope.PARTITION, here, OLD_THERE, False),
        (Scope.PARTITION, there, OLD_HERE, False),
        (Scope.PARTITION, there, OLD_THERE, True),
    ],
)
def test_fail_looks_at_the_locations_too(scope: Scope, write: Any, old: str, refused: bool) -> None:
    world = World()
    world.store.put(BUCKET, old, b"old")
    world.open(MAIN, locations=LOCATIONS, conflict=Conflict.FAIL, scope=scope)
    world.request(MAIN, write(world))
    world.run(MAIN)
    assert code(world) == ("DESTINATION_NOT_EMPTY" if refused else "")
    assert len(data(world)) == (1 if refused else 2)
    assert world.open_uploads() == []


@pytest.mark.parametrize(
    ("conflict", "scope", "partitions", "mode"),
    [
        (Conflict.APPEND, Scope.DIRECTORY, (), LockMode.SHARED),
        (Conflict.REPLACE, Scope.DIRECTORY, (), LockMode.EXCLUSIVE),
        (Conflict.FAIL, Scope.PARTITION, ("dt=1/",), LockMode.EXCLUSIVE),
        (Conflict.FAIL, Scope.PARTITION, ("dt=2/",), None),
    ],
)
def test_i6_a_location_is_locked_as_the_destination_that_it_is(
    conflict: Conflict, scope: Scope, partitions: tuple[str, ...], mode: LockMode | None
) -> None:
    wanted = claims_of(MAIN.destination, conflict, scope, partitions, "k", LOCATIONS)
    held = {claim.node: claim.mode for claim in wanted}
    assert held.get(f"lake/{PREFIX}") == mode
    (own,) = claims_of(THERE.destination, Conflict.REPLACE)
    assert any(own.meets(claim) for claim in wanted) == (mode is not None)


def test_i6_each_of_as_many_locations_as_are_allowed_is_claimed() -> None:
    most = {f"dt={n}/": f"far/away/dt{n}/" for n in range(MAX_LOCATIONS)}
    given = {name: f"s3://lake/{prefix}" for name, prefix in most.items()}
    assert parse_locations(given, MAIN.destination) == most
    partitions = [*most, *(f"h={n}/" for n in range(50))]
    wanted = claims_of(MAIN.destination, Conflict.REPLACE, Scope.PARTITION, partitions, "key", most)
    assert {claim.node for claim in wanted} >= {f"lake/{prefix}" for prefix in most.values()}


@pytest.mark.parametrize("swap", [False, True], ids=["there names here", "here names there"])
def test_i7_a_manifest_acts_in_its_own_place_alone(swap: bool) -> None:
    world = World()
    world.open(MAIN, locations=LOCATIONS)
    lies, names = (MAIN, THERE) if swap else (THERE, MAIN)
    file = world.upload(names, f"dt=2/part-t0-{JOB}.csv", b"x", task="t0", attempt="a0")
    counted = world.drop(lies, PendingSet(JOB, (file,), "t0", "a0"), "t0", "a0")
    world.request(MAIN, replace(counted, location="" if swap else PREFIX))
    world.run(MAIN)
    assert code(world) == "NOT_CONTAINED"
    assert data(world) == {}
    assert world.open_uploads() == []


def test_a_file_of_the_destination_in_a_partition_that_lies_elsewhere_is_refused() -> None:
    world = World()
    world.open(MAIN, locations=LOCATIONS)
    name = f"dt=1/part-t0-{JOB}.csv"
    world.request(MAIN, world.attempt(MAIN, "t0", files={name: b"x"}))
    world.run(MAIN)
    assert code(world) == "BAD_LOCATION"


@pytest.mark.parametrize("known", [True, False], ids=["manifest lies there", "nothing lies there"])
def test_a_request_can_not_count_what_lies_where_the_job_has_no_location(known: bool) -> None:
    world = World()
    counted = there(world) if known else replace(here(world), location="archive/x/")
    world.request(MAIN, counted)
    world.run(MAIN)
    assert code(world) == "BAD_LOCATION"
    assert data(world) == {}


def test_a_job_of_s3a_has_no_locations() -> None:
    world = World()
    counted = there(world)
    world.request(MAIN, counted)  # no job.json
    world.run(MAIN)
    assert code(world) == "BAD_LOCATION"
    assert world.open_uploads() == [THERE_FILE]


@pytest.mark.parametrize("theirs", ["a job", "a location of another", "nothing", "no JSON"])
def test_i5_i7_a_job_that_names_a_strangers_directory_has_no_effect_there(theirs: str) -> None:
    """Even under the stranger's own job id."""
    world = World()
    spec = JobSpec(JOB, Destination(BUCKET, "else/"), locations=LOCATIONS)
    if theirs == "a job":
        world.open(THERE)
    elif theirs != "nothing":
        body = encode_location(spec, PREFIX) if theirs == "a location of another" else b"{"
        world.store.put(BUCKET, THERE.job, body)
    stranger = there(world)
    world.store.put(BUCKET, OLD_THERE, b"old")
    world.store.put(BUCKET, f"{PREFIX}part-x-{JOB}.parquet", b"theirs")
    before = world.all_keys("archive/")
    mine = JobSpec(JOB, MAIN.destination, Conflict.REPLACE, locations=LOCATIONS)
    world.store.put(BUCKET, MAIN.job, encode_job(mine))
    world.request(MAIN, here(world), stranger)
    world.run(MAIN)
    assert code(world) == "LOCATION_NOT_AGREED"
    assert world.all_keys("archive/") == before
    assert world.open_uploads() == [THERE_FILE]


def test_i7_a_location_that_names_a_strangers_job_has_no_effect_on_it() -> None:
    world = World()
    world.open(MAIN)
    spec = JobSpec(JOB, MAIN.destination)
    world.store.put(BUCKET, THERE.job, encode_location(spec, PREFIX))
    with pytest.raises(InvalidInputError) as refused:
        world.announce(THERE, there(world))
    assert refused.value.code == "LOCATION_NOT_AGREED"
    assert world.ledger.job(REF) is None
    world.request(THERE)
    assert world.run(THERE) == ["SealJob", "Superseded"]
    assert world.ledger.job(REF) is None, "the job's id is not taken"
    world.request(MAIN, here(world))
    world.run(MAIN)
    assert code(world) == ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dt=1": "s3://other/x/"}, "another bucket"),
        ({"dt=1": "s3://lake/sales/x/"}, "overlap"),
        ({"dt=1": "s3://lake/sales"}, "overlap"),
        ({"dt=1": "s3://lake/a/", "dt=2": "s3://lake/a/b/"}, "overlap"),
        ({"dt=1": "s3://lake/a/", "dt=1/h=2": "s3://lake/b/"}, "overlap"),
        ({"dt=1": "s3://lake/a/", "dt=1/": "s3://lake/b/"}, "twice"),
        ({"dt=1": f"s3://lake/x/__magic_job-{JOB}/y"}, "no table may have"),
        ({"dt=1": "s3://lake/"}, "whole bucket"),
        ({"dt=1": "/x/y"}, "must look like"),
        ({"dt=1": 7}, "must be a text"),
        ({"": "s3://lake/a/"}, "no directory"),
        ({"../x": "s3://lake/a/"}, "no directory"),
        ({"/dt=1": "s3://lake/a/"}, "no directory"),
        ({"_x": "s3://lake/a/"}, "hidden"),
        ({f"dt={n}": f"s3://lake/a/{n}/" for n in range(MAX_LOCATIONS + 1)}, "at most"),
        ({f"dt={n}": f"s3://lake/a{n}/{n}/" for n in range(50)}, "too many"),
    ],
)
def test_locations_that_can_not_be_are_refused_with_one_line(
    given: Mapping[str, object], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message) as refused:
        parse_locations(given, MAIN.destination)
    assert "\n" not in str(refused.value)


def test_neighbours_by_name_do_not_overlap() -> None:
    given = {"dt=1": "s3://lake/sales2", "dt=10": "s3a://lake/sale/"}
    assert parse_locations(given, MAIN.destination) == {"dt=1/": "sales2/", "dt=10/": "sale/"}


def test_i6_a_job_whose_destination_is_the_location_waits() -> None:
    world = World(plan=FaultPlan().crash_after("decide"))
    asked(world)
    with pytest.raises(Crash):
        world.run(MAIN)
    other = job_directory(OTHER_JOB, PREFIX)
    world.open(other, conflict=Conflict.REPLACE)
    world.request(other, world.attempt(other, "t0"))
    waited: list[object] = []

    def finish() -> None:
        waited.append(data(world))
        world.run(MAIN, "execution-2")

    run_execution(world.ports, other, execution="execution-3", pause=finish)
    assert waited == [{}]
    theirs = f"{PREFIX}part-t0-{OTHER_JOB}.parquet"
    assert data(world) == {HERE_FILE: b"here", theirs: b"t0 a0"}, "as if one after the other"
