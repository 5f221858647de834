"""An empty ledger heals itself before anything is decided in it (I6, I8)."""

import contextlib
import json
from collections.abc import Callable
from functools import partial

import pytest

from s3commit.core.commit.note_arrivals import note_job
from s3commit.core.documents.decision_json import read_decision
from s3commit.core.documents.job_json import JobSpec
from s3commit.core.formats.layout import JobDirectory, owner_of
from s3commit.core.jobs import healing
from s3commit.core.jobs.healing import heal
from s3commit.core.jobs.record import new_record
from s3commit.core.model.destination import Conflict, Destination, Scope
from s3commit.core.model.errors import (
    AccessError,
    NeedsOperatorError,
    S3CommitError,
    TransientError,
)
from s3commit.core.model.limits import FUNCTION_CLOCKS, LONGEST_CALL
from s3commit.core.model.moments import seconds
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports import clock
from s3commit.core.ports.bundle import Ports
from tests.core.enumerated import every_point
from tests.core.world import BUCKET, JOB, OTHER_JOB, REF, World, job_directory
from tests.crash.scenarios import KEY, POLICIES, SCENARIOS, Scenario, check_ended, fill, lose
from tests.fakes.bucket import GET
from tests.fakes.execution import run_execution
from tests.fakes.faults import Crash, FaultPlan
from tests.fakes.memory import MemoryLedger

DIRECTORY, OTHER = job_directory(), job_directory(OTHER_JOB)


def two_replace(world: World) -> None:
    """Two jobs that replace the same directory."""
    fill(world)
    for directory in (DIRECTORY, OTHER):
        world.ask(directory, "t0", "t1", conflict=Conflict.REPLACE)


def two_partitions(world: World) -> None:
    """Two jobs that replace one partition, and others beside it."""
    fill(world)
    for directory, own in ((DIRECTORY, 2), (OTHER, 3)):
        world.open(directory, conflict=Conflict.REPLACE, scope=Scope.PARTITION)
        files = {f"dt={day}/part-{directory.job_id}.csv": b"new" for day in (1, own)}
        world.request(directory, world.attempt(directory, "t", files=files))


def append_and_replace(world: World) -> None:
    """A job that appends, and one that replaces the directory."""
    fill(world)
    world.ask(DIRECTORY, "t0", "t1")
    world.ask(OTHER, "t", conflict=Conflict.REPLACE)


def one_key(world: World) -> None:
    """Two jobs with one idempotency key."""
    for directory in (DIRECTORY, OTHER):
        world.ask(directory, "t0", "t1", idempotency_key=KEY)


PAIRS = [two_replace, two_partitions, append_and_replace, one_key]
each_pair = pytest.mark.parametrize("prepare", PAIRS, ids=lambda one: one.__name__)


def dies(world: World) -> None:
    with contextlib.suppress(Crash):
        world.run(DIRECTORY)


def decided(prepare: Callable[[World], None] = two_replace) -> World:
    """A world in which a job has lost the ledger after its decision; another one waits."""
    world = World(plan=FaultPlan().crash_after("complete_upload"))
    prepare(world)
    dies(world)
    lose(world)
    return world


def own_files(world: World, job_id: str) -> set[str]:
    return {key for key in world.visible() if owner_of(key) == job_id}


def has_ended(world: World, job_id: str) -> bool:
    record = world.ledger.job(job_directory(job_id).ref)
    return record is not None and record.state in ENDED


@each_pair
def test_i6_i8_i11_nothing_is_decided_beside_a_job_that_was_decided_before_the_loss(
    prepare: Callable[[World], None],
) -> None:
    """The first job dies, with the ledger, after each call; the other one comes before it."""
    waited = []

    def check(point: int) -> FaultPlan:
        dying = FaultPlan().crash_after(nth=point)
        world = World(plan=dying)
        prepare(world)
        dies(world)
        lose(world)

        def decides() -> None:
            alone = has_ended(world, JOB) or not own_files(world, JOB)
            assert alone or prepare is append_and_replace, "decided side by side"

        def resumes() -> None:
            world.clock.advance(60)
            record = world.ledger.job(REF)
            if record is not None and record.state not in ENDED:
                waited.append(JOB)
                run_execution(world.unplanned, DIRECTORY, execution="execution-2")

        plan = FaultPlan().run_before("decide", decides)
        ports = Ports(world.store, plan.wrap(world.ledger), world.clock)
        run_execution(ports, OTHER, execution="execution-3", pause=resumes)
        if world.store.head(BUCKET, DIRECTORY.result) is None:
            run_execution(world.unplanned, DIRECTORY, execution="execution-2")
        for directory in (DIRECTORY, OTHER):
            if own_files(world, directory.job_id):  # else undone, or replaced by the other one
                assert world.result(directory).outcome is Outcome.COMMITTED
        if prepare is one_key:
            ends = [world.result(directory).outcome for directory in (DIRECTORY, OTHER)]
            assert ends.count(Outcome.COMMITTED) == 1
        assert world.ledger.holders == set()
        assert world.open_uploads() == []
        return dying

    every_point(check)
    # Some deaths come between decision and end; who replaces does not wait for an append.
    assert bool(waited) == (prepare is not append_and_replace)


@pytest.mark.parametrize("when", ["before", "answer lost"])
@each_pair
def test_i6_i8_a_healing_that_dies_anywhere_is_continued(
    when: str, prepare: Callable[[World], None]
) -> None:
    def check(point: int) -> bool:
        world = decided(prepare)
        heal(world.ports, BUCKET)
        world.clock.advance(LONGEST_CALL + FUNCTION_CLOCKS)
        plan = FaultPlan()
        {"before": plan.crash_before, "answer lost": plan.lose_response}[when](nth=point)
        with contextlib.suppress(Crash, TransientError):
            heal(Ports(plan.wrap(world.store), plan.wrap(world.ledger), world.clock), BUCKET)
        world.heal()
        record = world.record(DIRECTORY)
        assert record.state is JobState.COMMITTING
        assert record.ref in world.ledger.holders
        return bool(plan.fired)

    every_point(check, least=5)


def test_i6_i8_of_two_that_heal_at_once_the_slower_one_changes_nothing_any_more() -> None:
    """At each call of the one the other one heals, and an execution ends the job."""

    def check(point: int) -> bool:
        world = decided()
        heal(world.ports, BUCKET)
        world.clock.advance(LONGEST_CALL + FUNCTION_CLOCKS)
        plan = FaultPlan()

        def comes() -> None:
            world.heal()
            run_execution(world.unplanned, DIRECTORY, execution="execution-2")

        plan.run_before(None, comes, nth=point)
        heal(Ports(plan.wrap(world.store), plan.wrap(world.ledger), world.clock), BUCKET)
        if plan.fired:
            assert heal(world.ports, BUCKET) == 0
            assert world.record(DIRECTORY).state is JobState.COMMITTED
            run_execution(world.unplanned, OTHER, execution="execution-3")
            assert world.result(OTHER).outcome is Outcome.COMMITTED
        return bool(plan.fired)

    every_point(check, least=5)


@pytest.mark.parametrize("healed", [False, True])
@pytest.mark.parametrize("scenario", [*SCENARIOS, *POLICIES], ids=lambda one: one.name)
def test_i2_i6_i8_the_execution_that_ran_when_the_ledger_was_lost_does_no_harm(
    scenario: Scenario, healed: bool
) -> None:
    """It continues in the empty table, before it is healed or after another one was decided."""

    def check(point: int) -> FaultPlan:
        world = scenario.begin(World())

        def lose_it() -> None:
            world.ledger.lose()
            if healed:
                world.heal()
                halfway = FaultPlan().crash_after("decide")
                ports = Ports(world.store, halfway.wrap(world.ledger), world.clock)
                with contextlib.suppress(Crash):
                    run_execution(ports, DIRECTORY, execution="execution-2")

        world.plan.run_before(None, lose_it, nth=point)
        with contextlib.suppress(S3CommitError):  # it fails: its job is another's
            world.run(DIRECTORY)
        run_execution(world.unplanned, DIRECTORY, execution="execution-3")
        if scenario.outcome is Outcome.COMMITTED:
            check_ended(world, scenario)
        elif world.result(DIRECTORY).outcome is Outcome.COMMITTED:
            assert scenario.code == "UPLOADS_LOST", "it was refused for a reason that still holds"
        else:
            assert world.visible() == scenario.visible
            assert world.open_uploads() == ["sales2/theirs"]
        return world.plan

    every_point(check)


def test_i8_nothing_is_done_while_a_function_may_run_that_asked_the_lost_table() -> None:
    world = decided()
    lost = world.clock.now()
    plan = FaultPlan().run_before(
        "open_job", lambda: moments.append(seconds(lost, world.clock.now()))
    )
    moments: list[float] = []
    ports = Ports(world.store, plan.wrap(world.ledger), world.clock)
    with pytest.raises(TransientError):
        note_job(ports, BUCKET, OTHER.job)
    assert run_execution(ports, DIRECTORY, execution="execution-2").count("SealJob") > 10
    assert moments[0] >= LONGEST_CALL + FUNCTION_CLOCKS


def test_a_new_bucket_is_not_waited_for() -> None:
    world = World()
    world.request(DIRECTORY, world.attempt(DIRECTORY, "t0"))
    assert heal(world.ports, BUCKET) == 0
    before = world.clock.now()
    assert world.run(DIRECTORY).count("SealJob") == 1
    assert seconds(before, world.clock.now()) < 1


def test_i8_a_long_walk_is_continued_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healing, "HEALED_AT_ONCE", 1)
    monkeypatch.setattr(clock, "CALL_SECONDS", 0)
    world = decided()
    heal(world.ports, BUCKET)
    world.clock.advance(LONGEST_CALL + FUNCTION_CLOCKS)
    listed = []
    while heal(world.ports, BUCKET):
        listed.append(world.ledger.healing(BUCKET, now="").until)
        assert len(listed) < 100
    assert listed == world.all_keys("_s3commit/")
    assert world.ledger.holders == {DIRECTORY.ref}


@pytest.mark.parametrize("ends", [False, True])
def test_i8_a_record_that_a_late_function_opened_gives_way_to_the_decision(ends: bool) -> None:
    world = decided()
    if ends:
        world.heal()
        run_execution(world.ports, DIRECTORY, execution="execution-2")
        world.ledger.lose()
    spec = JobSpec(JOB, DIRECTORY.destination)
    world.ledger.open_job(new_record(spec, DIRECTORY, world.clock.now()))
    world.heal()
    assert world.record(DIRECTORY).state is (JobState.COMMITTED if ends else JobState.COMMITTING)


def test_i2_i8_a_job_that_a_late_function_opens_again_stays_aborted() -> None:
    """Its result was put behind the look of that function. It would be committed by now."""
    world = World()
    fill(world)
    world.open(DIRECTORY, conflict=Conflict.FAIL)
    world.request(DIRECTORY)
    world.run(DIRECTORY)
    failure = world.failure(DIRECTORY)
    for key in world.visible():
        world.store.delete(BUCKET, key)
    world.ledger.lose()
    world.ledger.open_job(
        new_record(JobSpec(JOB, DIRECTORY.destination), DIRECTORY, world.clock.now())
    )
    world.run(DIRECTORY, "execution-2")
    assert world.record(DIRECTORY).state is JobState.ABORTED
    assert world.record(DIRECTORY).failure == failure


def test_i2_i8_a_late_function_takes_no_committed_job_back_to_where_it_may_be_rolled_back() -> None:
    """It read the decision record, then the job ended, and another one replaced a part of it."""
    world = decided(two_partitions)
    late = read_decision(world.ports, BUCKET, DIRECTORY.decision)
    assert late is not None and late.state is JobState.COMMITTING
    world.heal()
    for directory in (DIRECTORY, OTHER):
        world.run(directory, "execution-2")
    before = world.visible()
    world.ledger.lose()
    world.ledger.open_job(late)
    world.run(DIRECTORY, "execution-3")
    assert world.record(DIRECTORY).state is JobState.COMMITTED
    assert world.visible() == before


# A table that was restored from a backup.


def test_i2_i6_i8_a_restored_table_decides_nothing_until_an_empty_one_takes_its_place() -> None:
    """Whatever it was restored to, whatever an execution that still runs does next."""

    def check(point: int) -> bool:
        tables: list[MemoryLedger] = []
        world = World()
        two_replace(world)
        world.plan.run_before(None, lambda: tables.append(world.ledger.backup()), nth=point)
        world.run(DIRECTORY)
        if not tables or not tables[0].peek_healing():  # an empty one
            return bool(tables)
        world.plan, world.ports = FaultPlan(), world.unplanned
        committed = world.visible()
        world.ledger.restore(tables[0])
        for directory in (DIRECTORY, OTHER):
            with pytest.raises(NeedsOperatorError, match="restored from a backup") as raised:
                world.run(directory, "execution-2")
            assert raised.value.code == "LEDGER_RESTORED"
        assert world.visible() == committed
        world.ledger.lose()
        world.run(OTHER, "execution-3")
        assert world.result(OTHER).outcome is Outcome.COMMITTED
        assert own_files(world, JOB) == set()
        return True

    every_point(check)


def test_i6_an_execution_that_holds_its_destination_in_a_restored_table_is_not_decided() -> None:
    world = World()
    two_replace(world)
    world.plan.run_before("decide", lambda: world.ledger.restore(world.ledger.backup()))
    world.plan.run_before("healing", lambda: world.ledger.restore(world.ledger.backup()), nth=2)
    with pytest.raises(NeedsOperatorError, match="restored from a backup"):
        world.run(DIRECTORY)
    assert world.store.head(BUCKET, DIRECTORY.decision) is None


def test_i12_a_copy_of_a_bucket_brings_no_job_of_the_original_along() -> None:
    """The decision records of the original name its bucket: this pipeline works in its own."""
    world = decided()
    theirs = JobDirectory(Destination("original", "sales/"), JOB)
    copied = {**world.json(DIRECTORY.decision), "destination": theirs.destination.uri}
    world.store.put(BUCKET, theirs.decision, json.dumps(copied).encode())
    world.heal()
    assert world.ledger.job(theirs.ref) is None
    assert world.ledger.job(REF) is not None


def spoil(world: World, key: str, how: str) -> Callable[[], object]:
    """A decision record that can't be read, and its repair."""
    if how == "denied":
        world.store.deny(BUCKET, key, GET)
        return lambda: world.store.allow(BUCKET)
    stored = world.store.get(BUCKET, key, max_bytes=10**6).body
    other = {"emptied": b"", "of another": stored.replace(JOB.encode(), OTHER_JOB.encode())}
    world.store.put(BUCKET, key, other[how])
    return partial(world.store.put, BUCKET, key, stored)


PLACES = {"the table": "a/b/", "inside": "a/b/dt=1/", "above": "a/", "beside": "a/c/"}
HELD = {("the table", one) for one in Conflict} | {("inside", one) for one in Conflict}
HELD |= {("above", Conflict.REPLACE), ("above", Conflict.FAIL)}


@pytest.mark.parametrize("how", ["emptied", "of another", "denied"])
@pytest.mark.parametrize("left", ["nothing", "a document", "an upload"])
@pytest.mark.parametrize("conflict", Conflict)
@pytest.mark.parametrize("place", PLACES)
def test_i2_i6_i8_a_record_that_cannot_be_read_holds_the_jobs_that_its_own_may_meet(
    place: str, conflict: Conflict, left: str, how: str
) -> None:
    """Of the decided job ``left`` is the only trace; it is in an unfinished completion."""
    one, other = job_directory(prefix="a/b/"), job_directory(OTHER_JOB, PLACES[place])
    world = World(plan=FaultPlan().crash_before("complete_upload"))
    world.ask(one)
    with contextlib.suppress(Crash):
        world.run(one)
    lose(world)
    repair = spoil(world, one.decision, how)
    kept = {"a document": one.request, "an upload": "", "nothing": ""}[left]
    for key in set(world.all_keys(one.prefix)) - {kept}:
        world.store.delete(BUCKET, key)
    if left != "an upload":
        world.lose_uploads("a/b/")
    heal(world.ports, BUCKET)
    world.clock.advance(LONGEST_CALL + FUNCTION_CLOCKS)
    world.ask(other, conflict=conflict)
    held = (place, conflict) in HELD and (place != "above" or left != "nothing")
    if held:
        with pytest.raises(NeedsOperatorError, match=one.decision) as raised:
            world.run(other, "execution-2")
        assert raised.value.code == (
            "ACCESS_DENIED" if how == "denied" and place != "above" else "PAGE_CHANGED"
        )
        with pytest.raises((NeedsOperatorError, AccessError), match=one.decision):
            world.run(one, "execution-2")
        assert world.visible("a/") == {}
    else:
        world.run(other, "execution-2")
        assert world.result(other).outcome is Outcome.COMMITTED
    assert world.ledger.healing(BUCKET, now="").unread == (one.decision,)
    repair()
    world.heal()
    assert world.ledger.healing(BUCKET, now="").whole
    assert world.record(one).state is JobState.COMMITTING


def test_i8_an_object_of_others_named_as_a_record_holds_no_job_and_too_many_hold_all() -> None:
    world = decided()
    for number in range(healing.MAX_UNREAD):
        world.store.put(BUCKET, f"_s3commit/backup-{number}/_decision.json", b"{}")
    world.heal()
    run_execution(world.unplanned, DIRECTORY, execution="execution-2")
    assert world.result(DIRECTORY).outcome is Outcome.COMMITTED
    world.store.put(BUCKET, "_s3commit/zz/_decision.json", b"{}")
    with pytest.raises(NeedsOperatorError, match="_s3commit/"):
        heal(world.ports, BUCKET)
