"""The sweep: what it ends, what it goes on with, and what it never touches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest

from s3commit.core.documents import decode_request, encode_location
from s3commit.core.errors import AccessError
from s3commit.core.layout import JobDirectory
from s3commit.core.locks import LockMode
from s3commit.core.model import AbortRequest, Names, Outcome, PendingSet
from s3commit.core.protocol.pipeline import new_record, read_spec
from s3commit.core.protocol.seal import seal_job
from s3commit.core.protocol.sweep import DAY, HOUR, Limits, Sweep
from s3commit.core.protocol.sweep_report import Report, decode_report, encode_report
from s3commit.core.protocol.sweep_steps import STEPS, run_sweep
from s3commit.core.states import JobState
from s3commit.core.ticket import Ticket
from s3commit.testing.survey import MemoryExecutions, MemorySurvey
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, World, place_of

LIMITS = Limits()
MINUTE = 60


@dataclass
class Swept(World):
    """A world that is swept; an execution that the sweep starts runs when `settle` is called."""

    limits: Limits = LIMITS
    call_items: int = 5_000
    executions: MemoryExecutions = field(default_factory=MemoryExecutions)
    settled: set[str] = field(default_factory=set)

    def sweep(self, *, dry_run: bool = False) -> Report:
        survey = self.plan.wrap(MemorySurvey(self.store))
        executions = self.plan.wrap(self.executions)
        told: set[str] = set()

        def make(report: Report) -> Sweep:
            return Sweep(
                BUCKET,
                self.pipeline,
                survey,
                executions,
                self.limits,
                report,
                dry_run=dry_run,
                told=told,
                call_items=self.call_items,
            )

        return run_sweep(make)

    def settle(self) -> None:
        """What the started executions do."""
        for name, place in self.executions.started.items():
            if name not in self.settled:
                self.settled.add(name)
                self.run(place, name)

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)


@pytest.fixture
def world() -> Swept:
    return Swept()


def sealed(world: Swept, place: JobDirectory, *, execution: str = "execution-1") -> None:
    """A job whose execution died behind its first step."""
    world.open(place)
    world.request(place, world.attempt(place, "t0"))
    seal_job(world.pipeline, Ticket(place.job_id, BUCKET, place.prefix, execution=execution))


def announced(world: Swept, place: JobDirectory, **spec: Any) -> None:
    """An OPEN job with one manifest that the ledger has heard of."""
    world.open(place, **spec)
    world.announce(place, world.attempt(place, "t0"))


# Jobs that nobody works on


def test_a_stuck_job_without_a_running_execution_is_gone_on_with(world: Swept) -> None:
    sealed(world, place_of())
    world.later(LIMITS.stuck + 1)
    report = world.sweep()
    assert report.started == 1
    world.settle()
    assert world.result(place_of()).outcome is Outcome.COMMITTED


def test_a_job_whose_execution_runs_is_left_to_it(world: Swept) -> None:
    sealed(world, place_of())
    world.executions.running.add("execution-1")
    world.later(DAY)
    assert world.sweep().started == 0


def test_a_job_that_was_written_lately_is_left_alone(world: Swept) -> None:
    sealed(world, place_of())
    world.later(LIMITS.stuck - 5)
    assert world.sweep().started == 0


def test_two_sweeps_at_once_start_one_execution(world: Swept) -> None:
    sealed(world, place_of())
    world.later(LIMITS.stuck + 1)
    assert [world.sweep().started, world.sweep().started] == [1, 0]
    assert len(world.executions.started) == 1


def test_a_job_that_fails_again_and_again_is_tried_ever_more_seldom(world: Swept) -> None:
    """Nothing comes of the executions: they die before, or right after, they take the job over."""
    sealed(world, place_of())
    starts = []
    for quarter in range(4 * 24 * 10):
        world.later(LIMITS.stuck)
        if world.sweep().started:
            starts.append(quarter)
            name = list(world.executions.started)[-1]
            seal_job(world.pipeline, Ticket(JOB, BUCKET, place_of().prefix, execution=name))
    pauses = [after - before for before, after in pairwise(starts)]
    assert pauses == sorted(pauses)
    assert pauses[0] <= 3
    assert max(pauses) <= 4 * 24 + 1
    assert len(starts) < 20


def test_an_execution_that_died_before_it_took_over_is_followed_by_another(world: Swept) -> None:
    sealed(world, place_of())
    for _ in range(3):
        world.later(LIMITS.stuck + 1)
        world.sweep()
    assert len(world.executions.started) == 2  # after one pause, and after two


@pytest.mark.parametrize("state", [JobState.COMMITTED, JobState.ABORTED])
def test_an_ended_job_without_its_result_gets_it(world: Swept, state: JobState) -> None:
    place = place_of()
    if state is JobState.COMMITTED:
        world.open(place)
        world.request(place, world.attempt(place, "t0"))
    else:
        world.open(place)
        world.ask_abort(place)
    world.run(place)
    world.store.delete(BUCKET, place.result)
    world.later(LIMITS.stuck + 1)
    assert world.sweep().started == 1
    world.settle()
    assert world.result(place).outcome == state.value


def test_a_request_that_nobody_heard_is_started(world: Swept) -> None:
    place = place_of()
    announced(world, place)
    world.ask_abort(place)
    world.later(LIMITS.stuck + 1)
    assert world.sweep().started == 1
    world.settle()
    assert world.result(place).outcome is Outcome.ABORTED
    assert world.open_uploads() == []


def test_a_request_of_a_job_that_the_ledger_never_heard_of_is_found_by_its_uploads(
    world: Swept,
) -> None:
    place = place_of()
    world.open(place)
    world.request(place, world.attempt(place, "t0"))
    world.later(LIMITS.stuck + 1)
    assert world.sweep().started == 1
    world.settle()
    assert world.result(place).outcome is Outcome.COMMITTED


def test_a_request_without_any_upload_is_found_at_a_destination_that_is_known(
    world: Swept,
) -> None:
    announced(world, place_of(OTHER_JOB))
    place = place_of()
    world.open(place)
    world.request(place)
    world.later(LIMITS.stuck + 1)
    assert world.sweep().started == 1
    world.settle()
    assert world.result(place).outcome is Outcome.COMMITTED


# Jobs that nobody writes any more


def test_an_abandoned_job_is_aborted_by_the_request_a_driver_would_write(world: Swept) -> None:
    place = place_of()
    announced(world, place)
    world.later(LIMITS.abandoned + 1)
    report = world.sweep()
    assert (report.asked, report.started) == (1, 0)
    stored = world.store.get(BUCKET, place.request, max_bytes=1000)
    request = decode_request(stored.body, place)
    assert isinstance(request, AbortRequest)
    assert "no sign of life for 24 hours" in request.reason
    world.later(LIMITS.stuck + 1)
    world.sweep()  # its event was lost
    world.settle()
    assert world.result(place).outcome is Outcome.ABORTED
    assert world.open_uploads() == []


def test_a_driver_that_was_faster_keeps_its_word(world: Swept) -> None:
    place = place_of()
    world.open(place)
    attempt = world.attempt(place, "t0")
    world.announce(place, attempt)
    world.later(LIMITS.abandoned + 1)
    world.plan.run_before("put", lambda: world.request(place, attempt))
    assert world.sweep().failed == 0
    world.run(place)
    assert world.result(place).outcome is Outcome.COMMITTED


@pytest.mark.parametrize("sign", ["job", "manifest", "begun", "part", "exact part"])
def test_i5_a_slow_job_that_shows_a_sign_of_life_is_never_touched(world: Swept, sign: str) -> None:
    place = place_of()
    names = Names.EXACT if sign == "exact part" else Names.UNIQUE
    announced(world, place, names=names)
    file = world.upload(place, f"slow-{JOB}.parquet", b"x", task="t1", attempt="a0")
    exact = world.attempt(place, "t2", files={"slow.csv": b"x"}) if "exact" in sign else None
    if sign != "job":
        world.later(LIMITS.abandoned + HOUR)
    if sign == "manifest":
        world.store.put(BUCKET, place.manifest("t3", "a0"), b"{}")
    elif sign == "begun":
        world.store.create_upload(BUCKET, f"sales/new-{JOB}.x", metadata={}, content_type="")
    elif sign == "part":
        world.store.upload_part(BUCKET, file.key, file.upload_id, 2, b"y")
    elif sign == "exact part":
        assert exact is not None
        (slow,) = world.store.list_uploads(BUCKET, "sales/slow.csv")
        world.store.upload_part(BUCKET, slow.key, slow.upload_id, 2, b"y")
    world.later(LIMITS.abandoned - HOUR)
    before = world.all_keys(), world.open_uploads()
    report = world.sweep()
    assert (report.asked, report.started, report.uploads) == (0, 0, 0)
    assert (world.all_keys(), world.open_uploads()) == before


@pytest.mark.parametrize("sign", ["upload", "part", "manifest", "none"])
def test_i5_signs_of_life_count_at_the_locations_of_partitions_too(world: Swept, sign: str) -> None:
    main, there = place_of(), place_of(prefix="elsewhere/")
    announced(world, main, locations={"dt=1/": "elsewhere/"})
    spec = read_spec(world.pipeline, main)
    world.store.put(BUCKET, there.job, encode_location(spec, "elsewhere/"))
    file = world.upload(there, f"slow-{JOB}.x", b"x", task="t1", attempt="a0")
    world.later(LIMITS.abandoned + HOUR)
    if sign == "upload":
        world.upload(there, f"new-{JOB}.x", b"x", task="t2", attempt="a0")
    elif sign == "part":
        world.store.upload_part(BUCKET, file.key, file.upload_id, 2, b"y")
    elif sign == "manifest":
        world.drop(there, PendingSet(JOB, (file,), "t1", "a0"), "t1", "a0")
    world.later(LIMITS.abandoned - HOUR)
    assert world.sweep().asked == (1 if sign == "none" else 0)


def test_an_abandoned_job_that_the_ledger_never_heard_of_is_aborted_too(world: Swept) -> None:
    place = place_of()
    world.open(place)
    world.upload(place, f"part-{JOB}.parquet", b"x", task="t1", attempt="a0")
    world.later(LIMITS.abandoned + 1)
    assert world.sweep().asked == 1


def test_i5_a_job_that_the_ledger_has_not_heard_of_yet_may_take_its_time(world: Swept) -> None:
    announced(world, place_of(OTHER_JOB))
    place = place_of()
    world.open(place)
    world.later(LIMITS.abandoned - HOUR)
    assert world.sweep().asked == 0
    world.later(2 * HOUR)
    assert world.sweep().asked == 2


def test_i5_a_job_of_s3a_is_never_aborted_without_a_request(world: Swept) -> None:
    place = place_of()
    key = f"{place.s3a}00/task_202611220232_0000_m_000000.pendingset"
    world.store.put(BUCKET, key, b"{}")
    record = new_record(read_spec(world.pipeline, place), place, world.clock.now())
    world.ledger.open_job(record)
    world.later(LIMITS.abandoned - HOUR)
    assert world.sweep().s3a == 0
    world.later(10 * DAY)
    report = world.sweep()
    assert (report.asked, report.started, report.forgotten, report.s3a) == (0, 0, 0, 1)
    assert "left behind by S3A" in report.notes[0]
    world.store.delete(BUCKET, key)  # its own committer is through
    assert world.sweep().forgotten == 1
    assert world.ledger.job(JOB) is None


# Uploads


def ended(world: Swept, place: JobDirectory) -> None:
    world.open(place)
    world.request(place, world.attempt(place, "t0"))
    world.run(place)


def test_i4_an_upload_of_an_ended_job_is_aborted_and_measured(world: Swept) -> None:
    place = place_of()
    ended(world, place)
    world.upload(place, f"zombie-{JOB}.parquet", b"12345", task="t9", attempt="a0")
    world.later(LIMITS.stuck + 1)
    report = world.sweep()
    assert (report.uploads, report.upload_bytes) == (1, 5)
    assert world.open_uploads() == []


def test_i5_uploads_that_are_not_provably_ours_stay(world: Swept) -> None:
    ended(world, place_of())
    ended(world, place_of("0b6f6f0e-0000-4000-8000-000000000009", "managed/"))
    live = place_of(OTHER_JOB)
    announced(world, live)
    keys = [
        f"managed/part-00000-{JOB}.parquet",  # of a job that is at work elsewhere
        "sales/theirs.parquet",
        f"sales/part-00000-{NEIGHBOUR}-c000.snappy.parquet",  # a write of Spark's own
        f"elsewhere/part-00000-{NEIGHBOUR}.parquet",  # where no job has ever been
        f"salesman/part-00000-{JOB}.parquet",  # not below the job's destination
    ]
    for key in keys:
        world.store.create_upload(BUCKET, key, metadata={}, content_type="")
    world.limits = replace(LIMITS, abandoned=100 * DAY)
    world.later(60 * DAY)
    assert world.sweep().uploads == 0
    assert world.open_uploads() == sorted([*keys, f"sales/part-t0-{OTHER_JOB}.parquet"])


def test_an_upload_of_a_forgotten_job_goes_when_it_is_old_and_silent(world: Swept) -> None:
    ended(world, place_of())
    stray = place_of(NEIGHBOUR)
    file = world.upload(stray, f"part-{NEIGHBOUR}.parquet", b"x", task="t", attempt="a")
    world.later(LIMITS.orphaned - HOUR)
    assert world.sweep().uploads == 0
    world.store.upload_part(BUCKET, file.key, file.upload_id, 2, b"y")
    world.later(2 * HOUR)
    assert world.sweep().uploads == 0
    world.later(LIMITS.orphaned)
    assert world.sweep().uploads == 1


def test_an_upload_of_a_job_that_only_s3_remembers_is_judged_by_its_result(world: Swept) -> None:
    place = place_of()
    ended(world, place)
    world.upload(place, f"zombie-{JOB}.parquet", b"1", task="t9", attempt="a0")
    world.ledger._jobs.clear()
    world.later(LIMITS.stuck + 1)
    assert world.sweep().uploads == 1


def test_i5_a_result_further_down_does_not_speak_for_a_job_above_it(world: Swept) -> None:
    """After the ledger was lost: a job writes below a directory that was copied there."""
    below = place_of(prefix="sales/b/")
    ended(world, below)
    live = place_of()
    world.open(live)
    world.upload(live, f"b/part-{JOB}.parquet", b"x", task="t", attempt="a")
    world.ledger._jobs.clear()
    world.later(LIMITS.stuck + 1)
    assert world.sweep().uploads == 0
    assert world.open_uploads() == [f"sales/b/part-{JOB}.parquet"]


# Directories


def test_working_objects_of_an_ended_job_are_tidied_up(world: Swept) -> None:
    place = place_of()
    ended(world, place)
    world.attempt(place, "t9", "zombie")  # its event is lost
    assert world.sweep().tidied == 0  # it may be on its way
    world.later(LIMITS.stuck + 1)
    report = world.sweep()
    assert (report.tidied, report.objects) == (1, 1)
    assert world.all_keys(place.prefix) == [place.job, place.request, place.result]
    assert world.open_uploads() == []


def test_documents_go_when_the_retention_is_over_and_commits_stay(world: Swept) -> None:
    place = place_of()
    ended(world, place)
    lock = world.ledger.lock(world.record(place).locks[0])  # taken by a late waker that died
    assert world.ledger.put_lock(replace(lock, holders={JOB: LockMode.SHARED}))
    world.later(LIMITS.retention - HOUR)
    assert world.sweep().retired == 0
    world.later(2 * HOUR)
    assert world.sweep().retired == 1
    assert world.all_keys(place.prefix) == []
    assert world.ledger.lock(lock.node).empty
    assert world.store.head(BUCKET, place.commits) is not None
    assert set(world.visible()) == {f"sales/part-t0-{JOB}.parquet"}
    assert world.sweep().retired == 0


def test_a_copied_directory_is_no_job_and_is_left_alone(world: Swept) -> None:
    announced(world, place_of())
    copy = place_of(prefix="copy/")
    announced(world, place_of(OTHER_JOB, "copy/"))
    body = world.store.get(BUCKET, place_of().job, max_bytes=10_000).body
    world.store.put(BUCKET, copy.job, body)
    world.later(LIMITS.abandoned - HOUR)
    world.limits = replace(LIMITS, abandoned=HOUR)
    world.attempt(place_of(), "t2")
    world.attempt(place_of(OTHER_JOB, "copy/"), "t2")
    assert world.sweep().asked == 0
    assert world.all_keys(copy.prefix) == [copy.job]


def test_a_ledger_full_of_ended_jobs_is_not_read_in_each_call(world: Swept) -> None:
    """Those that ended long ago, and are not due, are not asked for."""
    ended(world, place_of())
    world.later(10 * DAY)
    survey = MemorySurvey(world.store)
    plan = world.plan
    plan.forget_calls()
    sweep = Sweep(BUCKET, world.pipeline, plan.wrap(survey), world.executions)
    assert STEPS["TidyJobDirectories"](sweep, "") == ""
    assert set(plan.counts()) == {"jobs_in"}


# All together


def test_a_sweep_in_many_small_calls_does_what_one_large_call_does() -> None:
    reports = []
    for call_items in (1, 2, 5_000):
        world = Swept(call_items=call_items)
        for number in range(5):
            place = place_of(f"0b6f6f0e-0000-4000-8000-00000000010{number}", f"t{number % 2}/")
            if number % 2:
                ended(world, place)
                world.upload(place, f"z-{place.job_id}.x", b"1", task="t9", attempt="a0")
            else:
                announced(world, place)
        world.later(LIMITS.retention + DAY)
        reports.append(encode_report(world.sweep()) | {"looked": 0, "notes": []})
    assert reports[0] == reports[1] == reports[2]
    assert reports[0]["asked"] == 3
    assert reports[0]["uploads"] == 2
    assert reports[0]["retired"] == 2


def test_a_dry_run_says_what_a_sweep_would_do_and_changes_nothing(world: Swept) -> None:
    sealed(world, place_of())
    announced(world, place_of(OTHER_JOB))
    unheard = place_of("0b6f6f0e-0000-4000-8000-000000000009")
    world.open(unheard)
    world.request(unheard, world.attempt(unheard, "t0"))
    ended(world, place_of(NEIGHBOUR))
    world.upload(place_of(NEIGHBOUR), f"z-{NEIGHBOUR}.x", b"1", task="t9", attempt="a0")
    world.later(LIMITS.retention + DAY)
    before = world.all_keys(), world.open_uploads(), dict(world.ledger._jobs)
    told = world.sweep(dry_run=True)
    assert (world.all_keys(), world.open_uploads(), world.ledger._jobs) == before
    assert world.executions.started == {}
    done = world.sweep()
    assert encode_report(told) == encode_report(done)
    assert (done.started, done.asked, done.uploads, done.retired) == (2, 1, 1, 1)


def test_what_fails_is_counted_and_the_rest_is_done(world: Swept) -> None:
    sealed(world, place_of())
    sealed(world, place_of(OTHER_JOB))
    world.later(LIMITS.stuck + 1)
    world.plan.fail("start", AccessError("may not"))
    report = world.sweep()
    assert (report.failed, report.started) == (1, 1)
    assert report.notes == [f"failed: job {JOB}: may not", f"job {OTHER_JOB}: SEALED, goes on"]


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
