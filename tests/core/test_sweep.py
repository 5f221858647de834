"""The sweep: jobs that no execution works on, dry runs, failures, and what it may cost."""

import uuid
from functools import partial
from itertools import pairwise

import pytest

from s3commit.core.model.errors import AccessError
from s3commit.core.model.limits import CALL_SECONDS
from s3commit.core.model.moments import shifted
from s3commit.core.model.outcome import Outcome
from s3commit.core.sweep import sweep as sweeping
from s3commit.core.sweep.actions import MOST_NOTES, SweepReport, encode_report
from s3commit.core.sweep.sweep import DAY, HOUR
from s3commit.core.sweep.verdicts import try_due
from tests.core.swept import LIMITS, MINUTE, Swept, abandoned_at, announced, ended, sealed
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, job_directory


def ids(count: int) -> list[str]:
    return [str(uuid.UUID(int=number << 96 | 7, version=4)) for number in range(count)]


# Jobs that no execution works on


def test_a_job_that_fails_again_and_again_is_tried_once_a_day_in_the_end(world: Swept) -> None:
    """Step Functions keeps a name for 90 days: no two executions have the same."""
    sealed(world, job_directory())
    started = []
    for hour in range(0, 24 * 100, 2):
        world.later(2 * HOUR)
        if world.sweep().started:
            started.append(hour)
    assert len(world.executions.started) == len(started)
    pauses = [after - before for before, after in pairwise(started)]
    assert pauses[0] <= 2
    assert max(pauses) <= 24
    assert len(started) < 110


@pytest.mark.parametrize("is_known", [True, False], ids=["in the ledger", "unheard of"])
@pytest.mark.parametrize("minutes", range(15, 75, 5))
def test_a_request_that_is_put_again_is_as_old_as_the_first_one(
    world: Swept, is_known: bool, minutes: int
) -> None:
    """Otherwise a client whose every event is lost would keep the sweep from its job."""
    directory = job_directory()
    attempt = world.attempt(directory, "t0")
    if is_known:
        world.announce(directory, attempt)
    else:
        ended(world, job_directory(OTHER_JOB))  # so the sweep looks at the destination
    world.request(directory, attempt)
    for minute in range(minutes):
        world.later(MINUTE)
        if minute + 1 in {5, 10, 20, 40}:
            world.ask_again(directory)
    assert world.sweep_and_settle().started == 1
    assert world.result(directory).outcome is Outcome.COMMITTED


@pytest.mark.parametrize(
    ("minutes", "due"), [(14, 0), (15, 15), (44, 15), (45, 45), (105, 105), (10 * 1440, 13_425)]
)
def test_tries_come_ever_more_seldom(minutes: int, due: int) -> None:
    since = "2026-11-21T00:00:00.000Z"
    now = shifted(since, minutes * MINUTE)
    found = try_due(since, now, 15 * MINUTE)
    assert found == (shifted(since, due * MINUTE) if due else "")


# All together


def test_a_dry_run_lists_what_a_sweep_would_do_and_changes_nothing(world: Swept) -> None:
    ended(world, job_directory(NEIGHBOUR))
    world.later(LIMITS.retention)
    sealed(world, job_directory())
    announced(world, job_directory(OTHER_JOB))
    unheard = job_directory("0b6f6f0e-0000-4000-8000-000000000009")
    world.request(unheard, world.attempt(unheard, "t0"))
    zombie = job_directory("0b6f6f0e-0000-4000-8000-00000000000a")
    ended(world, zombie)
    world.upload(zombie, f"z-{zombie.job_id}.x", b"1", task="t9", attempt="a0")
    world.later(DAY + HOUR)
    before = world.all_keys(), world.open_uploads(), world.ledger.records
    told = world.sweep(dry_run=True)
    assert (world.all_keys(), world.open_uploads(), world.ledger.records) == before
    assert world.executions.started == {}
    done = world.sweep()
    said = [encode_report(one) | {"notes": sorted(one.notes)} for one in (told, done)]
    assert said[0] == said[1]
    assert (done.started, done.aborted, done.expired, done.documents_deleted) == (3, 1, 1, 4)


def test_what_fails_is_counted_and_the_rest_is_done(world: Swept) -> None:
    sealed(world, job_directory())
    sealed(world, job_directory(OTHER_JOB))
    world.later(LIMITS.stuck + 1)
    world.plan.fail("start", AccessError("may not"))
    report = world.sweep()
    assert (report.failed, report.started) == (1, 1)
    (failed,), (started,) = report.failures, report.notes
    assert failed.startswith("job 0b6f6f0e")
    assert failed.endswith(": may not")
    assert ": SEALED, silent for 15 minutes; an execution starts" in started
    world.sweep_and_settle()
    for job_id in (JOB, OTHER_JOB):
        assert world.result(job_directory(job_id)).outcome is Outcome.COMMITTED


def test_the_report_names_so_many_things_and_says_how_many_more() -> None:
    report = SweepReport()
    for number in range(MOST_NOTES + 7):
        report.note(f"job {number}")
    assert (len(report.notes), report.lines_left_out) == (MOST_NOTES, 7)
    report.fail("job 99", AccessError("may not"))
    assert (report.lines_left_out, encode_report(report)["linesLeftOut"]) == (7, 7)
    assert "first" not in encode_report(report)
    assert (report.notes[0], report.failures) == ("job 0", ["job 99: may not"])


# What others may put keeps nobody's job from its turn


def test_i12_a_destination_that_may_not_be_listed_stops_no_other_one(world: Swept) -> None:
    theirs, ours = job_directory(prefix="a/"), job_directory(OTHER_JOB, "b/")
    for directory in (theirs, ours):
        ended(world, directory)
        world.attempt(directory, "t9", "zombie")
    world.later(LIMITS.stuck + 1)
    no = AccessError("AccessDenied")
    world.plan.fail("list", no, times=None, where=lambda call: call.key.startswith("a/"))
    report = world.sweep_and_settle()
    assert (report.started, report.failed) == (1, 1)
    assert "destination s3://lake/a/: AccessDenied" in report.failures[0]
    assert world.all_keys(ours.tasks) == []


def test_i2_a_driver_that_asks_while_the_sweep_gives_its_job_up_has_it_committed(
    world: Swept,
) -> None:
    directory = job_directory()
    world.open(directory)
    attempt = world.attempt(directory, "t0")
    world.announce(directory, attempt)
    world.later(LIMITS.abandoned + HOUR)
    asks = partial(world.request, directory, attempt)
    world.plan.run_before("put", asks, where=lambda call: call.key == directory.request)
    world.sweep()
    world.run(directory)
    assert world.ended(directory) == (Outcome.COMMITTED, "")


def test_i12_a_document_that_may_not_be_read_stops_no_other_job(world: Swept) -> None:
    """Anybody can put an object that is encrypted with a key of theirs."""
    announced(world, job_directory(NEIGHBOUR))
    theirs, ours = job_directory(), job_directory(OTHER_JOB)
    world.open(theirs)
    world.request(ours, world.attempt(ours, "t0"))
    world.later(LIMITS.abandoned + HOUR)
    no = AccessError("AccessDenied")
    world.plan.fail("get", no, times=None, where=lambda call: call.key == theirs.job)
    report = world.sweep()
    assert (report.started, report.aborted, report.failed) == (1, 1, 0)
    assert set(world.executions.started.values()) == {ours}


def test_i12_whoever_has_many_jobs_keeps_no_other_job_from_its_turn_for_long(
    world: Swept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is time for few of them, and it is others in each sweep."""
    monkeypatch.setattr(sweeping, "MOST_RECORDS", 10)
    for job_id in ids(50):
        announced(world, job_directory(job_id, "theirs/"))
    theirs = world.ledger.records
    ours = [job_directory(OTHER_JOB, f"ours/{number}/") for number in range(3)]
    for directory in ours:
        announced(world, directory)
    world.later(LIMITS.abandoned + HOUR)
    for _ in range(60):
        world.sweep()
        if all(abandoned_at(world, directory) for directory in ours):
            break
        for record in theirs:  # they come again and again
            world.store.put(BUCKET, f"theirs/__magic_job-{record.job_id}/_tasks/x", b"")
        world.later(HOUR)
    else:
        raise AssertionError("its turn never came")


def test_i12_each_question_has_its_share_of_the_time(world: Swept) -> None:
    for job_id in ids(20):
        sealed(world, job_directory(job_id))
    announced(world, job_directory(OTHER_JOB))
    world.later(LIMITS.abandoned + HOUR)
    slow = CALL_SECONDS / 30
    world.plan.run_before("describe", lambda: world.later(slow), times=None)
    report = world.sweep()
    assert 0 < report.started < 20
    assert report.aborted == 1


def test_i12_what_a_sweep_asks_for_does_not_grow_with_jobs_that_have_ended_long_ago() -> None:
    spent = []
    for count in (5, 50):
        world = Swept()
        for job_id in ids(count):
            ended(world, job_directory(job_id))
        world.later(10 * DAY)
        ended(world, job_directory(OTHER_JOB))
        world.later(HOUR)
        world.plan.forget_calls()
        world.sweep()
        spent.append(world.plan.count())
    assert spent[0] == spent[1]


def test_i12_a_job_whose_documents_are_gone_is_never_looked_at_again(world: Swept) -> None:
    ended(world, job_directory())
    world.later(LIMITS.retention + HOUR)
    assert world.sweep().expired == 1
    world.plan.forget_calls()
    assert world.sweep().visited == 0
    assert set(world.plan.counts()) == {"jobs_in"}
    assert world.ledger.job(job_directory().ref) is not None
