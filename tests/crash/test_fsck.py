"""Repairs that die at any call, and ledgers that are lost at any call and made again (I8)."""

from __future__ import annotations

import contextlib
import random
from itertools import count

import pytest

from s3commit.core.formats.layout import META_JOB, JobDirectory
from s3commit.core.fsck.repair import Repaired
from s3commit.core.fsck.verdict import Action
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import Names, Outcome
from s3commit.core.model.locks import key_digest
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import Ports
from tests.core.fsck_world import Checked, make
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, REF, World, job_directory
from tests.crash.fsck_faults import (
    FAULTS,
    disarm,
    each_scenario,
    prepared,
    unplanned,
    with_fault,
)
from tests.crash.scenarios import (
    KEY,
    Scenario,
    check_ended,
)
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash, FaultPlan

# Repairs.


def spoil(world: World) -> None:
    """A destination with one of each thing that can be repaired, beside what must stay."""
    committed, undone, live = job_directory(), job_directory(OTHER_JOB), job_directory(NEIGHBOUR)
    world.open(committed, names=Names.EXACT)
    world.request(committed, world.attempt(committed, "t0", files={"a.csv": b"a"}))
    run_execution(unplanned(world), committed)
    world.open(undone, idempotency_key=KEY)
    world.request(undone, world.attempt(undone, "t0"))
    roll_back(world, undone)
    world.attempt(committed, "late", files={"late.csv": b"late"})
    make(world, f"sales/zombie-{OTHER_JOB}.csv", job_id=OTHER_JOB)
    world.attempt(undone, "late")
    note = b'{"version":1,"key":"' + KEY.encode() + b'","jobId":"' + OTHER_JOB.encode() + b'"}'
    world.store.put(BUCKET, undone.once(key_digest(KEY)), note)
    marker = world.store.get(BUCKET, committed.success, max_bytes=10**6).body
    world.store.put(BUCKET, committed.success, marker.replace(JOB.encode(), OTHER_JOB.encode()))
    world.request(live, world.attempt(live, "t0"))
    world.store.put(BUCKET, "sales/theirs.csv", b"theirs")
    world.store.create_upload(BUCKET, "sales/theirs-too.csv", metadata={}, content_type="")


def roll_back(world: World, directory: JobDirectory) -> None:
    """Run a job of one file, and have its upload lost after the decision."""
    (upload,) = (
        one for one in world.store.list_uploads(BUCKET, "sales/") if directory.job_id in one.key
    )

    def lose() -> None:
        world.store.abort_upload(BUCKET, upload.key, upload.upload_id)

    plan = FaultPlan().run_after("decide", lose)
    ports = Ports(plan.wrap(world.store), plan.wrap(world.ledger), world.clock)
    assert "RollBack" in run_execution(ports, directory)


def remains(world: World) -> tuple[dict[str, bytes], list[str], list[str]]:
    return world.visible(), world.all_keys("sales/_"), world.open_uploads()


@pytest.mark.parametrize("versioned", [False, True], ids=["plain", "versioned"])
@pytest.mark.parametrize("when", FAULTS)
def test_i2_i4_i5_a_repair_that_dies_anywhere_is_gone_on_with(when: str, versioned: bool) -> None:
    whole = Checked(World(versioned=versioned))
    spoil(whole.world)
    # The visible zombie, its upload's manifest; the late ones; the note, the marker, the request.
    assert whole.names() == [
        "LEFT_VISIBLE",
        "MARKER_OF_UNDONE",
        "ONCE_LEFT",
        "REQUEST_UNHEARD",
        "SCRATCH_LEFT",
        "SCRATCH_LEFT",
        "UPLOAD_LEFT",
        "UPLOAD_LEFT",
    ]
    whole.repair()
    assert whole.names() == ["REQUEST_UNHEARD"], "its execution has not begun"
    expected = remains(whole.world)
    assert set(expected[0]) == {"sales/a.csv", "sales/theirs.csv"}
    assert sorted(expected[2]) == [ITS_FILE, "sales/theirs-too.csv"]
    for point in count(1):
        plan = with_fault(when, point)
        desk = Checked(World(versioned=versioned, plan=plan))
        spoil(desk.world)
        with contextlib.suppress(Crash, S3CommitError):
            desk.repair()
        fired = bool(plan.fired)
        disarm(desk.world)
        desk.repair()
        assert remains(desk.world) == expected
        assert set(desk.hands.started) == {(NEIGHBOUR, 0)}
        if not fired:
            assert point > 25, "the enumeration must have reached the whole repair"
            return


LIVE = job_directory(NEIGHBOUR)
ITS_FILE = f"sales/part-t0-{NEIGHBOUR}.parquet"


@pytest.mark.parametrize("versioned", [False, True], ids=["plain", "versioned"])
def test_i2_i4_i5_a_job_that_is_committed_at_any_call_of_a_repair_is_whole(versioned: bool) -> None:
    for point in count(1):
        plan = FaultPlan()
        desk = Checked(World(versioned=versioned, plan=plan))
        spoil(desk.world)
        came: list[int] = []

        def commits(desk: Checked = desk, came: list[int] = came, plan: FaultPlan = plan) -> None:
            came.append(1)
            desk.world.plan = FaultPlan()
            run_execution(unplanned(desk.world), LIVE)
            desk.world.plan = plan

        plan.run_before(None, commits, nth=point)
        desk.repair()
        disarm(desk.world)
        if not came:
            assert point > 25, "the enumeration must have reached the whole repair"
            return
        assert desk.world.record(LIVE).state is JobState.COMMITTED
        assert desk.world.result(LIVE).outcome is Outcome.COMMITTED
        desk.repair()
        assert desk.findings() == []
        assert set(desk.world.visible()) == {
            "sales/a.csv",
            "sales/theirs.csv",
            ITS_FILE,
        }
        assert desk.world.open_uploads() == ["sales/theirs-too.csv"]
        assert desk.world.store.head(BUCKET, LIVE.commits) is not None


@each_scenario
def test_i5_a_repair_at_any_call_of_a_job_leaves_it_to_end_as_it_would(scenario: Scenario) -> None:
    """Nobody tells the check that the execution runs: the ledger's word is enough."""
    for point in count(1):
        plan = FaultPlan()
        desk = prepared(scenario, plan)
        done: list[Repaired] = []

        def look(desk: Checked = desk, done: list[Repaired] = done) -> None:
            kept, desk.world.plan = desk.world.plan, FaultPlan()
            ended = desk.world.store.head(BUCKET, job_directory().result) is not None
            done.extend(desk.repair())
            # Until it has ended nothing of it is repaired, but somebody may be called to it.
            actions = {one.action for found in done for one in found.finding.repairs}
            record = desk.world.ledger.job(REF)
            if not ended and (record is None or record.state not in ENDED):
                assert actions <= {Action.START_EXECUTION}
            desk.world.plan = kept

        plan.run_before(None, look, nth=point)
        desk.world.run(job_directory())
        check_ended(desk.world, scenario)
        disarm(desk.world)
        assert desk.findings() == []
        if not done and not [call for call in plan.fired if call.number == point]:
            assert point > 15
            return


def scramble(world: World, dice: random.Random) -> None:
    """A few things that no job does."""
    ids = [JOB, OTHER_JOB, NEIGHBOUR, "0b6f6f0e-0000-4000-8000-00000000000f"]
    for _ in range(dice.randrange(1, 7)):
        keys, job_id = world.all_keys("sales/"), dice.choice(ids)
        name = f"sales/{dice.choice(['', 'dt=1/'])}x{dice.randrange(9)}-{job_id}.csv"
        choice = dice.randrange(8)
        if choice == 0:
            world.store.delete(BUCKET, dice.choice(keys))
        elif choice == 1:
            world.store.put(BUCKET, dice.choice(keys), dice.choice([b"", b"{", b"{}"]))
        elif choice == 2:
            source = world.store.get(BUCKET, dice.choice(keys), max_bytes=10**6).body
            world.store.put(BUCKET, dice.choice(keys), source)
        elif choice == 3:
            make(world, name, job_id=dice.choice(ids))
        elif choice == 4:
            world.store.put(BUCKET, name, b"by hand")
        elif choice == 5:
            world.store.create_upload(BUCKET, name, metadata={}, content_type="")
        elif choice == 6:
            world.ledger._jobs.pop(job_directory(job_id).ref, None)
        else:
            source = world.store.get(BUCKET, dice.choice(keys), max_bytes=10**6).body
            body = source.replace(JOB.encode(), job_id.encode())
            world.store.put(BUCKET, dice.choice(keys).replace(OTHER_JOB, job_id), body)


def listed_files(world: World) -> set[str]:
    """What a list in ``_commits/`` names, however broken the rest of it is."""
    found = set()
    for key in world.all_keys("sales/_commits/"):
        body = world.store.get(BUCKET, key, max_bytes=10**6).body
        found |= {key for key in world.all_keys("sales/") if f'"key":"{key}"'.encode() in body}
    return found


@pytest.mark.parametrize("seeds", [80, pytest.param(300, marks=pytest.mark.long)])
def test_i4_i5_whatever_happened_to_a_destination_a_repair_touches_only_what_is_proven(
    seeds: int,
) -> None:
    for seed in range(seeds):
        dice = random.Random(seed)
        desk = Checked(World(versioned=bool(seed % 2)))
        world = desk.world
        spoil(world)
        scramble(world, dice)
        facts = {key: world.store.head(BUCKET, key) for key in world.visible()}
        proven = {key for key, one in facts.items() if one and META_JOB in one.metadata}
        listed = listed_files(world)
        working = {
            upload
            for upload in world.store.list_uploads(BUCKET, "")
            if NEIGHBOUR in upload.key or upload.key == "sales/theirs-too.csv"
        }
        ended = {one.job_id for one in world.ledger._jobs.values() if one.state in ENDED}
        told = {job for job in (JOB, OTHER_JOB, NEIGHBOUR) if _has_result(world, job)}
        desk.repair()
        gone = facts.keys() - world.visible().keys()
        assert gone <= proven - listed, seed
        for key in gone:
            before = facts[key]
            assert before is not None
            assert before.metadata[META_JOB] in ended | told, seed
        if NEIGHBOUR not in told:
            assert working <= set(world.store.list_uploads(BUCKET, "")), seed
        left = remains(world)
        assert {one.action for found in desk.findings() for one in found.repairs} <= {
            Action.START_EXECUTION
        }, seed
        desk.repair()
        assert remains(world) == left, seed


def _has_result(world: World, job_id: str) -> bool:
    directory = job_directory(job_id)
    return bool({directory.result, directory.commits} & set(world.all_keys("sales/")))
