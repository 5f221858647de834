"""What the pipeline may not read ends its own job, and no other; an outage ends none (I12, I2)."""

from typing import Any

import pytest

from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import AccessError
from s3commit.core.model.limits import DENIED_LOOKS
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import ENDED
from tests.core.world import JOB, World, job_directory
from tests.fakes.execution import run_execution

DENIED = AccessError("KMS: AccessDenied")


def reads(key: str) -> dict[str, Any]:
    return {"where": lambda call: call.key.endswith(key), "times": None}


@pytest.mark.parametrize("name", ["_job.json", "_request.json", "t0/_a0.pendingset"])
@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
def test_i12_a_document_under_a_strangers_key_aborts_its_job(name: str, conflict: Conflict) -> None:
    world, directory = World(), job_directory()
    world.ask(directory, "t0", "t1", conflict=conflict)
    world.plan.fail("get", DENIED, **reads(name)).fail("head", DENIED, **reads(name))
    world.run(directory)
    assert world.ended(directory) == (Outcome.ABORTED, "UNREADABLE")
    assert world.ledger.holders == set()
    assert world.visible() == {}
    assert world.open_uploads() == []


def test_i12_one_that_becomes_unreadable_before_its_conditions_are_judged_aborts_its_job() -> None:
    world, directory = World(), job_directory()
    world.ask(directory, "t0", "t1", conflict=Conflict.REPLACE)
    world.plan.run_after("lock", lambda: world.plan.fail("get", DENIED, **reads("_job.json")))
    run_execution(world.ports, directory, alone=True)
    assert world.failure(directory).code == "UNREADABLE"
    assert world.ledger.holders == set()


@pytest.mark.parametrize("name", ["_job.json", "_request.json", "t0/_a0.pendingset"])
def test_i2_while_the_pipelines_objects_are_unreadable_too_the_job_comes_again(name: str) -> None:
    world, directory = World(), job_directory()
    world.ask(directory, "t0", "t1")
    world.plan.fail("get", DENIED, **reads(name) | {"times": 2})  # once more by VerifyManifests
    world.plan.fail("get", DENIED, where=lambda call: "/_pages/" in call.key, times=2)
    with pytest.raises(AccessError):
        world.run(directory)
    assert world.record(directory).state not in ENDED if world.ledger.job(directory.ref) else True
    run_execution(world.unplanned, directory, execution="execution-2")
    assert world.result(directory).outcome is Outcome.COMMITTED


@pytest.mark.parametrize("times", range(1, DENIED_LOOKS + 2))
def test_i2_a_completion_that_is_denied_for_a_moment_is_tried_again(times: int) -> None:
    """By other calls of all units, after a pause; the result says what S3 said."""
    world, directory = World(), job_directory()
    world.ask(directory, "t0", "t1")
    denied = reads(f"part-t1-{JOB}.parquet") | {"times": times}
    world.plan.fail("complete_upload", DENIED, **denied)
    entered = world.run(directory)
    assert entered.count("CompleteUploads") == min(times, DENIED_LOOKS) + 1
    if times <= DENIED_LOOKS:
        assert world.ended(directory) == (Outcome.COMMITTED, "")
    else:
        assert world.ended(directory) == (Outcome.ROLLED_BACK, "UPLOADS_LOST")
        assert DENIED.message in world.failure(directory).message


def test_i2_what_is_lost_beside_what_is_denied_is_not_waited_for() -> None:
    world, directory = World(), job_directory()
    world.ask(directory, "t0", "t1")
    world.lose_after_decision(f"sales/part-t0-{JOB}")
    world.plan.fail("complete_upload", DENIED, **reads(f"part-t1-{JOB}.parquet"))
    assert world.run(directory).count("CompleteUploads") == 1
    assert world.ended(directory) == (Outcome.ROLLED_BACK, "UPLOADS_LOST")
    assert "UPLOAD_GONE: " in world.failure(directory).message


@pytest.mark.parametrize("lost", [False, True], ids=["all visible", "one lost"])
def test_i2_i12_what_lies_at_a_files_key_is_judged_by_listing_where_it_can_not_be_read(
    lost: bool,
) -> None:
    world, directory = World(), job_directory()
    world.ask(directory, "t0", "t1")
    if lost:
        world.lose_after_decision(f"sales/part-t1-{JOB}", slice(1))
    world.plan.lose_response("complete_upload", **reads(f"part-t0-{JOB}.parquet"))
    world.plan.fail("head", DENIED, where=lambda call: "/part-" in call.key, times=None)
    world.run(directory)
    assert world.result(directory).outcome is (Outcome.ROLLED_BACK if lost else Outcome.COMMITTED)
    assert len(world.visible()) == (0 if lost else 2)
