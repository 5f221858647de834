"""The sweep: what it goes on with, and all of it together."""

from __future__ import annotations

from itertools import pairwise

import pytest

from s3commit.core.commit.seal_job import seal_job
from s3commit.core.commit.verify_manifests import verify_manifests
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.record import takeovers
from s3commit.core.model.errors import AccessError, TransientError
from s3commit.core.model.job import Outcome
from s3commit.core.model.states import JobState
from s3commit.core.ports.ledger import LostRaceError
from s3commit.core.sweep.report import MOST_NOTES, Report, decode_report, encode_report, priced
from s3commit.core.sweep.steps import STEPS
from s3commit.core.sweep.sweep import DAY, HOUR, tries_due
from tests.core.swept import LIMITS, MINUTE, Swept, announced, ended, sealed
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, job_directory


@pytest.fixture
def world() -> Swept:
    return Swept()


# Jobs that nobody works on


def test_a_stuck_job_without_a_running_execution_is_gone_on_with(world: Swept) -> None:
    sealed(world, job_directory())
    world.later(LIMITS.stuck + 1)
    report = world.sweep()
    assert report.started == 1
    world.settle()
    assert world.result(job_directory()).outcome is Outcome.COMMITTED


def test_a_job_whose_execution_runs_is_left_to_it(world: Swept) -> None:
    sealed(world, job_directory())
    world.executions.running.add("execution-1")
    world.later(DAY)
    assert world.sweep().started == 0


def test_a_job_that_was_written_lately_is_left_alone(world: Swept) -> None:
    sealed(world, job_directory())
    world.later(LIMITS.stuck - 5)
    assert world.sweep().started == 0


def test_two_sweeps_at_once_start_one_execution(world: Swept) -> None:
    sealed(world, job_directory())
    world.later(LIMITS.stuck + 1)
    assert [world.sweep().started, world.sweep().started] == [1, 0]
    assert len(world.executions.started) == 1


def test_a_job_that_fails_again_and_again_is_tried_ever_more_seldom(world: Swept) -> None:
    """Nothing comes of the executions: they die before, or right after, they take the job over."""
    sealed(world, job_directory())
    starts = []
    for quarter in range(4 * 24 * 10):
        world.later(LIMITS.stuck)
        if world.sweep().started:
            starts.append(quarter)
            name = list(world.executions.started)[-1]
            seal_job(world.ports, Ticket(JOB, BUCKET, job_directory().prefix, execution=name))
    pauses = [after - before for before, after in pairwise(starts)]
    assert pauses == sorted(pauses)
    assert pauses[0] <= 3
    assert max(pauses) <= 4 * 24 + 1
    assert len(starts) < 20


def test_an_execution_that_died_before_it_took_over_is_followed_by_another(world: Swept) -> None:
    sealed(world, job_directory())
    for _ in range(3):
        world.later(LIMITS.stuck + 1)
        world.sweep()
    assert len(world.executions.started) == 2  # after one pause, and after two


@pytest.mark.parametrize("state", [JobState.COMMITTED, JobState.ABORTED])
def test_an_ended_job_without_its_result_gets_it(world: Swept, state: JobState) -> None:
    directory = job_directory()
    if state is JobState.COMMITTED:
        world.request(directory, world.attempt(directory, "t0"))
    else:
        world.open(directory)
        world.request_abort(directory)
    world.run(directory)
    world.store.delete(BUCKET, directory.result)
    world.later(LIMITS.stuck + 1)
    assert world.sweep().started == 1
    world.settle()
    assert world.result(directory).outcome == state.value


def test_a_request_that_nobody_heard_is_started(world: Swept) -> None:
    directory = job_directory()
    announced(world, directory)
    world.request_abort(directory)
    world.later(LIMITS.stuck + 1)
    assert world.sweep().started == 1
    world.settle()
    assert world.result(directory).outcome is Outcome.ABORTED
    assert world.open_uploads() == []


def test_a_request_of_a_job_that_the_ledger_never_heard_of_is_found_by_its_uploads(
    world: Swept,
) -> None:
    directory = job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    world.later(LIMITS.stuck + 1)
    assert world.sweep().started == 1
    world.settle()
    assert world.result(directory).outcome is Outcome.COMMITTED


def test_a_request_without_any_upload_is_found_at_a_destination_that_is_known(
    world: Swept,
) -> None:
    announced(world, job_directory(OTHER_JOB))
    directory = job_directory()
    world.request(directory)
    world.later(LIMITS.stuck + 1)
    assert world.sweep().started == 1
    world.settle()
    assert world.result(directory).outcome is Outcome.COMMITTED


def test_of_two_executions_no_name_is_ever_the_same(world: Swept) -> None:
    """Step Functions keeps a name for 90 days; nothing comes of any, and no pause exceeds a day."""
    sealed(world, job_directory())
    started = []
    for hour in range(24 * 100):
        world.later(HOUR)
        if world.sweep().started:
            started.append(hour)
    assert len(world.executions.started) == len(started)
    pauses = [after - before for before, after in pairwise(started)]
    assert max(pauses) <= 24
    assert len(started) < 110


@pytest.mark.parametrize(
    ("silent", "tries"), [(14, 0), (15, 1), (44, 1), (45, 2), (105, 3), (10 * 1440, 15)]
)
def test_tries_come_ever_more_seldom_and_once_a_day_in_the_end(silent: int, tries: int) -> None:
    assert tries_due(silent * MINUTE, 15 * MINUTE, DAY) == tries


def test_limits_of_zero_ask_for_no_more_than_a_look_a_second() -> None:
    assert tries_due(10, 0, 0) == 10


def test_an_execution_that_could_not_be_started_is_started_by_the_next_sweep(world: Swept) -> None:
    sealed(world, job_directory())
    world.later(LIMITS.stuck + 1)
    world.plan.fail("start", TransientError("ThrottlingException: rate exceeded"))
    report = world.sweep()
    assert (report.started, report.failed) == (0, 1)
    assert "rate exceeded" in report.notes[0]
    assert world.sweep().started == 1
    world.settle()
    assert world.result(job_directory()).outcome is Outcome.COMMITTED


def test_of_an_execution_that_can_not_be_asked_for_nothing_is_believed(world: Swept) -> None:
    sealed(world, job_directory())
    world.later(LIMITS.stuck + 1)
    world.plan.fail("describe", TransientError("ThrottlingException: rate exceeded"))
    report = world.sweep()
    assert (report.started, report.failed) == (0, 1)


# A ledger that was lost


def test_a_job_of_a_new_ledger_is_tried_as_often_as_any(world: Swept) -> None:
    sealed(world, job_directory())
    world.ledger._jobs.clear()
    directory = job_directory()
    seal_job(world.ports, Ticket(JOB, BUCKET, directory.prefix, execution="execution-2"))
    assert takeovers(world.record(job_directory())) == 1
    world.later(LIMITS.stuck + 1)
    assert world.sweep().started == 1


def test_i3_a_worker_of_before_the_ledger_was_lost_is_refused_by_the_jobs_next_record(
    world: Swept,
) -> None:
    """Both executions are the first to take the job over, each in its own ledger."""
    directory = job_directory()
    world.request(directory, world.attempt(directory, "t0"))
    old = seal_job(world.ports, Ticket(JOB, BUCKET, directory.prefix, execution="old"))
    world.ledger._jobs.clear()
    world.later(1)
    new = seal_job(world.ports, Ticket(JOB, BUCKET, directory.prefix, execution="new"))
    with pytest.raises(LostRaceError):
        verify_manifests(world.ports, old)
    assert verify_manifests(world.ports, new).plan


# All together


def test_a_sweep_in_many_small_calls_does_what_one_large_call_does() -> None:
    reports = []
    for call_items in (1, 2, 5_000):
        world = Swept(call_items=call_items)
        for number in range(5):
            directory = job_directory(
                f"0b6f6f0e-0000-4000-8000-00000000010{number}", f"t{number % 2}/"
            )
            if number % 2:
                ended(world, directory)
                world.upload(directory, f"z-{directory.job_id}.x", b"1", task="t9", attempt="a0")
            else:
                announced(world, directory)
        world.later(LIMITS.retention + DAY)
        reports.append(encode_report(world.sweep()) | {"looked": 0, "notes": []})
    assert reports[0] == reports[1] == reports[2]
    assert reports[0]["asked"] == 3
    assert reports[0]["uploads"] == 2
    assert reports[0]["retired"] == 2


def test_a_dry_run_says_what_a_sweep_would_do_and_changes_nothing(world: Swept) -> None:
    sealed(world, job_directory())
    announced(world, job_directory(OTHER_JOB))
    unheard = job_directory("0b6f6f0e-0000-4000-8000-000000000009")
    world.request(unheard, world.attempt(unheard, "t0"))
    ended(world, job_directory(NEIGHBOUR))
    world.upload(job_directory(NEIGHBOUR), f"z-{NEIGHBOUR}.x", b"1", task="t9", attempt="a0")
    world.later(LIMITS.retention + DAY)
    before = world.all_keys(), world.open_uploads(), dict(world.ledger._jobs)
    told = world.sweep(dry_run=True)
    assert (world.all_keys(), world.open_uploads(), world.ledger._jobs) == before
    assert world.executions.started == {}
    done = world.sweep()
    assert encode_report(told) == encode_report(done)
    assert (done.started, done.asked, done.uploads, done.retired) == (2, 1, 1, 1)


def test_what_fails_is_counted_and_the_rest_is_done(world: Swept) -> None:
    sealed(world, job_directory())
    sealed(world, job_directory(OTHER_JOB))
    world.later(LIMITS.stuck + 1)
    world.plan.fail("start", AccessError("may not"))
    report = world.sweep()
    assert (report.failed, report.started) == (1, 1)
    failed, started = report.notes
    assert failed == f"failed: job {JOB}: may not"
    assert started.startswith(f"job {OTHER_JOB} at s3://lake/sales/: SEALED, silent for 15 minutes")


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (1023, "1023 B (under 0.01 USD a month)"),
        (3 * 2**20 // 2, "1.5 MiB (under 0.01 USD a month)"),
        (2**30, "1.0 GiB (0.02 USD a month)"),
        (5 * 2**40, "5.0 TiB (117.76 USD a month)"),
    ],
)
def test_bytes_are_said_with_what_they_cost(count: int, said: str) -> None:
    """S3 Standard, us-east-1: 0.023 USD a GiB and month."""
    assert priced(count) == said


def test_the_report_names_so_many_things_and_says_how_many_more(world: Swept) -> None:
    report = Report()
    for number in range(MOST_NOTES + 7):
        report.note(f"job {number}")
    assert (len(report.notes), report.unsaid) == (MOST_NOTES, 7)
    again = decode_report(encode_report(report))
    again.note_failure("failed: job 99: may not")
    assert (again.unsaid, encode_report(again)["unsaid"]) == (8, 8)
    assert again.notes[:2] == ["failed: job 99: may not", "job 0"]


def test_a_report_survives_its_way_through_the_state_machine() -> None:
    report = Report(looked=3, upload_bytes=2**30, s3a_bytes=2**31, notes=["one"])
    encoded = encode_report(report)
    assert decode_report(encoded) == report
    assert (encoded["freedUsdMonth"], encoded["s3aUsdMonth"]) == (0.023, 0.046)
    assert decode_report({}) == Report()
    assert list(STEPS) == [
        "LookAtOpenJobs",
        "GoOnWithStuckJobs",
        "AbortOrphanedUploads",
        "TidyJobDirectories",
    ]
