"""Claims on path nodes: who conflicts with whom, and the order in which they go (I6)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from s3commit.core.commit.acquire_destination import acquire_destination
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job import claims as rivals
from s3commit.core.job.claims import release_locks
from s3commit.core.model.errors import JobRefusedError, TransientError
from s3commit.core.model.job import Conflict, Destination, Scope
from s3commit.core.model.limits import (
    LONGEST_WAIT,
    MAX_LOOKS,
    MAX_NODE_BYTES,
    MAX_PARTITION_LOCKS,
    MAX_WAIT_SECONDS,
    MAX_WAITING,
    SHORTEST_WAIT,
    WAITER_REFRESH_SECONDS,
    WAITER_SECONDS,
)
from s3commit.core.model.locks import (
    COMPATIBLE,
    Claim,
    Claimed,
    LockMode,
    claimed,
    claims,
    holds,
    in_the_way,
    key_digest,
    looks,
)
from s3commit.core.model.record import JobRecord, PlanFacts, Stage, Turn
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.ledger import LostRaceError
from s3commit.testing.faults import FaultPlan
from s3commit.testing.memory import ManualClock, MemoryLedger, MemoryObjectStore

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"
START = datetime.fromisoformat("2026-11-21T22:00:00.000+00:00")
JOB_ID = "0b6f6f0e-0000-4000-8000-{:012d}"

S, X, K = LockMode


def at(seconds: float) -> str:
    moment = START + timedelta(seconds=seconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


NOW = at(0)


def directory(prefix: str, job: int = 1) -> JobDirectory:
    return JobDirectory(Destination("lake", prefix), JOB_ID.format(job))


def wanted(
    prefix: str,
    conflict: Conflict = Conflict.APPEND,
    scope: Scope = Scope.DIRECTORY,
    partitions: tuple[str, ...] = (),
    key: str | None = None,
) -> dict[str, LockMode]:
    return {
        c.node: c.mode
        for c in claims(directory(prefix).destination, conflict, scope, partitions, key)
    }


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


def test_the_table_is_symmetric() -> None:
    for one, other in itertools.product(LockMode, repeat=2):
        assert (one in COMPATIBLE[other]) == (other in COMPATIBLE[one])


# What a job asks for


def test_an_append_shares_its_destination_and_claims_nothing_above() -> None:
    assert wanted("a/b/t/") == {"lake/a/b/t/": S}


@pytest.mark.parametrize("conflict", [Conflict.FAIL, Conflict.REPLACE])
def test_fail_and_replace_of_a_directory_want_it_for_themselves(conflict: Conflict) -> None:
    assert wanted("a/t/", conflict) == {"lake/a/t/": X}


@pytest.mark.parametrize("conflict", [Conflict.FAIL, Conflict.REPLACE])
def test_fail_and_replace_of_partitions_want_those_alone(conflict: Conflict) -> None:
    partitions = ("dt=1/", "dt=2/h=3/", "")
    assert wanted("t/", conflict, Scope.PARTITION, partitions) == {
        "lake/t/.": X,
        "lake/t/dt=1/": X,
        "lake/t/dt=2/h=3/": X,
    }


def test_i11_a_key_is_a_node_of_its_destination_by_its_digest() -> None:
    assert wanted("t/", key="day 1") == {"lake/t/": S, f"lake/t/?once={key_digest('day 1')}": K}
    assert key_digest("day 1") != key_digest("day 2")


@pytest.mark.parametrize("count", [1, MAX_PARTITION_LOCKS, MAX_PARTITION_LOCKS + 1, 300])
def test_too_many_partitions_are_escalated_to_the_destination(count: int) -> None:
    partitions = tuple(f"p={number}/" for number in range(count))
    exclusive = wanted("a/t/", Conflict.REPLACE, Scope.PARTITION, partitions)
    if count <= MAX_PARTITION_LOCKS:
        assert len(exclusive) == count
    else:
        assert exclusive == {"lake/a/t/": X}


def test_a_partition_too_long_for_a_key_of_dynamodb_is_escalated() -> None:
    """A sort key has 1,024 bytes: the node, a slash, and 53 bytes of the job's ref."""
    longest = f"p={'ä' * ((MAX_NODE_BYTES - len('lake/t/p=/')) // 2)}/"
    for name in (longest, f"x{longest}"):
        (node,) = wanted("t/", Conflict.REPLACE, Scope.PARTITION, (name,))
        assert len(node.encode()) + 54 <= 1024
        assert (node == "lake/t/") == (name != longest)


def test_a_destination_that_lies_too_deep_is_refused() -> None:
    assert len(wanted("/".join("d" * MAX_LOOKS) + "/")) == 1
    with pytest.raises(JobRefusedError, match="lies too deep") as refused:
        wanted("/".join("d" * (MAX_LOOKS + 1)) + "/")
    assert refused.value.code == "TOO_DEEP"


# A ledger of jobs that stand anywhere on their way


class Crowd:
    """Jobs in a ledger that are SEALED and have a plan."""

    def __init__(self) -> None:
        self.ledger = MemoryLedger()
        self.refs: dict[str, str] = {}
        self.clock = ManualClock(NOW)
        self.plan = FaultPlan()
        store = MemoryObjectStore("lake", clock=self.clock)
        self.ports = Ports(store, self.plan.wrap(self.ledger), self.clock)

    def put(
        self,
        job_id: str,
        own: tuple[Claim, ...] | list[Claim],
        stage: Stage,
        *,
        since: str = NOW,
        seen: str = NOW,
        conflict: Conflict = Conflict.REPLACE,
        prefix: str = "t/",
        state: JobState = JobState.SEALED,
        waits: bool = False,
    ) -> JobRecord:
        record = JobRecord(
            job_id,
            Destination("lake", prefix),
            state,
            1,
            seen,
            seen,
            conflict=conflict,
            plan=PlanFacts("0" * 64, 1, 1, 1, 1),
            locks=tuple(claim.node for claim in own),
            turn=Turn(stage, "" if stage is Stage.NONE else since, int(stage is not Stage.NONE)),
            execution=job_id,
        )
        turn = record.turn
        for claim in own:
            self.ledger.put_claim(Claimed(claim, record.ref, epoch=turn.epoch))
            if waits:
                asked = Claimed(claim, record.ref, True, turn.since, turn.epoch)
                self.ledger.put_claim(asked)
        self.ledger._jobs[record.ref] = record
        self.refs[job_id] = record.ref
        return record

    def new(self, number: int, prefix: str = "t/", conflict: Conflict = Conflict.REPLACE) -> str:
        job_id = JOB_ID.format(number)
        self.put(job_id, (), Stage.NONE, conflict=conflict, prefix=prefix)
        return job_id

    def record(self, job_id: str) -> JobRecord:
        record = self.ledger.job(self.refs[job_id])
        assert record is not None
        return record

    def ask(self, job_id: str, before: Ticket | None = None) -> Ticket:
        """Ask; ``before`` is what it was told when it asked last, if the same execution asks."""
        record = self.record(job_id)
        first = Ticket(job_id, "lake", JobDirectory.of(record).prefix, execution=job_id)
        return acquire_destination(self.ports, before or first.after(record))

    def end(self, job_id: str) -> None:
        record = self.record(job_id)
        self.ledger._jobs[record.ref] = replace(record, state=JobState.ABORTED)
        release_locks(self.ports, record)

    def stage(self, job_id: str) -> Stage:
        return self.record(job_id).turn.stage


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
        return claims(
            directory(self.prefix).destination, self.conflict, self.scope, self.partitions, None
        )

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
    crowd = Crowd()
    crowd.put("one", one.claims, Stage.HELD, conflict=one.conflict, prefix=one.prefix)
    crowd.put("other", other.claims, Stage.NONE, conflict=other.conflict, prefix=other.prefix)
    found = rivals.claimants(crowd.ledger, map, crowd.record("other"))
    assert bool(found) == (meet and mind)
    assert any(mine.meets(its) for mine in one.claims for its in other.claims) == bool(found)


# Who is in the way, by what the records say


OWN = Crowd().put("m", [Claim("lake/t/", X)], Stage.WAITING, since=at(10))


@pytest.mark.parametrize("state", JobState)
def test_i6_one_that_is_decided_is_in_the_way_and_one_that_never_will_be_is_not(
    state: JobState,
) -> None:
    harmless = state in ENDED or state is JobState.ABORTING
    for stage in Stage:
        other = Crowd().put("z", [], stage, since=at(99), state=state)
        undecided = stage is not Stage.HELD and state in {JobState.OPEN, JobState.SEALED}
        assert in_the_way(other, OWN, at(10**6)) == (not harmless and not undecided)


@pytest.mark.parametrize("stage", [Stage.WAITING, Stage.ENTERING])
def test_who_asked_first_goes_first_and_of_two_as_early_the_lesser_id(stage: Stage) -> None:
    def stands(job_id: str, since: float) -> bool:
        other = Crowd().put(job_id, [], stage, since=at(since), seen=at(10))
        return in_the_way(other, OWN, at(10))

    assert stands("z", 9)
    assert stands("a", 10)
    assert not stands("z", 10)
    assert not stands("a", 11)


@pytest.mark.parametrize("stage", [Stage.WAITING, Stage.ENTERING])
def test_one_that_has_not_been_seen_for_long_keeps_nobody_waiting(stage: Stage) -> None:
    other = Crowd().put("a", [], stage)
    assert in_the_way(other, OWN, at(WAITER_SECONDS))
    assert not in_the_way(other, OWN, at(WAITER_SECONDS + 1))
    assert WAITER_SECONDS > 2 * LONGEST_WAIT


def test_one_that_has_not_asked_is_not_in_the_way() -> None:
    assert not in_the_way(Crowd().put("a", [], Stage.NONE), OWN, NOW)


def test_what_a_job_holds_covers_what_lies_below_but_no_key() -> None:
    record = Crowd().put("a", [Claim("lake/t/", X)], Stage.HELD)
    assert holds(record, [Claim("lake/t/", X), Claim("lake/t/dt=1/", X), Claim("lake/t/.", X)])
    assert not holds(record, [Claim("lake/t1/", X)])
    assert not holds(record, [Claim("lake/t/", X), Claim("lake/t/?once=0", K)])
    assert not holds(replace(record, turn=Turn(Stage.WAITING)), [Claim("lake/t/", X)])


# What a job reads


def test_an_append_reads_no_other_appends() -> None:
    record = Crowd().put("a", [], Stage.NONE, conflict=Conflict.APPEND, prefix="a/b/t/")
    own = claims(directory("a/b/t/").destination, Conflict.APPEND, Scope.DIRECTORY, (), "k")
    read = [(one.claim.mode, one.claim.node, one.below) for one in looks(with_claims(record, own))]
    assert read == [
        (X, "lake/a/", False),
        (X, "lake/a/b/", False),
        (X, "lake/a/b/t/", True),
        (K, f"lake/a/b/t/?once={key_digest('k')}", False),
    ]


def test_one_that_replaces_many_partitions_reads_its_destination_once() -> None:
    partitions = tuple(f"p={number}/" for number in range(50))
    record = Crowd().put("a", [], Stage.NONE, prefix="a/t/")
    own = claims(directory("a/t/").destination, Conflict.REPLACE, Scope.PARTITION, partitions, None)
    read = [(one.claim.mode, one.claim.node, one.below) for one in looks(with_claims(record, own))]
    assert read == [(mode, f"lake/{n}", n == "a/t/") for mode in (S, X) for n in ("a/", "a/t/")]


def with_claims(record: JobRecord, own: tuple[Claim, ...]) -> JobRecord:
    record = replace(record, locks=tuple(claim.node for claim in own))
    assert claimed(record) == own
    return record


# How a job gets what it claims


def test_a_job_alone_enters_looks_and_holds() -> None:
    crowd = Crowd()
    job = crowd.new(1)
    ticket = crowd.ask(job)
    assert (ticket.acquired, ticket.epoch) == (True, 2)
    assert crowd.record(job).turn == Turn(Stage.HELD, NOW, 2)
    assert crowd.plan.counts() == {
        "job": 1, "take_turn": 2, "put_claim": 1, "claims": 2,
    }  # fmt: skip
    assert crowd.ask(job).acquired
    assert crowd.plan.count("take_turn") == 2


def test_a_job_waits_for_one_that_holds_and_gets_its_turn_when_that_has_ended() -> None:
    crowd = Crowd()
    first, second = crowd.new(1), crowd.new(2)
    assert crowd.ask(first).acquired
    ticket = crowd.ask(second)
    assert (ticket.acquired, ticket.pause) == (False, SHORTEST_WAIT)
    assert crowd.stage(second) is Stage.WAITING
    crowd.end(first)
    assert crowd.ask(second).acquired
    assert {ref for ref, _ in crowd.ledger._claims} == {crowd.refs[second]}


def test_i6_of_two_that_enter_at_once_the_earlier_holds_and_the_later_is_pushed_back() -> None:
    """The later one has looked, and seen nobody, before the earlier one came."""
    crowd = Crowd()
    early, late = crowd.new(1), crowd.new(2)
    crowd.plan.run_before("take_turn", lambda: acquired.append(crowd.ask(early)), nth=2)
    acquired: list[Ticket] = []
    with pytest.raises(LostRaceError):
        crowd.ask(late)
    assert acquired[0].acquired
    assert (crowd.stage(early), crowd.stage(late)) == (Stage.HELD, Stage.WAITING)
    assert not crowd.ask(late).acquired


def test_i6_of_two_that_enter_at_once_the_later_steps_back() -> None:
    crowd = Crowd()
    early, late = crowd.new(1), crowd.new(2)
    seen: list[Ticket] = []
    crowd.plan.run_before("take_turn", lambda: seen.append(crowd.ask(late)), nth=2)
    assert crowd.ask(early).acquired
    assert (crowd.stage(early), crowd.stage(late)) == (Stage.HELD, Stage.WAITING)
    assert not seen[0].acquired


def test_i6_one_that_became_a_holder_in_between_is_not_pushed_back() -> None:
    crowd = Crowd()
    late = crowd.new(2)
    crowd.put(late, [Claim("lake/t/", X)], Stage.ENTERING, since=at(1))
    early = crowd.new(1)

    def hold() -> None:
        record = crowd.record(late)
        held = replace(record.turn, stage=Stage.HELD)
        crowd.ledger.take_turn(record.ref, generation=1, before=record.turn, after=held, now=NOW)

    crowd.plan.run_before(
        "take_turn", hold, where=lambda call: crowd.refs[late] in call.arguments.values()
    )
    assert not crowd.ask(early).acquired
    assert (crowd.stage(early), crowd.stage(late)) == (Stage.WAITING, Stage.HELD)


def test_one_that_died_entering_is_pushed_back_after_a_while() -> None:
    crowd = Crowd()
    dead, other = crowd.new(1), crowd.new(2)
    crowd.put(dead, [Claim("lake/t/", X)], Stage.ENTERING)
    assert not crowd.ask(other).acquired
    crowd.clock.advance(WAITER_SECONDS + 1)
    assert crowd.ask(other).acquired
    assert crowd.record(dead).turn == Turn(Stage.WAITING, NOW, 1)
    assert crowd.record(dead).updated_at == NOW  # no sign of its life


def test_a_pushed_back_job_keeps_its_turn() -> None:
    crowd = Crowd()
    job = crowd.new(5)
    crowd.put(job, [Claim("lake/t/", X)], Stage.WAITING, since=at(-60))
    assert crowd.ask(job).acquired
    assert crowd.record(job).turn == Turn(Stage.HELD, at(-60), 2)


def test_a_job_that_claims_more_than_it_holds_enters_anew_and_keeps_its_claims() -> None:
    """Another execution of it has verified another plan: what was seen before counts no more."""
    crowd = Crowd()
    job = crowd.new(1)
    crowd.put(job, [Claim("lake/t/dt=9/", X)], Stage.HELD)
    assert crowd.ask(job).epoch == 2
    assert crowd.record(job).locks == ("lake/t/", "lake/t/dt=9/")


def test_a_waiting_job_is_noted_as_seen_now_and_then_alone() -> None:
    crowd = Crowd()
    holder, job = crowd.new(1), crowd.new(2)
    crowd.ask(holder)
    crowd.ask(job)
    writes = crowd.plan.count("take_turn")
    for seconds, more in ((1, 0), (WAITER_REFRESH_SECONDS - 2, 0), (1, 1), (1, 1)):
        crowd.clock.advance(seconds)
        crowd.ask(job)
        assert crowd.plan.count("take_turn") == writes + more
    assert crowd.plan.count("put_claim") == 3  # its own, and again when it began to wait


@pytest.mark.parametrize(
    ("waited", "ahead", "pause"),
    [(0, 0, 5), (25, 0, 5), (150, 0, 30), (3599, 0, 60), (0, 3, 15), (0, 80, 60)],
)
def test_who_waits_long_or_behind_many_asks_seldom(waited: int, ahead: int, pause: int) -> None:
    crowd = Crowd()
    job = crowd.new(1)
    crowd.put(job, [Claim("lake/t/", X)], Stage.WAITING, since=at(-waited))
    if not ahead:
        crowd.put("holder", [Claim("lake/t/", X)], Stage.HELD)
    for number in range(ahead):
        crowd.put(f"a{number}", [Claim("lake/t/", X)], Stage.WAITING, since=at(-9999), waits=True)
    assert crowd.ask(job).pause == pause
    assert SHORTEST_WAIT <= pause <= LONGEST_WAIT


def busy(crowd: Crowd, job_id: str) -> str:
    with pytest.raises(JobRefusedError) as refused:
        crowd.ask(job_id)
    assert refused.value.code == "DESTINATION_BUSY"
    return refused.value.message


@pytest.mark.parametrize(
    ("holder", "told"),
    [("sales/t/", True), ("sales/t/deep/er/", True), ("sales/", False), ("elsewhere/", False)],
)
def test_i12_a_result_names_jobs_at_its_own_destination_alone(holder: str, told: bool) -> None:
    """A tenant learns nothing of jobs of others."""
    crowd = Crowd()
    job = crowd.new(1, "sales/t/")
    own = [Claim("lake/sales/t/", X)]
    crowd.put(job, own, Stage.WAITING, since=at(-MAX_WAIT_SECONDS), prefix="sales/t/")
    crowd.put("theirs", own, Stage.HELD, prefix=holder)
    message = busy(crowd, job)
    assert ("theirs" in message) == told
    assert holder in {"sales/t/", "sales/t/deep/er/"} or holder not in message


@pytest.mark.parametrize("conflict", [Conflict.APPEND, Conflict.REPLACE])
def test_i12_who_comes_behind_a_hundred_is_told_at_once(conflict: Conflict) -> None:
    crowd = Crowd()
    crowd.ask(crowd.new(0))
    for number in range(1, MAX_WAITING + 1):
        assert not crowd.ask(crowd.new(number, conflict=conflict)).acquired
    assert f"{MAX_WAITING} jobs wait" in busy(crowd, crowd.new(500, conflict=conflict))
    assert not crowd.ask(JOB_ID.format(MAX_WAITING)).acquired  # who waits already goes on waiting
    assert crowd.ask(crowd.new(501, "other/", conflict)).acquired


def test_i12_jobs_below_one_subtree_do_not_stop_those_of_another() -> None:
    """4,000 of one tenant's, which one item of DynamoDB would not have held (400 KB)."""
    crowd = Crowd()
    crowd.ask(crowd.new(0, "tenants/a/t/"))
    for number in range(4000):
        own = [Claim(f"lake/tenants/a/t/{number}/", X)]
        crowd.put(f"a{number}", own, Stage.WAITING, prefix=f"tenants/a/t/{number}/", waits=True)
    before = crowd.plan.counts()
    assert crowd.ask(crowd.new(1, "tenants/b/t/")).acquired
    made = {verb: count - before.get(verb, 0) for verb, count in crowd.plan.counts().items()}
    assert (made["job"], made["take_turn"], made["put_claim"]) == (1, 2, 1)


def test_claims_beyond_what_anybody_reads_refuse_the_job_and_hold_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All but one are of a single job: who counted jobs would not see that some are left."""
    monkeypatch.setattr(rivals, "MAX_CLAIMS_READ", 10)
    crowd = Crowd()
    crowd.put("a", [Claim(f"lake/t/{number:02d}/", X) for number in range(11)], Stage.WAITING)
    crowd.put("b", [Claim("lake/t/99/", X)], Stage.HELD)
    job = crowd.new(1)
    assert "10 claims at most" in busy(crowd, job)
    assert crowd.stage(job) is not Stage.HELD


def test_who_has_seen_one_in_the_way_reads_no_more_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rivals, "RECORDS_AT_ONCE", 3)
    crowd = Crowd()
    for number in range(10):
        crowd.put(f"w{number}", [Claim("lake/t/", X)], Stage.WAITING, since=at(-9), waits=True)
    crowd.put("zz", [Claim("lake/t/", X)], Stage.HELD)
    crowd.ask(crowd.new(1))
    assert crowd.plan.count("job") == 1 + 3


# A replace of a directory with a thousand appends below it, and more that keep coming


def appends(crowd: Crowd, count: int, stage: Stage, since: str, first: int = 0) -> list[str]:
    """Jobs that append to a table of their own below ``w/``."""
    refs = []
    for number in range(first, first + count):
        prefix = f"w/t{number}/"
        own = [Claim(f"lake/{prefix}", S)]
        job_id = JOB_ID.format(number)
        crowd.put(
            job_id,
            own,
            stage,
            since=since,
            seen=NOW,
            conflict=Conflict.APPEND,
            prefix=prefix,
            waits=stage is Stage.WAITING,
        )
        refs.append(job_id)
    return refs


def test_a_replace_gets_its_turn_though_more_appends_wait_behind_it_than_anybody_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rivals, "MAX_CLAIMS_READ", 10)
    crowd = Crowd()
    holders = appends(crowd, 10, Stage.HELD, at(-60))
    replacing = crowd.new(900, "w/")
    told = crowd.ask(replacing)
    assert not told.acquired
    appends(crowd, 200, Stage.WAITING, at(1), first=100)
    crowd.clock.advance(5)
    told = crowd.ask(replacing, told)
    assert not told.acquired
    for holder in holders:
        crowd.end(holder)
    before = crowd.plan.count("job")
    assert crowd.ask(replacing, told).acquired
    assert crowd.plan.count("job") <= before + 2  # its own, and the one that it waited for


def test_appends_that_asked_before_a_replace_go_before_it_and_those_after_behind_it() -> None:
    crowd = Crowd()
    first = crowd.new(800, "w/")
    assert crowd.ask(first).acquired
    crowd.clock.advance(1)
    early = crowd.new(1, "w/t1/", Conflict.APPEND)
    crowd.ask(early)
    crowd.clock.advance(1)
    second = crowd.new(900, "w/")
    crowd.ask(second)
    crowd.clock.advance(1)
    late = crowd.new(2, "w/t2/", Conflict.APPEND)
    crowd.ask(late)
    crowd.end(first)
    assert not crowd.ask(late).acquired
    assert not crowd.ask(second).acquired
    assert crowd.ask(early).acquired
    assert not crowd.ask(second).acquired
    crowd.end(early)
    assert crowd.ask(second).acquired
    assert not crowd.ask(late).acquired
    crowd.end(second)
    assert crowd.ask(late).acquired


def test_who_waits_for_one_that_is_still_there_reads_its_record_and_no_claims() -> None:
    crowd = Crowd()
    holder = crowd.new(1, "w/")
    crowd.ask(holder)
    waiting = crowd.new(2, "w/t/", Conflict.APPEND)
    told = crowd.ask(waiting)
    assert told.behind == crowd.refs[holder]
    before = crowd.plan.counts()
    crowd.clock.advance(told.pause)
    told = crowd.ask(waiting, told)
    assert crowd.plan.count("claims") == before["claims"]
    assert crowd.plan.count("job") == before["job"] + 2
    crowd.end(holder)
    assert crowd.ask(waiting, told).acquired


def test_who_waits_behind_many_asks_no_sooner_for_looking_at_one_alone() -> None:
    crowd = Crowd()
    crowd.put("holder", [Claim("lake/t/", X)], Stage.HELD)
    for number in range(6):
        crowd.put(f"w{number}", [Claim("lake/t/", X)], Stage.WAITING, since=at(-9), waits=True)
    job = crowd.new(1)
    told = crowd.ask(job)
    assert told.pause == 6 * SHORTEST_WAIT
    assert crowd.ask(job, told).pause == 6 * SHORTEST_WAIT


def test_i6_a_stalled_try_does_not_hide_the_claim_of_a_job_that_holds_by_now() -> None:
    """It would have said that the job waits; meanwhile its twin has entered, and holds."""
    crowd = Crowd()
    holder = crowd.new(1)
    crowd.ask(holder)
    job = crowd.new(2)
    late = FaultPlan()

    def twin() -> None:
        crowd.end(holder)
        assert crowd.ask(job).acquired

    late.run_before("put_claim", twin, nth=2)  # it says that the job waits
    stalled = replace(crowd.ports, ledger=late.wrap(crowd.ledger))
    record = crowd.record(job)
    ticket = Ticket(job, "lake", JobDirectory.of(record).prefix, execution=job).after(record)
    acquire_destination(stalled, ticket)
    assert crowd.stage(job) is Stage.HELD
    early = crowd.new(3)
    crowd.ledger._jobs[crowd.refs[early]] = replace(
        crowd.record(early), turn=Turn(Stage.WAITING, at(-9), 1), updated_at=crowd.clock.now()
    )
    assert not crowd.ask(early).acquired


def test_i6_a_job_whose_record_was_lost_and_made_anew_is_found_by_its_old_claim() -> None:
    crowd = Crowd()
    holder = crowd.new(1)
    crowd.ask(holder)
    job = crowd.new(2)
    for _ in range(5):
        crowd.ask(job)
    lost = crowd.record(job)
    crowd.end(holder)
    crowd.ledger._jobs[lost.ref] = replace(lost, turn=Turn(), locks=(), generation=9)
    assert crowd.ask(job).acquired
    early = crowd.new(3)
    crowd.put(early, [Claim("lake/t/", X)], Stage.WAITING, since=at(-9))
    assert not crowd.ask(early).acquired


def test_i6_who_waited_and_enters_says_so_before_it_looks() -> None:
    """A replace that looks then finds it, although it came later."""
    crowd = Crowd()
    holder = crowd.new(1, "w/")
    crowd.ask(holder)
    append = crowd.new(2, "w/t/", Conflict.APPEND)
    crowd.ask(append)
    crowd.end(holder)
    assert crowd.ask(append).acquired
    [claim] = crowd.ledger.claims(Claim("lake/w/t/", S), below=False)
    assert not claim.waits
    replacing = crowd.new(3, "w/")
    crowd.put(replacing, [Claim("lake/w/", X)], Stage.WAITING, since=at(-9), prefix="w/")
    assert not crowd.ask(replacing).acquired


# Jobs that come, ask, stop anywhere, and go on


NODES = ["a/", "a/b/", "a/b/c/", "b/"]
WAYS = [Conflict.APPEND, Conflict.REPLACE]


@dataclass
class Asker:
    """A job that asks every few seconds until it holds."""

    job_id: str
    conflict: Conflict
    prefix: str
    alive: bool = True


class Queueing(RuleBasedStateMachine):
    """Jobs that come, ask, work, end, and die waiting or entering, in any order."""

    @initialize()
    def start(self) -> None:
        self.crowd = Crowd()
        self.jobs: dict[str, Asker] = {}
        self.serial = itertools.count(1)

    @rule(
        prefix=st.sampled_from(NODES),
        conflict=st.sampled_from(WAYS),
        pause=st.integers(0, 3),
        dies_after=st.integers(0, 12),
    )
    def come(self, prefix: str, conflict: Conflict, pause: int, dies_after: int) -> None:
        self.crowd.clock.advance(pause)
        if len(self.jobs) < 8:
            job_id = self.crowd.new(next(self.serial), prefix, conflict)
            self.jobs[job_id] = Asker(job_id, conflict, prefix)
            self._ask(job_id, dies_after)

    @precondition(lambda self: self._waiting())
    @rule(data=st.data(), pause=st.integers(0, 30))
    def asks_again(self, data: st.DataObject, pause: int) -> None:
        self.crowd.clock.advance(pause)
        self._ask(data.draw(st.sampled_from(sorted(self._waiting()))))

    @precondition(lambda self: len(self._waiting()) > 1)
    @rule(data=st.data(), call=st.integers(0, 12))
    def asks_while_another_does(self, data: st.DataObject, call: int) -> None:
        one, other = data.draw(st.permutations(sorted(self._waiting())))[:2]
        self._ask(one, call, lambda: self._ask(other))

    @precondition(lambda self: self._holding())
    @rule(data=st.data())
    def ends(self, data: st.DataObject) -> None:
        self._end(data.draw(st.sampled_from(sorted(self._holding()))))

    @precondition(lambda self: self._waiting())
    @rule()
    def holders_drain_and_the_longest_waiting_job_is_served(self) -> None:
        """Whoever has come since then, and even if it is asked for last (no starvation)."""
        self._all_ask_meanwhile()
        for name in list(self._holding()):
            self._end(name)
        if not self._waiting():
            return
        oldest = min(self._waiting(), key=lambda name: (self._since(name), name))
        for name in sorted(self._waiting(), key=lambda name: name == oldest):
            self._ask(name)
            if name != oldest and self.crowd.stage(name) is Stage.HELD:
                assert not self._conflict(name, oldest), f"{name} was served before {oldest}"
        assert self.crowd.stage(oldest) is Stage.HELD

    @invariant()
    def nobody_holds_beside_one_that_it_may_not_be_beside(self) -> None:
        holding = self._holding() if hasattr(self, "jobs") else []
        for one, other in itertools.combinations(holding, 2):
            assert not self._conflict(one, other)

    def _conflict(self, one: str, other: str) -> bool:
        first, second = self.jobs[one], self.jobs[other]
        nested = first.prefix.startswith(second.prefix) or second.prefix.startswith(first.prefix)
        return nested and {first.conflict, second.conflict} != {Conflict.APPEND}

    def _since(self, name: str) -> str:
        return self.crowd.record(name).turn.since

    def _all_ask_meanwhile(self) -> None:
        """As time passes the living ask, so that the dead alone are forgotten."""
        for _ in range(5):
            self.crowd.clock.advance(WAITER_SECONDS // 4)
            for name in sorted(self._waiting()):
                self._ask(name)

    def _ask(self, name: str, call: int = 0, strike: Callable[[], object] | None = None) -> None:
        """Ask; before its n-th call it dies, or what is given happens first."""
        plan = FaultPlan()
        crowd = self.crowd
        if call and strike is not None:
            plan.run_before(None, strike, nth=call)
        elif call:
            plan.fail(None, TransientError("it dies here"), nth=call)
        ports = replace(crowd.ports, ledger=plan.wrap(crowd.ledger))
        record = crowd.record(name)
        ticket = Ticket(name, "lake", JobDirectory.of(record).prefix, execution=name).after(record)
        try:
            acquire_destination(ports, ticket)
        except LostRaceError:
            pass  # pushed back: it asks again
        except TransientError:
            self.jobs[name].alive = False

    def _end(self, name: str) -> None:
        self.crowd.end(name)
        del self.jobs[name]

    def _waiting(self) -> list[str]:
        jobs = getattr(self, "jobs", {})
        held = Stage.HELD
        return [name for name, job in jobs.items() if job.alive and self.crowd.stage(name) != held]

    def _holding(self) -> list[str]:
        return [name for name in self.jobs if self.crowd.stage(name) is Stage.HELD]


TestQueueing = Queueing.TestCase
TestQueueing.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
