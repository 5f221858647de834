"""The ledger: facts, decisions, attempts, listings, and what the table knows of S3."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from s3commit.core.model.limits import APPEND_SECONDS, FUNCTION_CLOCKS
from s3commit.core.model.locks import ENDED_SECONDS, TEN_MINUTES, Append, key_digest
from s3commit.core.model.moments import seconds, shifted
from s3commit.core.model.record import Healing, ReplacedFacts, Waits
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import Ledger, LostRaceError
from tests.contract.ledger_jobs import (
    NODE,
    OTHER_PLAN,
    OTHER_REPLACED,
    PLAN,
    REPLACED,
    T0,
    T1,
    a_job,
    an_attempt,
    bring_to,
    decided,
    locked,
    lost,
    ref_of,
)
from tests.fakes.clock import ManualClock


def test_each_fact_is_noted_by_itself_and_leaves_the_others(ledger: Ledger) -> None:
    before = bring_to(ledger, JobState.SEALED)
    waits = Waits(T0, ("job-2-0f", "job-3-0f"))

    noted = partial(ledger.note, before, now=T0)
    for note in (
        partial(noted, plan=OTHER_PLAN),
        partial(noted, waits=waits),
        partial(noted, replaced=REPLACED),
    ):
        note()
    locked(ledger, NODE)
    after = ledger.note(a_job(), now=T1)

    expected = replace(
        before,
        plan=OTHER_PLAN,
        locks=(NODE,),
        locked_at=T1,
        waits=waits,
        replaced=REPLACED,
        updated_at=T1,
    )
    assert after == ledger.job(ref_of("job-1")) == expected


@pytest.mark.parametrize("state", [state for state in JobState if state is not JobState.SEALED])
def test_only_a_sealed_job_is_decided_locks_and_has_facts(ledger: Ledger, state: JobState) -> None:
    stands = bring_to(ledger, state)

    noted = partial(ledger.note, stands, now=T1)
    for call in (
        partial(noted, plan=PLAN),
        partial(noted, waits=Waits(T1)),
        partial(noted, replaced=REPLACED),
        partial(locked, ledger, NODE),
        partial(decided, ledger),
    ):
        assert lost(call) == stands
    assert ledger.job(stands.ref) == stands
    assert ledger.locks([NODE]) == []


def test_the_decision_is_stored_with_its_time(ledger: Ledger) -> None:
    bring_to(ledger, JobState.SEALED)
    before = ledger.note(a_job(), now=T0, plan=PLAN, replaced=REPLACED, waits=Waits(T0, ("x",)))

    after = ledger.decide(before, now=T1)

    assert after == ledger.job(ref_of("job-1"))
    assert after == replace(
        before, state=JobState.COMMITTING, decided_at=T1, updated_at=T1, waits=None
    )


@pytest.mark.parametrize(
    ("noted", "asked"),
    [
        ({}, None),
        ({"plan": OTHER_PLAN}, None),
        ({"plan": PLAN}, REPLACED),
        ({"plan": PLAN, "replaced": REPLACED}, None),
        ({"plan": PLAN, "replaced": REPLACED}, OTHER_REPLACED),
    ],
)
def test_a_decision_on_stale_facts_is_lost(
    ledger: Ledger, noted: dict[str, Any], asked: ReplacedFacts | None
) -> None:
    bring_to(ledger, JobState.SEALED)
    stands = ledger.note(a_job(), now=T0, **noted)

    with pytest.raises(LostRaceError, match="its plan or replace list has changed") as caught:
        decided(ledger, replaced=asked)
    assert caught.value.found == stands == ledger.job(ref_of("job-1"))


def test_attempts_are_read_as_they_were_noted(ledger: Ledger) -> None:
    noted = {an_attempt(task, attempt) for task in range(5) for attempt in range(2)}
    for attempt in (*noted, an_attempt(0, job_id="job-10")):
        ledger.record_attempt(attempt)

    assert sorted(ledger.attempts(ref_of("job-1")), key=repr) == sorted(noted, key=repr)
    assert list(ledger.attempts(ref_of("job-10"))) == [an_attempt(0, job_id="job-10")]


def test_jobs_are_listed_by_state_oldest_first(ledger: Ledger) -> None:
    times = [f"2026-11-21T22:00:{second:02d}.000Z" for second in (9, 3, 5, 1, 7)]
    for number, now in enumerate(times):
        bring_to(ledger, JobState.SEALED, f"job-{number}", now)
    bring_to(ledger, JobState.OPEN, "open", times[3])
    bring_to(ledger, JobState.ABORTED, "ended", times[3])
    ledger.record_attempt(an_attempt(1, job_id="job-0"))

    found = list(ledger.jobs_in(JobState.SEALED, before=times[4]))

    assert [record.job_id for record in found] == ["job-3", "job-1", "job-2"]
    assert found[0] == ledger.job(ref_of("job-3"))
    assert [r.job_id for r in ledger.jobs_in(JobState.ABORTED, before=T1[:-1])] == []
    assert [r.job_id for r in ledger.jobs_in(JobState.ABORTED, before=times[0])] == ["ended"]


def test_more_jobs_than_a_page_holds_are_listed_from_a_moment_on(ledger: Ledger) -> None:
    times = [f"2026-11-21T22:00:{second:02d}.000Z" for second in range(20)]
    for number, now in enumerate(times):
        ledger.open_job(a_job(f"job-{number}", updated_at=now))

    for since, before in ((0, 20), (2, 5)):
        until = [*times, "2026-11-22T00:00:00.000Z"][before]
        found = ledger.jobs_in(JobState.OPEN, since=times[since], before=until)
        names = [f"job-{n}" for n in range(since, before)]
        assert [record.job_id for record in found] == names
        latest = ledger.jobs_in(JobState.OPEN, since=times[since], before=until, latest_first=True)
        assert [record.job_id for record in latest] == names[::-1]


def test_few_jobs_are_listed_together(ledger: Ledger) -> None:
    opened = [ledger.open_job(a_job(f"job-{number}")) for number in range(4)]
    opened.append(bring_to(ledger, JobState.ABORTED, "ended"))
    ledger.record_attempt(an_attempt(1, job_id="job-0"))
    ledger.unlist(opened.pop(0).ref)

    listed = ledger.all_jobs(most=5)

    assert listed is not None
    assert sorted(listed, key=repr) == sorted(opened, key=repr)
    assert ledger.all_jobs(most=3) is None


def test_the_jobs_of_a_state_are_counted_until_there_are_many(ledger: Ledger) -> None:
    for number in range(40):
        ledger.open_job(a_job(f"job-{number}", updated_at=T1 if number else T0))
    bring_to(ledger, JobState.SEALED, "sealed", T1)
    assert ledger.count_in(JobState.OPEN, since=T1, most=100) == 39
    assert ledger.count_in(JobState.OPEN, since=T0, most=100) == 40
    assert 10 <= ledger.count_in(JobState.OPEN, since=T0, most=10) <= 40
    assert ledger.count_in(JobState.ABORTED, since=T0, most=10) == 0


# What the table knows of S3


def test_i8_the_first_look_at_a_bucket_is_noted(ledger: Ledger) -> None:
    first = ledger.healing("lake", now=T0)
    assert (first.since, first.until, first.whole) == (T0, "", False)
    assert first.table
    assert ledger.healing("lake", now=T1) == first
    assert ledger.peek_healing() == {"lake": first}
    assert ledger.healing("pond", now=T1).since == T1
    assert ledger.peek_healing().keys() == {"lake", "pond"}


def test_i8_what_has_been_walked_is_noted_until_the_ledger_is_whole(ledger: Ledger) -> None:
    first = ledger.healing("lake", now=T0)
    walked = replace(first, until="_s3commit/a", unread=("_s3commit/a",))
    ledger.note_healing("lake", walked)
    ledger.note_healing("lake", first)  # by a slower call
    assert ledger.healing("lake", now=T1) == walked
    whole = replace(first, until="_s3commit/b", whole=True)
    ledger.note_healing("lake", whole)
    ledger.note_healing("lake", replace(first, until="_s3commit/c"))  # by a slower call
    assert ledger.healing("lake", now=T1) == whole


def test_i8_what_was_walked_for_another_table_is_not_noted(ledger: Ledger) -> None:
    other = Healing("another", T0, whole=True)
    ledger.note_healing("lake", other)
    first = ledger.healing("lake", now=T1)
    ledger.note_healing("lake", other)
    assert ledger.healing("lake", now=T1) == first
    assert not first.whole


@pytest.mark.parametrize("state", [JobState.COMMITTING, JobState.COMMITTED])
def test_i8_i11_a_decided_job_takes_the_place_of_one_that_is_open(
    ledger: Ledger, state: JobState
) -> None:
    """With its key, unless it is committed: an undo may have freed that."""
    ledger.open_job(a_job("job-1"))
    what = {"state": state, "plan": PLAN, "decided_at": T0, "idempotency_key": "k"}
    known = a_job("job-1", generation=7, **what)
    assert ledger.open_job(known) == known
    assert ledger.job(ref_of("job-1")) == known
    listed = ledger.jobs_in(state, before="2026-11-22T00:00:00.000Z")
    assert list(listed) == [known]
    holder = ledger.key_holder(known.destination, key_digest("k"))
    assert (holder is None) == (state is JobState.COMMITTED)
    for later in (a_job("job-1"), a_job("job-1", state=JobState.ABORTED, finished_at=T1)):
        assert ledger.open_job(later) == known


# Jobs whose documents are gone


def test_a_job_that_is_taken_out_of_the_index_is_still_known(ledger: Ledger) -> None:
    ledger.open_job(a_job("job-1"))
    kept = ledger.open_job(a_job("job-2"))
    record = ledger.job(ref_of("job-1"))
    ledger.unlist(ref_of("job-1"))
    ledger.unlist(ref_of("job-1"))  # again
    ledger.unlist(ref_of("never"))
    assert ledger.job(ref_of("job-1")) == record
    assert ledger.job(ref_of("never")) is None
    found = ledger.jobs_in(JobState.OPEN, before="2026-11-22T00:00:00.000Z")
    assert list(found) == [kept]


# Two functions' clocks differ by minutes (A7)


def listed_at(ledger: Ledger, clock: ManualClock, now: str) -> list[Append]:
    """The appends, as a function reads them whose clock says ``now``."""
    clock.advance(seconds(clock.now(), now))
    return list(ledger.appends(NODE, below=False))


@pytest.mark.parametrize("apart", [-FUNCTION_CLOCKS, 0, FUNCTION_CLOCKS])
@pytest.mark.parametrize("ago", [0, TEN_MINUTES, APPEND_SECONDS])
def test_i6_a7_an_append_that_has_ended_is_found_by_a_function_with_another_clock(
    ledger: Ledger, clock: ManualClock, ago: int, apart: int
) -> None:
    """At any moment of ten minutes, since the partitions of the table are ten minutes."""
    for minute in range(0, TEN_MINUTES // 60, 3):
        job_id, now = f"{minute:08d}-0000-4000-8000-000000000000", shifted(T0, 60 * minute)
        bring_to(ledger, JobState.COMMITTED, job_id, shifted(now, apart - ago))
        assert Append(NODE, ref_of(job_id), ended=True) in listed_at(ledger, clock, now)


@pytest.mark.parametrize("apart", [-1, 1])
def test_an_append_of_quite_another_time_is_not_read(
    ledger: Ledger, clock: ManualClock, apart: int
) -> None:
    """They are without number, and DynamoDB keeps some of them for days."""
    bring_to(ledger, JobState.COMMITTED, "job-1", T0)
    assert listed_at(ledger, clock, shifted(T0, apart * (ENDED_SECONDS + TEN_MINUTES))) == []
