"""The sweep at destinations: requests without a record, leftovers of ended jobs, retirement."""

from functools import partial

import pytest

from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.outcome import Outcome
from s3commit.core.sweep import destinations, verdicts
from s3commit.core.sweep.sweep import DAY, HOUR
from tests.core.swept import LIMITS, Swept, announced, ended
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
    assert world.sweep().looked == 0


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
    assert (report.started, report.retired) == (1, 0)
    assert world.open_uploads() == []
    assert world.sweep().retired == 1
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
