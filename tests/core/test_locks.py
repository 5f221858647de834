"""Locks on directories: who meets whom, who waits for whom, and what appends need (I6)."""

import itertools
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3commit.core.commit.acquire_destination import acquire_destination
from s3commit.core.documents.ticket import Ticket
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model import limits
from s3commit.core.model.destination import Conflict, Destination, Scope
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.locks import nodes_above, nodes_to_lock
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.record import JobRecord, PlanFacts
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports
from tests.core.world import JOB, NEIGHBOUR, OTHER_JOB, World, job_directory
from tests.fakes.execution import run_execution
from tests.fakes.memory import ManualClock, MemoryLedger, MemoryObjectStore

NOW = "2026-11-21T22:00:00.000Z"


def record_of(prefix: str, job_id: str = JOB, **fields: Any) -> JobRecord:
    found = JobRecord(job_id, Destination("lake", prefix), JobState.SEALED, 1, NOW, NOW)
    return replace(found, **{"conflict": Conflict.REPLACE, **fields})


def locked(prefix: str, *partitions: str, **fields: Any) -> tuple[str, ...]:
    scope = Scope.PARTITION if partitions else Scope.DIRECTORY
    return nodes_to_lock(record_of(prefix, scope=scope, **fields), partitions)


# What a job locks


def test_an_append_locks_nothing_and_the_others_lock_what_they_replace_or_need_empty() -> None:
    for conflict, nodes in ((Conflict.APPEND, ()), (Conflict.REPLACE, ("lake/sales/",))):
        world, directory = World(), job_directory()
        world.commit(directory, conflict=conflict)
        assert world.record(directory).locks == nodes
    for conflict in (Conflict.REPLACE, Conflict.FAIL):
        assert locked("t/", conflict=conflict) == ("lake/t/",)
        assert locked("t/", "b=2/", "a=1/", "", conflict=conflict) == (
            *("lake/t/./", "lake/t/a=1/", "lake/t/b=2/"),
        )


@pytest.mark.parametrize("count", [limits.MAX_NODES, limits.MAX_NODES + 1])
def test_too_many_partitions_are_escalated_to_the_destination(count: int) -> None:
    nodes = locked("t/", *(f"d={number}/" for number in range(count)))
    assert len(nodes) == (count if count <= limits.MAX_NODES else 1)
    deep = locked("t/", *(f"d={number}/h=1/" for number in range(limits.MAX_ITEMS // 2)))
    assert deep == ("lake/t/",)  # with the nodes above they are too many for one transaction


def test_a_partition_too_long_for_a_key_of_dynamodb_is_escalated() -> None:
    longest = "d" * (limits.MAX_NODE_BYTES - len("lake/t/") - 1) + "/"
    assert locked("t/", longest) == (f"lake/t/{longest}",)
    assert locked("t/", "d" + longest) == ("lake/t/",)


def test_a_destination_that_lies_too_deep_is_refused() -> None:
    assert len(locked("d/" * (limits.MAX_ITEMS - 1))) == 1
    with pytest.raises(JobRefusedError, match="is too deep") as refused:
        locked("d/" * limits.MAX_ITEMS)
    assert refused.value.code == "TOO_DEEP"


# Who meets whom


@dataclass(frozen=True)
class Write:
    """A job as the property below sees it: where, and which partitions it replaces."""

    prefix: str
    scope: Scope
    partitions: tuple[str, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        return nodes_to_lock(record_of(self.prefix, scope=self.scope), self.partitions)

    def replaces(self, key: str) -> bool:
        """Whether the job may replace or mind the file: the policy's own words."""
        if not key.startswith(self.prefix):
            return False
        relative = key[len(self.prefix) :]
        return self.scope is Scope.DIRECTORY or any(
            relative.startswith(name) if name else "/" not in relative for name in self.partitions
        )


ELEMENTS = ["a/", "b/", "ab/"]
DIRECTORIES = [
    "".join(path) for size in (1, 2, 3) for path in itertools.product(ELEMENTS, repeat=size)
]
FILES = [directory + "file" for directory in DIRECTORIES] + [
    directory + last + "file" for directory in DIRECTORIES for last in ELEMENTS
]
WRITES = st.builds(
    Write,
    prefix=st.sampled_from(DIRECTORIES[:12]),
    scope=st.sampled_from(Scope),
    partitions=st.lists(
        st.sampled_from(["", *DIRECTORIES[:12]]), min_size=1, max_size=3, unique=True
    ).map(tuple),
)


@settings(max_examples=400, deadline=None)
@given(one=WRITES, other=WRITES)
def test_i6_two_jobs_wait_for_each_other_if_and_only_if_both_replace_a_file(
    one: Write, other: Write
) -> None:
    """Equal, above, below, sets of partitions, nested ones, the root as one, siblings in name."""
    meet = any(one.replaces(key) and other.replaces(key) for key in FILES)
    first, second = set(one.nodes), set(other.nodes)
    at_or_above = first & {*second, *nodes_above(second)}
    below = second & {*nodes_above(first)}
    assert bool(at_or_above or below) == meet


# The step


class Two:
    """Jobs with a plan, and a ledger; no execution."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.ledger = MemoryLedger()
        self.ports = Ports(MemoryObjectStore("lake", clock=self.clock), self.ledger, self.clock)

    def put(self, prefix: str, job_id: str, **fields: Any) -> JobRecord:
        plan = PlanFacts("f" * 64, 0, 0, 0, 0)
        now = self.clock.now()
        record = record_of(prefix, job_id, plan=plan, created_at=now, updated_at=now, **fields)
        return self.ledger.open_job(record)

    def decided(self, prefix: str, job_id: str) -> JobRecord:
        """A job that holds its destination until it has ended, however long that takes."""
        locks = locked(prefix)
        return self.put(prefix, job_id, state=JobState.COMMITTING, locks=locks, decided_at=NOW)

    def ask(self, record: JobRecord) -> Ticket:
        directory = JobDirectory.of(record)
        ticket = Ticket(directory.job_id, "lake", directory.prefix, generation=1)
        return acquire_destination(self.ports, replace(ticket, plan=directory.index("f" * 64)))

    def record(self, record: JobRecord) -> JobRecord:
        found = self.ledger.job(record.ref)
        assert found is not None
        return found

    def end(self, record: JobRecord) -> None:
        for state in (JobState.ABORTING, JobState.ABORTED):
            self.ledger.advance(self.record(record), state, now=self.clock.now())


@pytest.mark.parametrize("first", ["t/", "t/a/", "t/a/b/"])
def test_i6_who_comes_second_waits_at_above_and_below_for_the_first_ones_end(first: str) -> None:
    two = Two()
    holder, waiting = two.put(first, JOB), two.put("t/a/", OTHER_JOB)
    assert two.ask(holder).acquired
    assert two.ask(holder).acquired  # again, as after a lost answer
    ticket = two.ask(waiting)
    assert (ticket.acquired, ticket.pause) == (False, limits.SHORTEST_WAIT)
    waits = two.record(waiting).waits
    assert waits is not None
    assert waits.behind == (holder.ref,)
    two.end(holder)
    assert two.ask(waiting).acquired


def test_i6_who_waits_for_those_below_keeps_new_ones_from_coming() -> None:
    two = Two()
    below, above = two.put("t/a/", JOB), two.put("t/", OTHER_JOB)
    late = two.put("t/b/", NEIGHBOUR)
    assert two.ask(below).acquired
    assert not two.ask(above).acquired
    assert not two.ask(late).acquired
    two.end(below)
    assert two.ask(above).acquired
    assert not two.ask(late).acquired


def test_who_waits_asks_more_seldom_says_that_it_lives_and_gives_up_after_an_hour() -> None:
    two = Two()
    two.decided("t/", JOB)
    waiting = two.put("t/", OTHER_JOB)
    start, pauses, seen = two.clock.now(), [], []
    with pytest.raises(JobRefusedError, match=JOB) as refused:
        for _ in range(limits.MAX_WAIT_SECONDS):
            pauses.append(two.ask(waiting).pause)
            seen.append(two.record(waiting).updated_at)
            two.clock.advance(pauses[-1])
    assert refused.value.code == "DESTINATION_BUSY"
    assert pauses[0] == limits.SHORTEST_WAIT
    assert pauses == sorted(pauses)
    assert pauses[-1] == limits.LONGEST_WAIT
    assert limits.MAX_WAIT_SECONDS <= sum(pauses) <= limits.MAX_WAIT_SECONDS + limits.LONGEST_WAIT
    assert start <= seen[0]
    assert len(set(seen)) > limits.MAX_WAIT_SECONDS / (
        limits.LONGEST_WAIT + limits.WAITER_REFRESH_SECONDS
    )


@pytest.mark.parametrize(("holder", "told"), [("t/", True), ("t/a/", True), ("", False)])
def test_i12_a_refusal_names_jobs_at_its_own_destination_alone(holder: str, told: bool) -> None:
    two = Two()
    two.decided(f"x/{holder}", JOB)
    waiting = two.put("x/t/", OTHER_JOB)
    two.ask(waiting)
    two.clock.advance(limits.MAX_WAIT_SECONDS)
    with pytest.raises(JobRefusedError) as refused:
        two.ask(waiting)
    assert (JOB in refused.value.message) == told


def test_who_has_waited_long_for_partitions_locks_the_whole_destination() -> None:
    """Else others that lock one partition each could go before it for ever."""
    world = World()
    holder, waiting = job_directory(JOB), job_directory(OTHER_JOB)
    for directory, days in ((holder, "1"), (waiting, "12")):
        files = {f"dt={day}/part-{directory.job_id}.csv": b"x" for day in days}
        world.ask(directory, files=files, conflict=Conflict.REPLACE, scope=Scope.PARTITION)
    locks: list[tuple[str, ...]] = []

    def pause() -> None:
        locks.append(world.record(waiting).locks)
        world.clock.advance(limits.WHOLE_AFTER_SECONDS / 2)
        if len(locks) == 4:
            world.run(holder, "execution-2")

    world.plan.crash_after("lock")
    world.dies(holder)
    run_execution(world.unplanned, waiting, pause=pause)
    assert locks == [(), (), ("lake/sales/",), ("lake/sales/",)]
    assert world.result(waiting).outcome is Outcome.COMMITTED


def test_i6_a_lock_of_a_job_that_is_gone_is_removed_and_that_of_a_dead_one_is_taken() -> None:
    two = Two()
    gone, dead = two.put("t/a/", JOB), two.put("t/b/", NEIGHBOUR)
    assert two.ask(gone).acquired
    assert two.ask(dead).acquired
    two.ledger.expire(gone.ref)
    waiting = two.put("t/", OTHER_JOB)
    assert not two.ask(waiting).acquired
    waits = two.record(waiting).waits
    assert waits is not None
    assert waits.behind == (dead.ref,)
    two.clock.advance(limits.HOLDER_SECONDS)
    assert two.ask(waiting).acquired
    assert two.record(dead).state is JobState.ABORTING


def test_a_holder_that_is_started_again_and_again_loses_its_locks_all_the_same() -> None:
    """Each start refreshes its record; what it fails at, it fails at for ever."""
    two = Two()
    holder, waiting = two.put("t/", JOB), two.put("t/", OTHER_JOB)
    assert two.ask(holder).acquired
    for _ in range(limits.LOCKED_SECONDS // 1_000 + 1):
        assert not two.ask(waiting).acquired
        waiting = two.put("t/", OTHER_JOB)
        two.ledger.write(waiting.ref, replace(waiting, waits=None))
        two.clock.advance(1_000)
        two.ledger.note(two.record(holder), now=two.clock.now())
    assert two.ask(waiting).acquired
    assert two.record(holder).state is JobState.ABORTING


def test_i12_a_job_whose_partitions_change_after_it_has_locked_them_is_refused() -> None:
    two = Two()
    record = two.put("t/", JOB, locks=("lake/t/a=1/",), locked_at=NOW)
    with pytest.raises(JobRefusedError) as refused:
        two.ask(record)
    assert refused.value.code == "REQUEST_CHANGED"
