"""TidyUp: what goes when a job has ended, how, and what stays (I4)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from s3commit.core.formats.layout import is_data
from s3commit.core.model.limits import CALL_SECONDS, DELETE_AT_ONCE
from tests.core.world import BUCKET, World, job_directory
from tests.fakes.execution import STEPS
from tests.moments import Table


def test_all_manifests_go_with_a_request_for_each_thousand() -> None:
    world, directory = World(), job_directory()
    world.open(directory)
    for number in range(2 * DELETE_AT_ONCE + 1):
        world.store.put(BUCKET, directory.manifest(f"loser{number}", "a0"), b"")
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    groups = [call.arguments["objects"] for call in world.plan.calls if call.verb == "delete_seen"]
    assert [len(group) for group in groups] == [DELETE_AT_ONCE, DELETE_AT_ONCE, 4]
    assert world.plan.counts().get("delete", 0) == 0
    assert world.all_keys(directory.tasks) == []


def test_i4_a_manifest_that_was_put_anew_since_it_was_listed_stays() -> None:
    world, directory = World(), job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    late = directory.manifest("t0", "a1")
    world.store.put(BUCKET, late, b"first")
    world.plan.run_before("delete_seen", lambda: world.store.put(BUCKET, late, b"second"))
    world.run(directory)
    assert world.all_keys(directory.tasks) == [late]


def test_i4_more_uploads_than_a_call_has_time_for_are_left_to_the_next_one() -> None:
    world, directory = World(), job_directory()
    for number in range(20):
        world.attempt(directory, f"loser{number}")
    world.request(directory, world.attempt(directory, "t0"))
    slow = CALL_SECONDS / 5
    world.plan.run_before("abort_upload", lambda: world.clock.advance(slow), times=None)
    assert world.run(directory).count("TidyUp") == 4
    assert world.open_uploads() == []
    assert world.all_keys(directory.tasks) == []


@pytest.mark.parametrize("partitioned", [False, True])
def test_what_vanishes_when_no_job_waits_for_its_answer_has_a_name_with_an_underscore(
    partitioned: bool,
) -> None:
    """As docs/guide/readers.md says. A job that replaces files is answered when they are gone."""
    world = World()
    table = Table(world.ports, BUCKET, "json", partitioned)
    seen: list[set[str]] = []

    def look() -> None:
        keys = world.store.list(BUCKET, table.prefix)
        seen.append({one.key.removeprefix(table.prefix) for one in keys})

    table.live(look, tuple(STEPS))
    vanished: dict[bool, set[str]] = {True: set(), False: set()}
    for before, after in pairwise(seen):
        asked = sum(name.endswith("_request.json") for name in after)
        answered = sum(name.endswith("_result.json") for name in after)
        vanished[asked == answered] |= before - after
    assert len([name for name in vanished[False] if is_data(name)]) == 4
    assert vanished[True]
    assert [name for name in vanished[True] if is_data(name)] == []
