"""Claims on path nodes: who conflicts with whom, and the order in which they go (I6)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.job import claims as rivals
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.job import Conflict, Destination, Scope
from s3commit.core.model.limits import (
    LONGEST_WAIT,
    MAX_LOOKS,
    MAX_NODE_BYTES,
    MAX_PARTITION_LOCKS,
    WAITER_SECONDS,
)
from s3commit.core.model.locks import (
    COMPATIBLE,
    Claim,
    LockMode,
    claim_queries,
    claimed,
    holds,
    key_digest,
    must_wait_for,
)
from s3commit.core.model.record import JobRecord, Stage, Turn
from s3commit.core.model.states import ENDED, JobState
from tests.core.lock_crowd import JOB_ID, NOW, Crowd, K, S, X, at, claims_of

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"


def directory(prefix: str, job: int = 1) -> JobDirectory:
    return JobDirectory(Destination("lake", prefix), JOB_ID.format(job))


def wanted(
    prefix: str,
    conflict: Conflict = Conflict.APPEND,
    scope: Scope = Scope.DIRECTORY,
    partitions: tuple[str, ...] = (),
    key: str | None = None,
) -> dict[str, LockMode]:
    destination = directory(prefix).destination
    return {c.node: c.mode for c in claims_of(destination, conflict, scope, partitions, key)}


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


# What a job asks for


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
        return claims_of(
            directory(self.prefix).destination, self.conflict, self.scope, self.partitions
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
        assert must_wait_for(other, OWN, at(10**6)) == (not harmless and not undecided)


@pytest.mark.parametrize("stage", [Stage.WAITING, Stage.ENTERING])
def test_who_asked_first_goes_first_and_of_two_as_early_the_lesser_id(stage: Stage) -> None:
    def stands(job_id: str, since: float) -> bool:
        other = Crowd().put(job_id, [], stage, since=at(since), seen=at(10))
        return must_wait_for(other, OWN, at(10))

    assert stands("z", 9)
    assert stands("a", 10)
    assert not stands("z", 10)
    assert not stands("a", 11)


@pytest.mark.parametrize("stage", [Stage.WAITING, Stage.ENTERING])
def test_one_that_has_not_been_seen_for_long_keeps_nobody_waiting(stage: Stage) -> None:
    other = Crowd().put("a", [], stage)
    assert must_wait_for(other, OWN, at(WAITER_SECONDS))
    assert not must_wait_for(other, OWN, at(WAITER_SECONDS + 1))
    assert WAITER_SECONDS > 2 * LONGEST_WAIT


def test_one_that_has_not_asked_is_not_in_the_way() -> None:
    assert not must_wait_for(Crowd().put("a", [], Stage.NONE), OWN, NOW)


def test_what_a_job_holds_covers_what_lies_below_but_no_key() -> None:
    record = Crowd().put("a", [Claim("lake/t/", X)], Stage.HELD)
    assert holds(record, [Claim("lake/t/", X), Claim("lake/t/dt=1/", X), Claim("lake/t/.", X)])
    assert not holds(record, [Claim("lake/t1/", X)])
    assert not holds(record, [Claim("lake/t/", X), Claim("lake/t/?once=0", K)])
    assert not holds(replace(record, turn=Turn(Stage.WAITING)), [Claim("lake/t/", X)])


# What a job reads


def test_an_append_reads_no_other_appends() -> None:
    record = Crowd().put("a", [], Stage.NONE, conflict=Conflict.APPEND, prefix="a/b/t/")
    own = claims_of(directory("a/b/t/").destination, key="k")
    read = [
        (one.claim.mode, one.claim.node, one.below)
        for one in claim_queries(with_claims(record, own))
    ]
    assert read == [
        (X, "lake/a/", False),
        (X, "lake/a/b/", False),
        (X, "lake/a/b/t/", True),
        (K, f"lake/a/b/t/?once={key_digest('k')}", False),
    ]


def test_one_that_replaces_many_partitions_reads_its_destination_once() -> None:
    partitions = tuple(f"p={number}/" for number in range(50))
    record = Crowd().put("a", [], Stage.NONE, prefix="a/t/")
    own = claims_of(directory("a/t/").destination, Conflict.REPLACE, Scope.PARTITION, partitions)
    read = [
        (one.claim.mode, one.claim.node, one.below)
        for one in claim_queries(with_claims(record, own))
    ]
    assert read == [(mode, f"lake/{n}", n == "a/t/") for mode in (S, X) for n in ("a/", "a/t/")]


def with_claims(record: JobRecord, own: tuple[Claim, ...]) -> JobRecord:
    record = replace(record, locks=tuple(claim.node for claim in own))
    assert claimed(record) == own
    return record
