"""The ledger is lost after any call of a job, and with it locks, plan and decision (I8).

The job is gone on with from what is in S3 alone: all or none of it (I2), and nothing of before is
gone unless the job is committed (I10), whatever else has happened in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from s3commit.core.formats.file_names import belongs_to_job
from s3commit.core.model.errors import NeedsOperatorError
from s3commit.core.model.job import Conflict, Outcome, Scope
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import Ports
from tests.core.world import BUCKET, JOB, OTHER_JOB, REF, World, job_directory
from tests.crash.scenarios import BEFORE, POLICIES, SCENARIOS, Scenario, check_ended, fill
from tests.fakes.faults import Crash, FaultPlan
from tests.fakes.memory import MemoryLedger

COMMITTED = [
    *(one for one in [*SCENARIOS, *POLICIES] if one.outcome is Outcome.COMMITTED),
]


def forget(world: World) -> None:
    """What runs from now on has an empty ledger, and dies no more."""
    world.ledger = MemoryLedger()
    world.ports = Ports(world.store, world.ledger, world.clock)


def at_every_call(
    check: Callable[[World], None], prepare: Callable[[World], None], **spec: bool
) -> None:
    """``check`` a world in which the job of ``prepare`` died, with the ledger, after each call."""
    point = 0
    while True:
        point += 1
        plan = FaultPlan().crash_after(nth=point)
        world = World(plan=plan, **spec)
        world.store.create_upload(BUCKET, "sales2/theirs", metadata={}, content_type="x")
        prepare(world)
        try:
            world.run(job_directory())
        except Crash:
            forget(world)
            check(world)
            continue
        if not [call for call in plan.fired if call.number == point]:
            assert point > 15, "the enumeration must have reached the whole job"
            return


@pytest.mark.parametrize("scenario", COMMITTED, ids=lambda one: one.name)
def test_i2_i4_i8_i10_i11_a_job_that_would_be_committed_is(scenario: Scenario) -> None:
    def check(world: World) -> None:
        world.run(job_directory(), "execution-2")
        check_ended(world, scenario)

    at_every_call(check, scenario.prepare, versioned=scenario.versioned[-1])


@pytest.mark.parametrize("scope", Scope)
def test_i2_i10_a_job_that_is_refused_when_it_is_brought_back_has_removed_nothing(
    scope: Scope,
) -> None:
    """An upload that was not completed yet expires meanwhile: old files or new, never neither."""

    def prepare(world: World) -> None:
        fill(world)
        directory = job_directory()
        world.open(directory, conflict=Conflict.REPLACE, scope=scope)
        files = {f"dt={number}/part-{JOB}.csv": b"new" for number in (1, 2)}
        world.request(directory, world.attempt(directory, "t", files=files))

    def check(world: World) -> None:
        for upload in list(world.store.list_uploads(BUCKET, "sales/"))[-1:]:
            world.store.abort_upload(BUCKET, upload.key, upload.upload_id)
        world.run(job_directory(), "execution-2")
        own = {key for key in world.visible() if belongs_to_job(key, JOB)}
        if world.result(job_directory()).outcome is Outcome.COMMITTED:
            assert len(own) == 2
        else:
            assert world.visible() == BEFORE
        assert world.open_uploads("sales/") == []

    at_every_call(check, prepare)


@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
def test_i2_i10_a_job_that_another_one_overtook_meanwhile_is_all_there_or_not_at_all(
    conflict: Conflict,
) -> None:
    """Its locks were lost too. The other one is decided beside it, which no lock can exclude."""
    other = job_directory(OTHER_JOB)

    def prepare(world: World) -> None:
        fill(world)
        directory = job_directory()
        world.open(directory, conflict=Conflict.REPLACE)
        world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(2)])
        world.open(other, conflict=conflict)
        world.request(other, world.attempt(other, "t"))

    def check(world: World) -> None:
        world.run(other)
        assert world.result(other).outcome is Outcome.COMMITTED
        assert {key for key in world.visible() if belongs_to_job(key, OTHER_JOB)}
        world.run(job_directory(), "execution-2")
        own = [key for key in world.visible() if belongs_to_job(key, JOB)]
        committed = world.result(job_directory()).outcome is Outcome.COMMITTED
        # Of a job that was committed before the other one replaced it, nothing is there.
        assert len(own) in ({0, 2} if committed else {0})
        assert world.open_uploads("sales/") == []

    at_every_call(check, prepare)


def test_i8_the_removal_goes_on_from_the_list_that_the_manifest_names() -> None:
    world = World(plan=FaultPlan().crash_before("delete_seen"))
    fill(world)
    directory = job_directory()
    world.open(directory, conflict=Conflict.REPLACE)
    world.request(directory, world.attempt(directory, "t0"))
    with pytest.raises(Crash):
        world.run(directory)
    header = world.store.get(BUCKET, directory.commits, max_bytes=10**6).body.splitlines()[0]
    assert b'"replaced":{"sha256":"' in header
    forget(world)
    late = "sales/late.csv"
    world.store.put(BUCKET, late, b"late")
    entered = world.run(directory, "execution-2")
    assert entered == ["SealJob", "RemoveReplaced", "PublishSuccess", "TidyUp"]
    assert set(world.visible()) == {f"sales/part-t0-{JOB}.parquet", late}
    assert world.result(directory).replaced == len(BEFORE)


def test_i8_a_list_that_was_tidied_up_is_not_asked_for_again() -> None:
    """The result is lost as well: only the manifest says that the job is committed."""
    world = World()
    fill(world)
    directory = job_directory()
    world.open(directory, conflict=Conflict.REPLACE)
    world.request(directory, world.attempt(directory, "t0"))
    world.run(directory)
    forget(world)
    world.store.delete(BUCKET, directory.result)
    world.store.put(BUCKET, "sales/old.csv", b"came after")
    world.run(directory, "execution-2")
    assert world.record(directory).state is JobState.COMMITTED
    assert world.visible()["sales/old.csv"] == b"came after"


# A table that was restored to a moment of before: worse than an empty one.


def records_of_its_life(world: World, **spec: Any) -> list[JobRecord]:
    """Run a job to its end; its record in the ledger after each call, without the last ones."""
    kept: dict[tuple[JobState, int], JobRecord] = {}

    def keep() -> None:
        record = world.ledger.job(REF)
        if record is not None:
            kept[record.state, record.generation] = record

    for nth in range(1, 150):
        world.plan.run_after(None, keep, nth=nth)
    fill(world)
    directory = job_directory()
    world.open(directory, **spec)
    attempt = world.attempt(directory, "t0", files={f"dt=1/x-{JOB}.csv": b"x"})
    world.announce(directory, attempt)
    world.request(directory, attempt)
    world.run(directory)
    return [record for (state, _), record in kept.items() if state not in ENDED]


def test_i2_a_roll_back_of_a_job_that_is_listed_is_not_begun() -> None:
    world = World()
    before = records_of_its_life(world)
    committing = next(one for one in before if one.state is JobState.COMMITTING)
    world.ports = Ports(world.store, world.ledger, world.clock)
    world.ledger._jobs[REF] = replace(committing, state=JobState.ROLLING_BACK)
    visible = world.visible()
    with pytest.raises(NeedsOperatorError, match="make it again in an empty one"):
        world.run(job_directory(), "execution-2")
    assert world.visible() == visible


# What S3 leaves open: a completion that takes effect after its upload was aborted.


@pytest.mark.parametrize("versioned", [False, True], ids=["plain", "versioned"])
def test_i2_a_completion_that_takes_effect_late_is_found_by_the_last_look(versioned: bool) -> None:
    world, directory = World(versioned=versioned), job_directory()
    world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(2)])
    uploads = list(world.store.list_uploads(BUCKET, "sales/"))
    key = uploads[0].key

    def lose_both() -> None:
        for upload in uploads:
            world.store.abort_upload(BUCKET, upload.key, upload.upload_id)

    def takes_effect() -> None:
        metadata = {"s3commit-job": JOB, "s3commit-task": "t0", "s3commit-attempt": "a0"}
        late = world.store.create_upload(BUCKET, key, metadata=metadata, content_type="")
        etag = world.store.upload_part(BUCKET, key, late, 1, b"t0 a0")
        world.store.complete_upload(BUCKET, key, late, [etag], length=5)

    world.plan.run_after("decide", lose_both)
    # RollBack has listed what is visible and found nothing; it looks once more.
    in_roll_back = iter(range(10))
    world.plan.run_after(
        "list",
        takes_effect,
        where=lambda call: call.arguments["prefix"] == "sales/" and next(in_roll_back) == 0,
    )
    assert world.run(directory)[-2:] == ["RollBack", "TidyUp"]
    assert world.result(directory).outcome is Outcome.ROLLED_BACK
    assert world.visible() == {}
