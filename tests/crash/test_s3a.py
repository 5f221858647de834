"""A crash between any two calls of a job that an S3A driver left behind (I1-I5, I9).

As test_crash_points.py, with names that do not carry the job's id.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from s3commit.core.formats.documents import encode_request
from s3commit.core.model.job import CommitRequest, Outcome
from tests.core.test_s3a import data, exact_names
from tests.core.world import BUCKET, NEIGHBOUR, World, job_directory
from tests.crash.scenarios import lose_upload
from tests.fakes.faults import Crash, FaultPlan
from tests.golden.s3a.replay import Recorded, read, replay


def commit(world: World, recorded: Recorded) -> None:
    body = encode_request(CommitRequest(recorded.directory.job_id, None))
    world.store.put(BUCKET, recorded.directory.request, body, if_absent=True)


def halfway(world: World) -> Recorded:
    """The driver died in its own commit, with a file visible."""
    recorded = read("halfway")
    replay(world.store, recorded)
    commit(world, recorded)
    return recorded


def plain_names(world: World) -> Recorded:
    """No name says who wrote it, as in MapReduce's jobs."""
    recorded = exact_names(read("plain"))
    replay(world.store, recorded)
    commit(world, recorded)
    return recorded


def given_up(world: World) -> Recorded:
    """A task had written two files, and the rest is undone by request."""
    recorded = read("task_running")
    recorded.uploads = {key: part for key, part in recorded.uploads.items() if part is not None}
    recorded.ids = {key: old for key, old in recorded.ids.items() if key in recorded.uploads}
    replay(world.store, recorded)
    world.request_abort(recorded.directory)
    return recorded


def upload_gone(world: World) -> Recorded:
    """Refused, with a file visible that the driver had completed: it stays (I12)."""
    recorded = halfway(world)
    recorded.left = data(world)
    world.lose_uploads("sales/part-0000", slice(1))
    return recorded


def upload_lost(world: World) -> Recorded:
    """Rolled back: an upload is lost after the decision."""
    recorded = plain_names(world)
    lose_upload(world, "sales/part-0000")
    return recorded


SCENARIOS: list[tuple[Callable[[World], Recorded], Outcome]] = [
    (halfway, Outcome.COMMITTED),
    (plain_names, Outcome.COMMITTED),
    (given_up, Outcome.ABORTED),
    (upload_gone, Outcome.ABORTED),
    (upload_lost, Outcome.ROLLED_BACK),
]


def check_ended(world: World, recorded: Recorded, outcome: Outcome) -> None:
    directory = recorded.directory
    assert world.result(directory).outcome is outcome
    committed = outcome is Outcome.COMMITTED
    assert data(world) == (recorded.files if committed else recorded.left)
    assert (world.store.head(BUCKET, directory.success) is not None) is committed
    assert world.open_uploads() == [f"sales/part-0-{NEIGHBOUR}-c000.x", "sales2/theirs"]
    assert set(world.all_keys(directory.prefix)) <= {
        directory.prefix,
        directory.request,
        directory.result,
    }
    assert world.ledger._claims == {}


@pytest.mark.parametrize(
    ("scenario", "outcome"), SCENARIOS, ids=lambda value: getattr(value, "__name__", "")
)
@pytest.mark.parametrize("when", ["before", "answer lost"])
def test_i1_i2_i4_i5_i9_whatever_the_crash_point_an_s3a_job_ends_whole(
    when: str, scenario: Callable[[World], Recorded], outcome: Outcome
) -> None:
    point = 0
    while True:
        point += 1
        plan = FaultPlan()
        {"before": plan.crash_before, "answer lost": plan.lose_response}[when](nth=point)
        world = World(plan=plan)
        world.store.create_upload(BUCKET, "sales2/theirs", metadata={}, content_type="x")
        world.open(job_directory(NEIGHBOUR))
        theirs = f"sales/part-0-{NEIGHBOUR}-c000.x"
        world.store.create_upload(BUCKET, theirs, metadata={}, content_type="x")
        recorded = scenario(world)
        try:
            world.run(recorded.directory)
        except Crash:
            world.run(recorded.directory, "execution-2")
        check_ended(world, recorded, outcome)
        if not [call for call in plan.fired if call.number == point]:
            assert point > 15, "the enumeration must have reached the whole job"
            return


def test_i2_i3_a_task_that_wakes_up_and_writes_its_manifest_anew_undoes_the_whole_job() -> None:
    world = World()
    recorded = read("plain")
    replay(world.store, recorded)
    commit(world, recorded)
    woken = sorted(recorded.manifests)[-1]
    body = world.store.get(BUCKET, woken, max_bytes=10**6).body
    world.plan.run_before(
        "begin_unit", lambda: world.store.put(BUCKET, woken, body.replace(b'"t', b'"T'))
    )
    world.run(recorded.directory)
    assert world.result(recorded.directory).outcome is Outcome.ROLLED_BACK
    assert data(world) == {}
    assert world.open_uploads() == []
