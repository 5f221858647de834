"""What the ledger keeps for a job beside its record: locks, idempotency keys and appends."""

import time
from collections.abc import Callable
from functools import partial

import pytest

from s3commit.core.model.destination import Conflict, Destination
from s3commit.core.model.errors import TransientError
from s3commit.core.model.locks import Append, KeyHolder, Lock, Turn, key_digest
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import HeldError, Ledger
from tests.contract.conftest import PAGE, THREADS, at_once, winners
from tests.contract.ledger_jobs import (
    KEY,
    NODE,
    PLAN,
    T0,
    T1,
    a_job,
    abort,
    advance,
    bring_to,
    decided,
    locked,
    lost,
    ref_of,
)
from tests.fakes.ledger import MemoryLedger

C, D = "lake/a/b/c/", "lake/a/b/d/"
TABLE = Destination("lake", "table/")
MANY = 3 * PAGE


def sealed(ledger: Ledger, *job_ids: str, **fields: object) -> list[str]:
    for job_id in job_ids:
        record = bring_to(ledger, JobState.SEALED, job_id, **fields)  # type: ignore[arg-type]
        ledger.note(record, now=T0, plan=PLAN)
    return [ref_of(job_id) for job_id in job_ids]


def below(ledger: Ledger, node: str) -> set[Lock]:
    return set(ledger.locks_below(node))


def persistently(call: Callable[[], JobRecord]) -> JobRecord:
    """DynamoDB cancels transactions that meet, maybe all of them: those are repeated."""
    while True:
        try:
            return call()
        except TransientError:
            time.sleep(0.05)


# Locks


@pytest.mark.parametrize("node", [C, D, "lake/a/b/", "lake/a/"])
def test_i6_all_nodes_are_locked_or_none(ledger: Ledger, node: str) -> None:
    """Another job has locked one of them, or a node above."""
    one, two = sealed(ledger, "job-1", "job-2")
    locked(ledger, node, job_id="job-2")
    before = ledger.job(one)

    with pytest.raises(HeldError):
        locked(ledger, C, D)

    assert ledger.job(one) == before
    assert ledger.locks({C, D, node}) == [Lock(node, two)]
    abort(ledger, "job-2")
    assert locked(ledger, C, D) == ledger.job(one)
    assert below(ledger, "lake/a/") == {Lock(C, one), Lock(D, one)}


@pytest.mark.parametrize("node", [f"{C}x/", "lake/a/b/./", "lake/a/b/c0/", "pond/a/b/c/"])
def test_i6_a_lock_elsewhere_or_below_is_in_nobodys_way(ledger: Ledger, node: str) -> None:
    """Who locks a node above asks for those below when it has its own."""
    one, two = sealed(ledger, "job-1", "job-2")
    locked(ledger, node, job_id="job-2")

    assert locked(ledger, C, D).locks == (C, D)

    assert set(ledger.locks([C, D, node])) == {Lock(C, one), Lock(D, one), Lock(node, two)}
    assert below(ledger, C) == ({Lock(node, two)} if node.startswith(C) else set())


def test_locks_that_are_taken_again_are_ones_own_and_new_ones_replace_them(ledger: Ledger) -> None:
    (one,) = sealed(ledger, "job-1")
    first = locked(ledger, C, D)
    assert locked(ledger, C, D) == first

    assert locked(ledger, D, f"{D}e/").locks == (D, f"{D}e/")
    assert below(ledger, "lake/a/") == {Lock(D, one), Lock(f"{D}e/", one)}


def test_i6_who_was_taken_over_or_aborted_locks_nothing(ledger: Ledger) -> None:
    sealed(ledger, "job-1")
    stands = ledger.take_over(a_job(), execution="second", now=T1)
    assert lost(partial(locked, ledger, C)) == stands
    bring_to(ledger, JobState.ABORTING, "job-2")
    lost(partial(locked, ledger, C, job_id="job-2"))
    assert ledger.locks([C]) == []


@pytest.mark.parametrize(
    "node",
    [
        "lake/table/dt=2026-11-21/länd=語/",
        "lake/a b+c%20/#x/",
        "lake/table/./",
        f"{'b' * 63}/{'x' * 800}/",
        f"{'b' * 63}/{'ä' * 380}/{'d/' * 90}",
    ],
)
def test_a_node_has_whatever_name_a_prefix_may_have(ledger: Ledger, node: str) -> None:
    (one,) = sealed(ledger, "job-1")
    locked(ledger, node)

    assert ledger.locks([node, f"{node}x/"]) == [Lock(node, one)]
    assert below(ledger, node) == set()


def test_pages_of_locks_lie_below_a_node_and_others_do_not(ledger: Ledger) -> None:
    nodes = [f"lake/table/{number:02d}/" for number in range(MANY)]
    (one,) = sealed(ledger, "job-1")
    locked(ledger, *nodes, "lake/table0/", "lake/tabl/", "lake/x/table/")

    assert list(ledger.locks_below("lake/table/")) == [Lock(node, one) for node in nodes]


def test_a_lock_is_removed_for_who_has_it_alone(ledger: Ledger) -> None:
    one, two = sealed(ledger, "job-1", "job-2")
    locked(ledger, C, D)

    ledger.unlock(Lock(C, two))
    assert set(ledger.locks([C, D])) == {Lock(C, one), Lock(D, one)}
    for _ in range(2):
        ledger.unlock(Lock(C, one))
    assert ledger.locks([C, D]) == [Lock(D, one)]


def test_i6_of_jobs_that_lock_a_node_at_once_one_wins(ledger: Ledger) -> None:
    jobs = [f"job-{number}" for number in range(THREADS)]
    sealed(ledger, *jobs)
    # No two of them have the same set of nodes, and all share one.
    calls = [partial(locked, ledger, C, f"{D}{job_id}/", job_id=job_id) for job_id in jobs]

    outcomes = at_once([partial(persistently, call) for call in calls])

    (won,) = winners(outcomes, lose_by=HeldError)
    assert ledger.job(won.ref) == won
    assert below(ledger, "lake/a/") == {Lock(node, won.ref) for node in won.locks}


def test_i6_of_a_node_and_one_below_that_are_locked_at_once_one_sees_the_other(
    ledger: Ledger,
) -> None:
    for number in range(THREADS // 2):
        above, under = f"above-{number}", f"under-{number}"
        node = f"lake/{number}/"
        sealed(ledger, above, under)
        calls = [
            partial(locked, ledger, node, job_id=above),
            partial(locked, ledger, f"{node}x/y/", job_id=under),
        ]
        high, low = at_once([partial(persistently, call) for call in calls])
        assert isinstance(high, JobRecord)  # it has to see the one below for itself
        if isinstance(low, HeldError):
            assert below(ledger, node) == set()
        else:
            assert below(ledger, node) == {Lock(f"{node}x/y/", ref_of(under))}


# What stands beside a record

# In which states a job has its locks, and its idempotency key; and how its append is listed.
STANDS: dict[JobState, tuple[bool, bool, bool | None]] = {
    JobState.SEALED: (True, False, None),
    JobState.ABORTING: (False, False, None),
    JobState.ABORTED: (False, False, None),
    JobState.COMMITTING: (True, True, False),
    JobState.PUBLISHING: (True, True, False),
    JobState.COMMITTED: (False, True, True),
    JobState.ROLLING_BACK: (True, True, False),
    JobState.ROLLED_BACK: (False, False, True),
}


def to_aborted(ledger: Ledger, state: JobState, **how: object) -> JobRecord:
    """As `bring_to`; an abort begins at a job that has locks."""
    if state not in {JobState.ABORTING, JobState.ABORTED}:
        return bring_to(ledger, state, **how)  # type: ignore[arg-type]
    bring_to(ledger, JobState.SEALED, **how)  # type: ignore[arg-type]
    record = abort(ledger)
    return record if state is record.state else advance(ledger, record.state, state)


@pytest.mark.parametrize("conflict", [Conflict.REPLACE, Conflict.APPEND])
@pytest.mark.parametrize("state", STANDS)
@pytest.mark.parametrize("way", ["advanced", "opened", "opened over one that is open"])
def test_i6_i11_what_stands_beside_a_job_follows_from_its_state(
    ledger: Ledger, state: JobState, conflict: Conflict, way: str
) -> None:
    """Whether it came there step by step, or was brought back from S3 by a ledger that heals."""
    replaces = conflict is Conflict.REPLACE
    nodes = (f"{NODE}dt=1/", f"{NODE}dt=2/") if replaces else ()
    how = {"conflict": conflict, "idempotency_key": KEY, "nodes": nodes, "requested_at": T0}
    if way == "advanced":
        record = to_aborted(ledger, state, **how)
    else:
        record = to_aborted(MemoryLedger(), state, **how)
        if way != "opened":
            ledger.open_job(a_job())
        assert ledger.open_job(record) == record

    has_locks, has_key, ended = STANDS[state]
    assert below(ledger, NODE) == {Lock(node, record.ref) for node in nodes if has_locks}
    holder = ledger.key_holder(TABLE, key_digest(KEY))
    facts = (PLAN.files, PLAN.rows, PLAN.directories)
    has_key &= way == "advanced" or state is not JobState.COMMITTED  # which a note in S3 has
    assert holder == (KeyHolder("job-1", *facts) if has_key else None)
    appends = [] if replaces or ended is None else [Append(NODE, record.ref, ended)]
    assert list(ledger.appends(NODE, below=True)) == appends
    turn = [Turn(T0, record.ref, NODE)] if replaces else []
    asked, done = turns(ledger)
    assert asked == (turn if state is JobState.SEALED else [])
    assert done == (turn if state is JobState.COMMITTED else [])


# Turns


def turns(
    ledger: Ledger, node: str = NODE, *, before: str = T1, since: str = "2026-11-20T00:00:00.000Z"
) -> tuple[list[Turn], list[Turn]]:
    asked = list(ledger.turns_asked(node, before=before))
    return asked, list(ledger.turns_done(node, since=since))


@pytest.mark.parametrize("state", [JobState.SEALED, JobState.COMMITTED])
def test_i6_turns_are_in_the_order_of_the_requests(ledger: Ledger, state: JobState) -> None:
    """Of all that may meet a node; not those of the same moment, and none of appends."""
    days = [f"2026-11-{day:02d}T{hour:02d}:00:00.000Z" for day in (19, 20, 21) for hour in (0, 9)]
    where = ["t/", "t/x/y/", "t/x/"] * 2
    expected = []
    for number, (at, prefix) in enumerate(zip(days, where, strict=True)):
        record = a_job(
            f"job-{9 - number}",
            destination=Destination("lake", prefix),
            requested_at=at,
            conflict=Conflict.REPLACE,
            state=state,
        )
        ledger.open_job(record)
        expected.append(Turn(at, record.ref, f"lake/{prefix}"))
    for other in (Destination("lake", "t0/"), Destination("pond", "t/")):
        ledger.open_job(
            a_job(state=state, conflict=Conflict.FAIL, requested_at=days[1], destination=other)
        )
    found = turns(ledger, "lake/t/x/", before=days[-1], since=days[0])
    want = expected[:-1] if state is JobState.SEALED else expected[1:]
    assert found == ((want, []) if state is JobState.SEALED else ([], want))


def test_pages_of_turns(ledger: Ledger) -> None:
    jobs = [f"{number:08d}-0000-4000-8000-000000000000" for number in range(MANY)]
    for job_id in jobs:
        bring_to(ledger, JobState.SEALED, job_id, conflict=Conflict.REPLACE, requested_at=T0)
    assert turns(ledger)[0] == [Turn(T0, ref_of(job_id), NODE) for job_id in jobs]


# Idempotency keys


def test_i11_a_key_is_taken_by_the_decision_of_one_job(ledger: Ledger) -> None:
    sealed(ledger, "job-1", "job-2", "job-3", idempotency_key=KEY)
    elsewhere = a_job("job-1", idempotency_key=KEY, destination=Destination("lake", "table/x/"))
    digest = key_digest(KEY)
    decided(ledger, "job-1")
    before = ledger.job(ref_of("job-2"))

    with pytest.raises(HeldError):
        decided(ledger, "job-2")

    assert ledger.job(ref_of("job-2")) == before
    assert [one.ref for one in ledger.appends(NODE, below=False)] == [ref_of("job-1")]
    assert ledger.key_holder(elsewhere.destination, digest) is None
    assert ledger.key_holder(TABLE, key_digest("another")) is None
    advance(ledger, JobState.COMMITTING, JobState.ROLLING_BACK, JobState.ROLLED_BACK)
    assert ledger.key_holder(TABLE, digest) is None
    assert decided(ledger, "job-2").state is JobState.COMMITTING
    published = (JobState.COMMITTING, JobState.PUBLISHING, JobState.COMMITTED)
    advance(ledger, *published, job_id="job-2")
    holder = KeyHolder("job-2", PLAN.files, PLAN.rows, PLAN.directories)
    with pytest.raises(HeldError):
        decided(ledger, "job-3")
    assert ledger.key_holder(TABLE, digest) == holder
    ledger.free_key(TABLE, digest, "job-1")
    assert ledger.key_holder(TABLE, digest) == holder
    for _ in range(2):
        ledger.free_key(TABLE, digest, "job-2")
    assert ledger.key_holder(TABLE, digest) is None
    assert decided(ledger, "job-3").state is JobState.COMMITTING


def test_i11_of_decisions_with_one_key_at_once_one_is_taken(ledger: Ledger) -> None:
    jobs = [f"job-{number}" for number in range(THREADS)]
    sealed(ledger, *jobs, idempotency_key=KEY)
    calls = [partial(decided, ledger, job_id) for job_id in jobs]

    (won,) = winners(at_once([partial(persistently, call) for call in calls]), lose_by=HeldError)

    holder = ledger.key_holder(TABLE, key_digest(KEY))
    assert holder is not None and holder.job_id == won.job_id
    assert [one.ref for one in ledger.appends(NODE, below=False)] == [won.ref]


# Appends


def test_i6_appends_are_read_at_a_node_and_with_those_below(ledger: Ledger) -> None:
    prefixes = ["a/", "a/b/", "a/b/c/", "a/b0/", "a/b-/", "ab/"]
    refs = {}
    for prefix in prefixes:
        where = Destination("lake", prefix)
        record = a_job(destination=where, state=JobState.COMMITTING, plan=PLAN, decided_at=T0)
        refs[ledger.open_job(record).ref] = prefix

    def found(node: str, *, below: bool) -> list[str]:
        return sorted(refs[one.ref] for one in ledger.appends(node, below=below))

    assert found("lake/a/", below=False) == ["a/"]
    assert found("lake/a/b/", below=False) == ["a/b/"]
    assert found("lake/a/b/", below=True) == ["a/b/", "a/b/c/"]
    assert found("lake/a/", below=True) == sorted(prefixes[:-1])
    assert found("lake/a/b/c/d/", below=True) == found("pond/a/", below=True) == []


def test_pages_of_jobs_append_at_a_node(ledger: Ledger) -> None:
    jobs = [f"{number:08d}-0000-4000-8000-000000000000" for number in range(MANY)]
    for job_id in jobs:
        bring_to(ledger, JobState.COMMITTING, job_id)

    found = list(ledger.appends(NODE, below=False))

    assert found == [Append(NODE, ref_of(job_id), ended=False) for job_id in jobs]
