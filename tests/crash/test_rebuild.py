"""A ledger that is made again while jobs are in the middle: locks, twice at once, and no change."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest

from s3commit.core.formats.file_names import belongs_to_job
from s3commit.core.model.errors import S3CommitError
from s3commit.core.model.job import Conflict, Destination, Outcome, Scope
from s3commit.core.model.locks import claimed
from s3commit.core.model.record import Stage
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ListedObject
from s3commit.core.rebuild import rebuild
from tests.core.lost_world import Checked
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, REF, World, job_directory
from tests.crash.rebuild_faults import FAULTS, disarm, unplanned, with_fault
from tests.crash.scenarios import KEY, POLICIES, SCENARIOS, Scenario, fill
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash, FaultPlan

EVERY = [*SCENARIOS, *POLICIES]
DIRECTORY, OTHER = job_directory(), job_directory(OTHER_JOB)


def two_replace(world: World) -> None:
    """Two jobs that replace the same directory."""
    fill(world)
    for directory in (DIRECTORY, OTHER):
        world.open(directory, conflict=Conflict.REPLACE)
        world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(2)])


def two_partitions(world: World) -> None:
    """Two jobs that replace one partition, and others beside it."""
    fill(world)
    for directory, own in ((DIRECTORY, 2), (OTHER, 3)):
        world.open(directory, conflict=Conflict.REPLACE, scope=Scope.PARTITION)
        files = {f"dt={day}/part-{directory.job_id}.csv": b"new" for day in (1, own)}
        world.request(directory, world.attempt(directory, "t", files=files))


def append_and_replace(world: World) -> None:
    """A job that appends, and one that replaces a directory above."""
    fill(world)
    world.request(DIRECTORY, *[world.attempt(DIRECTORY, f"t{number}") for number in range(2)])
    world.open(OTHER, conflict=Conflict.REPLACE)
    world.request(OTHER, world.attempt(OTHER, "t"))


def one_key(world: World) -> None:
    """Two jobs with one idempotency key."""
    for directory in (DIRECTORY, OTHER):
        world.open(directory, idempotency_key=KEY)
        world.request(directory, *[world.attempt(directory, f"t{number}") for number in range(2)])


PAIRS = [two_replace, two_partitions, append_and_replace, one_key]


def own_files(world: World, job_id: str) -> set[str]:
    """What is visible of the job."""
    visible = {*world.visible(), *world.visible("archive/")}
    return {key for key in visible if belongs_to_job(key, job_id)}


def has_ended(world: World, job_id: str) -> bool:
    record = world.ledger.job(job_directory(job_id).ref)
    return record is not None and record.state in ENDED


def test_i6_i8_an_event_that_meets_the_empty_table_takes_no_locks_from_a_decided_job() -> None:
    """Found by seed 2789: its record, opened without its locks, was left as it was."""
    desk = Checked(World(plan=FaultPlan().crash_after("complete_upload")))
    desk.world.open(DIRECTORY, conflict=Conflict.REPLACE)
    attempt = desk.world.attempt(DIRECTORY, "t0")
    desk.world.request(DIRECTORY, attempt)
    with contextlib.suppress(Crash):
        desk.world.run(DIRECTORY)
    desk.lose_ledger()
    disarm(desk.world)
    desk.world.announce(DIRECTORY, attempt)
    (rebuilt,) = desk.rebuild()
    assert (rebuilt.made, rebuilt.locks, rebuilt.state) == (True, 1, JobState.COMMITTING)
    assert desk.world.record(DIRECTORY).turn.stage is Stage.HELD


@pytest.mark.parametrize("prepare", PAIRS, ids=lambda one: one.__name__)
def test_i6_i8_who_was_decided_before_the_loss_has_its_locks_back(
    prepare: Callable[[World], None],
) -> None:
    """The first job dies, with the ledger, after each call; the other one is asked to go first."""
    other = OTHER
    waited = []
    for point in count(1):
        dying = FaultPlan().crash_after(nth=point)
        desk = Checked(World(plan=dying), destination=Destination(BUCKET, ""))
        prepare(desk.world)
        with contextlib.suppress(Crash):
            desk.world.run(DIRECTORY)
        if not [call for call in dying.fired if call.number == point]:
            break
        desk.lose_ledger()
        disarm(desk.world)
        started = [one.directory for one in desk.rebuild() if one.started]
        assert other in started
        world = desk.world

        def decides(world: World = world) -> None:
            assert has_ended(world, JOB) or not own_files(world, JOB), "decided side by side"

        plan = FaultPlan().run_before("decide", decides)
        ledger = plan.wrap(world.ledger)
        turns = iter([1])

        def lets_go_on(world: World = world, turns: Iterator[int] = turns) -> None:
            assert next(turns, None), "it waits for a job that has ended"
            waited.append(JOB)
            run_execution(unplanned(world), DIRECTORY, execution="execution-2")

        ports = Ports(world.store, ledger, world.clock)
        run_execution(ports, other, execution="execution-3", pause=lets_go_on)
        if world.store.head(BUCKET, DIRECTORY.result) is None:
            run_execution(unplanned(world), DIRECTORY, execution="execution-2")
        for directory in (DIRECTORY, other):
            if own_files(world, directory.job_id):  # else undone, or replaced by the other one
                assert world.result(directory).outcome is Outcome.COMMITTED
        assert world.ledger._claims == {}
        assert world.open_uploads() == []
    assert waited, "some deaths come between decision and end"


@pytest.mark.parametrize("when", FAULTS)
@pytest.mark.parametrize("prepare", PAIRS, ids=lambda one: one.__name__)
def test_i6_i8_locks_come_back_though_the_rebuild_dies_anywhere(
    when: str, prepare: Callable[[World], None]
) -> None:
    for point in count(1):
        desk = Checked(World(plan=FaultPlan().crash_after("complete_upload")))
        prepare(desk.world)
        with contextlib.suppress(Crash):
            desk.world.run(DIRECTORY)
        desk.lose_ledger()
        plan = desk.world.plan = with_fault(when, point)
        with contextlib.suppress(Crash, S3CommitError):
            desk.rebuild()
        fired = bool(plan.fired)
        disarm(desk.world)
        desk.rebuild()
        record = desk.world.ledger.job(REF)
        assert record is not None
        assert record.locks
        assert record.turn.stage is Stage.HELD
        assert {
            (record.ref, claim) for claim in claimed(record)
        } <= desk.world.ledger._claims.keys()
        assert {JOB, OTHER_JOB} <= {job_id for job_id, _ in desk.hands.started}
        if not fired:
            assert point > 20, "the enumeration must have reached the whole rebuild"
            return


@pytest.mark.parametrize("prepare", PAIRS, ids=lambda one: one.__name__)
def test_i6_i8_two_rebuilds_at_once_and_the_execution_that_one_of_them_starts(
    prepare: Callable[[World], None],
) -> None:
    """At each call of the one the other one comes and goes, and so does what it has started."""
    for point in count(1):
        desk = Checked(World(plan=FaultPlan().crash_after("complete_upload")))
        prepare(desk.world)
        with contextlib.suppress(Crash):
            desk.world.run(DIRECTORY)
        desk.lose_ledger()
        disarm(desk.world)
        beside = Checked(desk.world)
        plan = FaultPlan()

        def comes(desk: Checked = desk, beside: Checked = beside, plan: FaultPlan = plan) -> None:
            desk.world.plan = FaultPlan()
            beside.rebuild()
            run_execution(unplanned(desk.world), DIRECTORY, execution="execution-2")
            desk.world.plan = plan

        plan.run_before(None, comes, nth=point)
        desk.world.plan = plan
        desk.rebuild()
        disarm(desk.world)
        if not beside.hands.started:
            assert point > 20
            return
        for directory in (DIRECTORY, OTHER):
            run_execution(unplanned(desk.world), directory, execution="execution-3")
            assert has_ended(desk.world, directory.job_id)
        assert own_files(desk.world, OTHER_JOB) or prepare is one_key
        assert desk.world.ledger._claims == {}


@pytest.mark.parametrize("scenario", EVERY, ids=lambda one: one.name)
def test_i8_a_rebuild_of_a_ledger_that_is_not_lost_changes_nothing(scenario: Scenario) -> None:
    for point in count(1):
        plan = FaultPlan()
        desk = Checked(World(versioned=scenario.versioned[-1], plan=plan))
        desk.hands.running.add(JOB)
        scenario.prepare(desk.world)
        fired: list[int] = []

        def look(desk: Checked = desk, fired: list[int] = fired) -> None:
            fired.append(1)
            if desk.world.ledger.job(REF) is None:
                return
            ledger = desk.world.ledger
            kept, desk.world.plan = desk.world.plan, FaultPlan()
            before = copy.deepcopy((ledger._jobs, ledger._claims))
            stored = (desk.world.all_keys(), desk.world.open_uploads())
            assert [one.directory for one in desk.rebuild() if one.made or one.failed] == []
            assert (ledger._jobs, ledger._claims) == before
            assert (desk.world.all_keys(), desk.world.open_uploads()) == stored
            desk.world.plan = kept

        plan.run_before(None, look, nth=point)
        desk.world.run(DIRECTORY)
        assert desk.hands.started == []
        if not fired:
            assert point > 15
            return


@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
def test_i8_a_ledger_that_was_set_back_is_told_and_no_execution_goes_on_from_it(
    conflict: Conflict,
) -> None:
    """A table that was restored to a moment of before: of each state that the job was in."""
    plan, kept = FaultPlan(), {}
    desk = Checked(World(plan=plan))

    def keep() -> None:
        record = desk.world.ledger.job(REF)
        if record is not None:
            kept[record.state, record.generation] = record

    for nth in range(1, 100):
        plan.run_after(None, keep, nth=nth)
    fill(desk.world)
    desk.world.open(DIRECTORY, conflict=conflict)
    attempt = desk.world.attempt(DIRECTORY, "t0")
    desk.world.announce(DIRECTORY, attempt)
    desk.world.request(DIRECTORY, attempt)
    desk.world.run(DIRECTORY)
    disarm(desk.world)
    visible = desk.world.visible()
    assert {state for state, _ in kept} == {
        JobState.OPEN,
        JobState.SEALED,
        JobState.COMMITTING,
        JobState.PUBLISHING,
        JobState.COMMITTED,
    }
    for (state, _), record in kept.items():
        if state is JobState.COMMITTED:
            continue
        desk.world.ledger._jobs[REF] = record
        (told,) = desk.rebuild()
        assert (told.failed, told.started) == (True, False)
        assert "restored to a moment of before" in told.why
    assert desk.hands.started == []
    assert desk.world.visible() == visible
    desk.lose_ledger()
    (told,) = desk.rebuild()
    assert (told.state, told.made) == (JobState.COMMITTED, True)


def test_i8_a_whole_bucket_of_destinations_is_read_as_it_is_listed() -> None:
    desk = Checked(World(), destination=Destination(BUCKET, ""))
    ids = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(60)]
    for number, job_id in enumerate(ids):
        directory = job_directory(job_id, f"lake/{number % 7}/deep/{number % 5}/")
        desk.world.open(directory)
        attempt = desk.world.attempt(directory, "t0")
        if number % 3:
            desk.world.request(directory, attempt)
        if number % 3 == 1:
            desk.world.run(directory)
    desk.lose_ledger()
    read = []

    class Listing:
        def __getattr__(self, name: str) -> object:
            return getattr(desk.world.store, name)

        def list(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[ListedObject]:
            for listed in desk.world.store.list(bucket, prefix, after=after):
                if not prefix:
                    read.append(listed.key)
                yield listed

    own = desk.rebuilder
    lazy = replace(own, ports=replace(own.ports, store=Listing()))  # type: ignore[arg-type]
    found = rebuild(lazy, desk.destination)
    first = next(found)
    assert len(read) < 40, "it is told as it is found, behind what the pipeline wrote of each"
    states = [one.state for one in (first, *found)]
    assert [states.count(one) for one in (JobState.OPEN, JobState.COMMITTED)] == [40, 20]
    assert len(desk.hands.started) == 20
    assert {record.job_id for record in desk.world.ledger._jobs.values()} >= set(ids)


def test_i8_the_manifests_of_a_huge_job_are_noted_page_by_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("s3commit.core.rebuild.NOTED_AT_ONCE", 4)
    desk = Checked(World())
    for directory in (DIRECTORY, job_directory(NEIGHBOUR)):
        desk.world.open(directory)
        attempts = [desk.world.attempt(directory, f"t{number}") for number in range(10)]
    desk.world.request(job_directory(NEIGHBOUR), *attempts)
    desk.lose_ledger()
    desk.world.plan.forget_calls()
    assert [one.attempts for one in desk.rebuild()] == [10, 10]
    assert desk.world.plan.count("record_attempts") == 6
    assert len(list(desk.world.ledger.attempts(job_directory(NEIGHBOUR).ref))) == 10
