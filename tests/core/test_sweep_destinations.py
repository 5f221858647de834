"""The sweep at destinations: silent jobs, leftovers of ended ones, retirement."""

from functools import partial

import pytest

from s3commit.core.commit.note_arrivals import note_job
from s3commit.core.documents.request_json import AbortRequest, decode_request
from s3commit.core.model.destination import Conflict
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.outcome import Outcome
from s3commit.core.sweep import destinations, verdicts
from s3commit.core.sweep.sweep import DAY, HOUR
from tests.core.swept import LIMITS, Swept, abandoned_at, announced, ended, sealed
from tests.core.world import BUCKET, JOB, NEIGHBOUR, OTHER_JOB, job_directory

# Jobs of which the ledger has not heard


def test_a_silent_job_without_events_is_given_up_at_a_known_destination(world: Swept) -> None:
    directory = job_directory()
    world.attempt(directory, "t0")
    world.later(LIMITS.abandoned + HOUR)
    announced(world, job_directory(OTHER_JOB))
    world.later(LIMITS.stuck + 1)
    assert world.sweep().aborted == 1
    world.run(directory)
    assert world.result(directory).outcome is Outcome.ABORTED


def test_i5_a_copied_directory_is_no_job_and_is_left_alone(world: Swept) -> None:
    """`aws s3 sync` brings it along; nothing in it is a job's of here."""
    directory, copy = job_directory(), job_directory(prefix="copy/")
    unended, its_copy = job_directory(NEIGHBOUR), job_directory(NEIGHBOUR, "copy/")
    ended(world, directory)
    world.open(unended)
    for original, at in ((directory, copy), (unended, its_copy)):
        for key in world.all_keys(original.prefix):
            body = world.store.get(BUCKET, key, max_bytes=10_000).body
            world.store.put(BUCKET, f"copy/{key.removeprefix('sales/')}", body)
        assert world.all_keys(at.prefix)
    kept = world.all_keys("copy/")
    world.later(LIMITS.retention - HOUR)
    ended(world, job_directory(OTHER_JOB, "copy/"))  # leads the sweep there
    world.later(2 * HOUR)
    world.sweep()
    assert set(kept) <= set(world.all_keys("copy/"))


# What ended jobs have left


def test_i4_working_objects_of_an_ended_job_are_removed(world: Swept) -> None:
    directory = job_directory()
    ended(world, directory)
    world.attempt(directory, "t9", "zombie")  # its event is lost
    assert world.sweep().started == 0  # it may be on its way
    world.later(LIMITS.stuck + 1)
    assert world.sweep_and_settle().started == 1
    assert world.all_keys(directory.prefix) == [directory.job, directory.request, directory.result]
    assert world.open_uploads() == []
    world.later(HOUR)
    assert world.sweep().started == 0


def test_i5_uploads_that_are_not_provably_ours_stay(world: Swept) -> None:
    keys = [f"sales/before-{JOB}.parquet"]  # older than the job
    world.store.create_upload(BUCKET, keys[0], metadata={}, content_type="")
    world.later(S3_CLOCKS + 1)
    ended(world, job_directory())
    announced(world, job_directory(OTHER_JOB))
    keys += [
        "sales/theirs.parquet",
        f"sales/part-00000-{JOB}-c000.snappy.parquet",  # a write of Spark's own
        f"sales/part-00000-{NEIGHBOUR}.parquet",  # of a job that is not known
        f"salesman/part-00000-{JOB}.parquet",  # not below the job's destination
    ]
    for key in keys[1:]:
        world.store.create_upload(BUCKET, key, metadata={}, content_type="")
    world.later(HOUR)
    world.sweep_and_settle()
    assert world.open_uploads() == sorted([*keys, f"sales/part-t0-{OTHER_JOB}.parquet"])


def test_i4_two_days_after_a_job_its_leftovers_are_the_lifecycle_rules(world: Swept) -> None:
    ended(world, job_directory())
    world.later(3 * DAY)
    world.upload(job_directory(), f"zombie-{JOB}.parquet", b"1", task="t9", attempt="a0")
    world.later(HOUR)
    assert world.sweep().visited == 0


# A bounded look


def test_i12_each_sweep_lists_another_part(world: Swept, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (destinations, verdicts):
        monkeypatch.setattr(module, "LISTED", 30)
    for number in range(40):
        ended(world, job_directory(f"{number * 6:02x}6f6f0e-0000-4000-8000-000000000001"))
    directory = job_directory("776f6f0e-0000-4000-8000-000000000009")
    world.request(directory, world.attempt(directory, "t0"))
    world.comes_to_its_turn(60)


# Retirement


def test_what_an_ended_job_has_left_goes_before_its_documents(world: Swept) -> None:
    directory = job_directory()
    ended(world, directory)
    world.attempt(directory, "t9", "zombie")
    world.later(LIMITS.retention + HOUR)
    report = world.sweep_and_settle()
    assert (report.started, report.expired) == (1, 0)
    assert world.open_uploads() == []
    assert world.sweep().expired == 1
    assert world.all_keys(directory.prefix) == []


@pytest.mark.parametrize("known", [True, False], ids=["known", "forgotten"])
@pytest.mark.parametrize("document", ["job", "request", "result"])
def test_i5_what_is_put_over_a_document_right_before_its_delete_stays(
    world: Swept, document: str, known: bool
) -> None:
    """It is not what the sweep has judged."""
    directory = job_directory()
    ended(world, directory)
    if not known:
        world.ledger.expire(directory.ref)
    world.later(LIMITS.retention)
    ended(world, job_directory(OTHER_JOB))  # leads the sweep there
    world.later(HOUR)
    key = getattr(directory, document)
    world.plan.run_before(
        "delete", partial(world.store.put, BUCKET, key, b"new"), where=lambda call: call.key == key
    )
    world.sweep()
    assert world.all_keys(directory.prefix) == [key]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("sales/a/", ""), ("sales/tenant-a/x/", "tenant-b/"), ("sales/y/", "z/dt=1/")],
)
def test_i4_i12_whoever_has_many_open_uploads_hides_no_others_for_long(
    world: Swept, monkeypatch: pytest.MonkeyPatch, theirs: str, ours: str
) -> None:
    """A bounded listing begins elsewhere in each sweep."""
    for module in (destinations, verdicts):
        monkeypatch.setattr(module, "LISTED", 20)
    for number in range(1_200):
        key = f"{theirs}{number * 4:04x}/part-{NEIGHBOUR}.parquet"
        world.store.create_upload(BUCKET, key, metadata={}, content_type="")
    directory = job_directory()
    ended(world, directory)
    world.upload(directory, f"{ours}part-late-{JOB}.parquet", b"1", task="t9", attempt="a0")
    world.comes_to_its_turn(40)
    assert all(upload.startswith(theirs) for upload in world.open_uploads())


# Silent jobs in OPEN: whose request was not heard, which are given up, and which live


def opened(world: Swept, **spec: object) -> None:
    """A job of which the ledger knows by the event of its ``_job.json`` alone."""
    world.open(job_directory(), **spec)
    note_job(world.ports, BUCKET, job_directory().job)


def test_i4_an_abandoned_job_is_aborted_by_the_request_a_driver_would_write(world: Swept) -> None:
    """The ledger knows it from its _job.json on: no manifest has ever been put."""
    directory = job_directory()
    opened(world)
    world.upload(directory, f"killed-{JOB}.parquet", b"x", task="t1", attempt="a0")
    world.later(LIMITS.abandoned + 1)
    report = world.sweep()
    assert (report.aborted, report.started) == (1, 0)
    stored = world.store.get(BUCKET, directory.request, max_bytes=1000)
    request = decode_request(stored.body, directory)
    assert isinstance(request, AbortRequest)
    assert request.abandoned
    world.later(LIMITS.stuck + 1)
    world.sweep_and_settle()  # its event was lost
    assert world.ended(directory) == (Outcome.ABORTED, "ABANDONED")
    message = world.failure(directory).message
    assert "no task has ended since 2026-11-21T22:00:00.0" in message
    assert "for 24 hours" in message
    assert "raise abandonedHours" in message
    assert world.open_uploads() == []


def test_i5_a_job_with_a_request_is_not_given_up_while_it_waits_for_days(world: Swept) -> None:
    sealed(world, job_directory())
    world.executions.running.add("execution-1")
    for _ in range(5):
        world.later(DAY)
        report = world.sweep()
        assert (report.aborted, report.started) == (0, 0)
    world.run(job_directory(), "execution-2")
    assert world.result(job_directory()).outcome is Outcome.COMMITTED


def test_i5_a_directory_that_is_not_listed_to_its_end_may_have_a_sign_of_life(
    world: Swept, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (destinations, verdicts):
        monkeypatch.setattr(module, "LISTED", 5)
    announced(world, job_directory())
    for number in range(5):
        world.attempt(job_directory(), f"t1{number}")
    world.later(LIMITS.abandoned + HOUR)
    world.attempt(job_directory(), "t99")
    assert world.sweep().aborted == 0


def test_a_job_whose_directory_was_deleted_is_given_up(world: Swept) -> None:
    directory = job_directory()
    announced(world, directory, conflict=Conflict.REPLACE)
    heard = world.record(directory).updated_at
    world.delete_documents(directory)
    world.later(LIMITS.abandoned + HOUR)
    assert world.sweep().aborted == 1
    assert f"no task has ended since {heard}, for 25 hours" in abandoned_at(world, directory)
    world.run(directory)
    assert world.result(directory).outcome is Outcome.ABORTED
    assert world.open_uploads() == []


# The event of a _job.json


def test_the_ledger_knows_a_job_from_its_first_moment(world: Swept) -> None:
    opened(world, conflict=Conflict.REPLACE)
    record = world.record(job_directory())
    assert (record.state, record.conflict) == ("OPEN", Conflict.REPLACE)
    note_job(world.ports, BUCKET, job_directory().job)  # again
    assert world.record(job_directory()) == record


@pytest.mark.parametrize("key", ["sales/_job.json", f"sales/__magic_job-{JOB}/_tasks/_job.json"])
def test_another_programs_job_json_is_no_job(world: Swept, key: str) -> None:
    world.store.put(BUCKET, key, b"{}")
    try:
        note_job(world.ports, BUCKET, key)
    except Exception as error:
        assert getattr(error, "code", "") == "BAD_KEY"
    assert world.ledger.records == []


def test_a_job_json_that_is_gone_makes_no_record(world: Swept) -> None:
    world.open(job_directory())
    world.store.delete(BUCKET, job_directory().job)
    note_job(world.ports, BUCKET, job_directory().job)
    assert world.ledger.records == []


@pytest.mark.parametrize("alive", [False, True])
def test_i11_a_silent_job_whose_key_another_has_is_ended(world: Swept, alive: bool) -> None:
    """It can end in no other way; one whose tasks still end is left for now."""
    mine, other = job_directory(), job_directory(OTHER_JOB)
    world.open(mine, idempotency_key="k")
    world.attempt(mine, "t0")
    note_job(world.ports, BUCKET, mine.job)
    world.later(LIMITS.stuck + 1)
    assert world.sweep().aborted == 0
    world.commit(other, idempotency_key="k")
    if alive:
        world.attempt(mine, "t1")
    report = world.sweep_and_settle()
    assert report.aborted == (not alive)
    if alive:
        world.later(LIMITS.stuck + 1)
        report = world.sweep()
    assert f"its idempotencyKey was committed by job {OTHER_JOB}" in report.notes[0]
    world.run(mine)
    assert world.failure(mine).code == "ALREADY_COMMITTED"
    assert world.open_uploads() == []
