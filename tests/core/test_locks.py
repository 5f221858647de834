"""Locks on path nodes: the table, who conflicts with whom, and the order in which they go (I6)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from s3commit.core.errors import JobRefusedError
from s3commit.core.layout import JobDirectory
from s3commit.core.locks import (
    COMPATIBLE,
    COVERS,
    Claim,
    LockMode,
    LockRecord,
    Waiting,
    ask,
    ask_all,
    claims,
    key_digest,
    let_go,
)
from s3commit.core.model import Conflict, Destination, Scope
from s3commit.core.policy import (
    MAX_LOCKS,
    MAX_PARTITION_LOCKS,
    WAITER_REFRESH_SECONDS,
    WAITER_SECONDS,
)

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"
START = datetime.fromisoformat("2026-11-21T22:00:00.000+00:00")
JOB_ID = "0b6f6f0e-0000-4000-8000-{:012d}"

IS, IX, S, X = LockMode


def at(seconds: float) -> str:
    moment = START + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


NOW = at(0)


def place(prefix: str, job: int = 1) -> JobDirectory:
    return JobDirectory(Destination("lake", prefix), JOB_ID.format(job))


def claimed(
    prefix: str,
    conflict: Conflict = Conflict.APPEND,
    scope: Scope = Scope.DIRECTORY,
    partitions: tuple[str, ...] = (),
    key: str | None = None,
) -> dict[str, LockMode]:
    return {c.node: c.mode for c in claims(place(prefix), conflict, scope, partitions, key)}


# The table


def test_the_table_in_the_documentation_is_the_one_in_the_code() -> None:
    lines = PROTOCOL.read_text().splitlines()
    rows = [line for line in lines if line.startswith("| **")]
    shown = {}
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        mode, marks = LockMode(cells[0].strip("*")), cells[1 : 1 + len(LockMode)]
        assert set(marks) <= {"yes", "no"}
        shown[mode] = {other for other, mark in zip(LockMode, marks, strict=True) if mark == "yes"}
    assert shown == COMPATIBLE


def test_the_table_is_symmetric_and_a_stronger_mode_stands_beside_less() -> None:
    for one, other in itertools.product(LockMode, repeat=2):
        assert (one in COMPATIBLE[other]) == (other in COMPATIBLE[one])
        if other in COVERS[one]:
            assert COMPATIBLE[one] <= COMPATIBLE[other]
        assert one in COVERS[one]


# What a job asks for


def test_an_append_shares_its_destination_and_what_is_above_by_intention() -> None:
    assert claimed("a/b/t/") == {"lake/a/": IS, "lake/a/b/": IS, "lake/a/b/t/": S}


@pytest.mark.parametrize("conflict", [Conflict.FAIL, Conflict.REPLACE])
def test_fail_and_replace_of_a_directory_want_it_for_themselves(conflict: Conflict) -> None:
    assert claimed("a/t/", conflict) == {"lake/a/": IX, "lake/a/t/": X}


@pytest.mark.parametrize("conflict", [Conflict.FAIL, Conflict.REPLACE])
def test_fail_and_replace_of_partitions_want_those_alone(conflict: Conflict) -> None:
    partitions = ("dt=1/", "dt=2/h=3/", "")
    assert claimed("t/", conflict, Scope.PARTITION, partitions) == {
        "lake/t/": IX,
        "lake/t/.": X,
        "lake/t/dt=1/": X,
        "lake/t/dt=2/": IX,
        "lake/t/dt=2/h=3/": X,
    }


def test_a_partition_inside_another_one_that_is_replaced_does_not_weaken_it() -> None:
    wanted = claimed("t/", Conflict.REPLACE, Scope.PARTITION, ("a/b/", "a/"))
    assert (wanted["lake/t/a/"], wanted["lake/t/a/b/"]) == (X, X)


def test_the_bucket_is_no_node_and_they_come_from_the_top_down() -> None:
    nodes = [
        claim.node for claim in claims(place("a/b/t/"), Conflict.APPEND, Scope.DIRECTORY, (), None)
    ]
    assert nodes == ["lake/a/", "lake/a/b/", "lake/a/b/t/"]


def test_i11_a_key_is_a_node_of_its_destination_by_its_digest() -> None:
    wanted = claimed("t/", key="day 1")
    assert wanted == {"lake/t/": S, f"lake/t/?once={key_digest('day 1')}": X}
    assert key_digest("day 1") != key_digest("day 2")


@pytest.mark.parametrize("depth", [1, 8, 60, 96])
@pytest.mark.parametrize("count", [1, 88, 89, 90, 300])
def test_too_many_partitions_are_escalated_and_a_decision_can_check_all_locks(
    depth: int, count: int
) -> None:
    prefix = "/".join("d" * depth) + "/"
    partitions = tuple(f"p={number}/" for number in range(count))
    wanted = claimed(prefix, Conflict.REPLACE, Scope.PARTITION, partitions, "a key")
    assert len(wanted) <= MAX_LOCKS
    exclusive = [node for node, mode in wanted.items() if mode is X and "?" not in node]
    if count + 1 <= min(MAX_PARTITION_LOCKS, MAX_LOCKS - depth):
        assert len(exclusive) == count
    else:
        assert exclusive == [f"lake/{prefix}"]


def test_a_destination_that_lies_too_deep_is_refused() -> None:
    with pytest.raises(JobRefusedError, match="lies in 97 directories") as refused:
        claimed("/".join("d" * 98) + "/")
    assert refused.value.code == "TOO_DEEP"


# Who conflicts with whom


@dataclass(frozen=True)
class Write:
    """A job as the property below sees it: where, how, and which partitions it writes."""

    prefix: str
    conflict: Conflict
    scope: Scope
    partitions: tuple[str, ...]

    @property
    def claims(self) -> tuple[Claim, ...]:
        return claims(place(self.prefix), self.conflict, self.scope, self.partitions, None)

    def reaches(self, key: str) -> bool:
        """Whether the job may write, replace or mind the file: the policy's own words."""
        if not key.startswith(self.prefix):
            return False
        if self.conflict is Conflict.APPEND or self.scope is Scope.DIRECTORY:
            return True
        relative = key[len(self.prefix) :]
        return any(
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
    conflict=st.sampled_from(Conflict),
    scope=st.sampled_from(Scope),
    partitions=st.lists(
        st.sampled_from(["", *DIRECTORIES[:12]]), min_size=1, max_size=3, unique=True
    ).map(tuple),
)


@settings(max_examples=400, deadline=None)
@given(one=WRITES, other=WRITES)
def test_i6_jobs_conflict_if_and_only_if_one_minds_a_file_that_the_other_reaches(
    one: Write, other: Write
) -> None:
    """Equal, above, below, sets of partitions, nested ones, the root as one, siblings in name."""
    meet = any(one.reaches(key) and other.reaches(key) for key in FILES)
    mind = {one.conflict, other.conflict} != {Conflict.APPEND}
    records = [LockRecord(claim.node, holders={"one": claim.mode}) for claim in one.claims]
    nodes = {record.node for record in records}
    records += [LockRecord(claim.node) for claim in other.claims if claim.node not in nodes]
    _, blockers = ask_all(records, other.claims, "other", since=NOW, now=NOW)
    assert bool(blockers) == (meet and mind)


# One node


def test_what_a_job_holds_it_need_not_wait_for_whoever_waits() -> None:
    """Another execution of it asks again, later than those that wait."""
    record = LockRecord("n", 3, {"a": X}, {"b": Waiting(X, at(1), at(9))})
    assert ask(record, "a", X, since=at(10), now=at(10)) == (record, frozenset())


@pytest.mark.parametrize("mode", LockMode)
def test_asking_never_takes_away_or_weakens_what_a_job_holds(mode: LockMode) -> None:
    for held in LockMode:
        record = LockRecord("n", 1, {"a": held, "b": IS}, {"c": Waiting(X, at(0), at(9))})
        after, _ = ask(record, "a", mode, since=at(1), now=at(10))
        assert held in COVERS[after.holders["a"]]


def test_a_job_that_wants_more_than_it_holds_waits_and_keeps_that() -> None:
    record = LockRecord("n", 1, {"a": IX, "b": IX})
    after, blockers = ask(record, "a", X, since=NOW, now=NOW)
    assert (after.holders, set(after.waiting), blockers) == (record.holders, {"a"}, frozenset("b"))


def test_who_waits_longer_goes_first_and_of_two_as_long_the_lesser_id() -> None:
    record = LockRecord("n", waiting={"b": Waiting(X, at(5), at(5))})
    assert ask(record, "c", X, since=at(6), now=at(6))[1] == {"b"}
    assert ask(record, "c", X, since=at(5), now=at(6))[1] == {"b"}
    assert ask(record, "a", X, since=at(5), now=at(6))[1] == set()
    assert ask(record, "c", X, since=at(4), now=at(6))[1] == set()


def test_who_waits_for_a_mode_that_fits_is_not_in_the_way() -> None:
    record = LockRecord("n", waiting={"b": Waiting(S, at(0), at(0))})
    assert ask(record, "c", S, since=at(1), now=at(1))[1] == set()
    assert ask(record, "c", IX, since=at(1), now=at(1))[1] == {"b"}


def test_one_that_has_not_asked_for_long_keeps_nobody_waiting() -> None:
    record = LockRecord("n", waiting={"b": Waiting(X, at(0), at(0))})
    assert ask(record, "c", X, since=at(9), now=at(WAITER_SECONDS))[1] == {"b"}
    assert ask(record, "c", X, since=at(9), now=at(WAITER_SECONDS + 1))[1] == set()


def test_a_job_keeps_its_turn_when_another_execution_asks() -> None:
    record = LockRecord("n", 1, {"a": X}, {"b": Waiting(X, at(1), at(1))})
    after, _ = ask(record, "b", X, since=at(30), now=at(30))
    assert after.waiting["b"] == Waiting(X, at(1), at(30))


def test_a_waiting_job_is_noted_as_seen_now_and_then_alone() -> None:
    record = LockRecord("n", 1, {"a": X}, {"b": Waiting(X, at(0), at(0))})
    soon = ask(record, "b", X, since=at(0), now=at(WAITER_REFRESH_SECONDS - 1))[0]
    later = ask(record, "b", X, since=at(0), now=at(WAITER_REFRESH_SECONDS))[0]
    assert soon == record
    assert later.waiting["b"].seen == at(WAITER_REFRESH_SECONDS)


def test_who_lets_go_neither_holds_nor_waits() -> None:
    record = LockRecord("n", 1, {"a": IX, "b": IX}, {"a": Waiting(X, NOW, NOW)})
    assert let_go(record, "a") == LockRecord("n", 1, {"b": IX})
    assert let_go(LockRecord("n", 2, {"b": IX}), "b").empty


# All nodes at once


def test_i6_of_several_nodes_a_job_gets_all_or_queues_at_every_one() -> None:
    wanted = [Claim("n1", IX), Claim("n2", X), Claim("n3", X)]
    records = [LockRecord("n1"), LockRecord("n2", 4, {"b": X}), LockRecord("n3")]
    after, blockers = ask_all(records, wanted, "a", since=at(1), now=at(2))
    assert blockers == {"b"}
    assert {node: record.waiting["a"].mode for node, record in after.items()} == {
        claim.node: claim.mode for claim in wanted
    }
    assert all("a" not in record.holders for record in after.values())
    free = [replace(record, holders={}) for record in after.values()]
    after, blockers = ask_all(free, wanted, "a", since=at(3), now=at(3))
    assert blockers == set()
    assert {node: record.holders for node, record in after.items()} == {
        claim.node: {"a": claim.mode} for claim in wanted
    }
    assert not any(record.waiting for record in after.values())


def test_a_job_that_another_execution_goes_on_with_keeps_its_turn_at_every_node() -> None:
    wanted = [Claim("n1", X), Claim("n2", X)]
    records = [LockRecord("n1"), LockRecord("n2", 1, {"b": X}, {"a": Waiting(X, at(1), at(1))})]
    after, _ = ask_all(records, wanted, "a", since=at(9), now=at(9))
    assert [record.waiting["a"].since for record in after.values()] == [at(1), at(1)]


NODES = ["n1", "n2", "n3"]
JOBS = [f"job-{number}" for number in range(6)]


@dataclass
class Asker:
    """A job that asks every few seconds until it has been served; then it works and lets go."""

    wanted: tuple[Claim, ...]
    since: int
    alive: bool = True
    holding: bool = False


class Queueing(RuleBasedStateMachine):
    """Jobs that come, ask, work, let go, and die waiting, over three nodes, in any order."""

    @initialize()
    def start(self) -> None:
        self.now = 0
        self.records = {node: LockRecord(node) for node in NODES}
        self.jobs: dict[str, Asker] = {}
        self.serial = itertools.count()

    @rule(
        wanted=st.dictionaries(st.sampled_from(NODES), st.sampled_from(LockMode), min_size=1),
        pause=st.integers(0, 3),
    )
    def come(self, wanted: dict[str, LockMode], pause: int) -> None:
        self.now += pause
        if len([job for job in self.jobs.values() if job.alive]) < len(JOBS):
            own = tuple(Claim(node, mode) for node, mode in sorted(wanted.items()))
            name = f"job-{next(self.serial):04d}"
            self.jobs[name] = Asker(own, self.now)
            self._ask(name)

    @precondition(lambda self: self._waiting())
    @rule(data=st.data(), pause=st.integers(0, 3))
    def asks_again(self, data: st.DataObject, pause: int) -> None:
        self.now += pause
        self._ask(data.draw(st.sampled_from(sorted(self._waiting()))))

    @precondition(lambda self: self._holding())
    @rule(data=st.data())
    def ends(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self._holding())))
        self.records = {node: let_go(record, name) for node, record in self.records.items()}
        del self.jobs[name]

    @precondition(lambda self: self._waiting())
    @rule(data=st.data())
    def dies_waiting(self, data: st.DataObject) -> None:
        """Its places in the queues stay, and count no more after WAITER_SECONDS."""
        self.jobs[data.draw(st.sampled_from(sorted(self._waiting())))].alive = False

    @precondition(lambda self: self._waiting())
    @rule()
    def holders_drain_and_the_longest_waiting_job_is_served(self) -> None:
        """Whoever has come since then, and even if it is asked for last (no starvation)."""
        self._all_ask_meanwhile()
        for name in list(self._holding()):
            self.records = {node: let_go(record, name) for node, record in self.records.items()}
            del self.jobs[name]
        if not self._waiting():
            return
        oldest = min(self._waiting(), key=lambda name: (at(self.jobs[name].since), name))
        for name in sorted(self._waiting(), key=lambda name: name == oldest):
            self._ask(name)
            if self.jobs[name].holding and name != oldest:
                clash = [
                    (mine, its)
                    for mine in self.jobs[oldest].wanted
                    for its in self.jobs[name].wanted
                    if mine.node == its.node and its.mode not in COMPATIBLE[mine.mode]
                ]
                assert not clash, f"{name} was served before {oldest}"
        assert self.jobs[oldest].holding

    @invariant()
    def nobody_holds_a_node_beside_one_that_it_may_not_be_beside(self) -> None:
        for record in getattr(self, "records", {}).values():
            for one, other in itertools.combinations(record.holders.values(), 2):
                assert one in COMPATIBLE[other]

    @invariant()
    def everybody_holds_all_or_nothing(self) -> None:
        for name, job in getattr(self, "jobs", {}).items():
            held = [c.node for c in job.wanted if name in self.records[c.node].holders]
            assert len(held) == (len(job.wanted) if job.holding else 0)

    def _all_ask_meanwhile(self) -> None:
        """As time passes the living ask, so that the dead alone are forgotten."""
        for _ in range(5):
            self.now += WAITER_SECONDS // 4
            for name in sorted(self._waiting()):
                self._ask(name)

    def _ask(self, name: str) -> None:
        job = self.jobs[name]
        records = [self.records[claim.node] for claim in job.wanted]
        after, blockers = ask_all(records, job.wanted, name, since=at(job.since), now=at(self.now))
        self.records |= after
        job.holding = not blockers

    def _waiting(self) -> list[str]:
        jobs = getattr(self, "jobs", {})
        return [name for name, job in jobs.items() if job.alive and not job.holding]

    def _holding(self) -> list[str]:
        return [name for name, job in getattr(self, "jobs", {}).items() if job.holding]


TestQueueing = Queueing.TestCase
TestQueueing.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
