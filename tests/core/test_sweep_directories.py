"""The sweep over job directories: what ended jobs and S3A have left there."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from s3commit.core.commit import ingest_pendingsets
from s3commit.core.model.locks import Claimed, claimed
from s3commit.core.sweep import directories
from s3commit.core.sweep.steps import STEPS
from s3commit.core.sweep.sweep import DAY, HOUR, Sweep
from tests.core.swept import LIMITS, Swept, announced, ended
from tests.core.world import BUCKET, JOB, OTHER_JOB, job_directory


@pytest.fixture
def world() -> Swept:
    return Swept()


def test_working_objects_of_an_ended_job_are_tidied_up(world: Swept) -> None:
    directory = job_directory()
    ended(world, directory)
    world.attempt(directory, "t9", "zombie")  # its event is lost
    assert world.sweep().tidied == 0  # it may be on its way
    world.later(LIMITS.stuck + 1)
    report = world.sweep()
    assert (report.tidied, report.objects) == (1, 1)
    assert world.all_keys(directory.prefix) == [directory.job, directory.request, directory.result]
    assert world.open_uploads() == []


def test_documents_go_when_the_retention_is_over_and_commits_stay(world: Swept) -> None:
    directory = job_directory()
    ended(world, directory)
    (claim,) = claimed(world.record(directory))
    world.ledger.put_claim(Claimed(claim, directory.ref))  # by a late waker that died
    world.later(LIMITS.retention - HOUR)
    assert world.sweep().retired == 0
    world.later(2 * HOUR)
    assert world.sweep().retired == 1
    assert world.all_keys(directory.prefix) == world.all_keys(directory.pipeline_prefix) == []
    assert world.ledger._claims == {}
    assert world.store.head(BUCKET, directory.commits) is not None
    assert set(world.visible()) == {f"sales/part-t0-{JOB}.parquet"}
    assert world.sweep().retired == 0


@pytest.mark.parametrize("known", [True, False], ids=["known", "forgotten"])
@pytest.mark.parametrize("document", ["job", "request", "result"])
def test_i5_what_is_put_over_a_document_right_before_its_delete_stays(
    world: Swept, document: str, known: bool
) -> None:
    """It is not what the sweep has judged."""
    directory = job_directory()
    ended(world, directory)
    ended(world, job_directory(OTHER_JOB))  # leads the sweep there
    if not known:
        del world.ledger._jobs[directory.ref]
    world.later(LIMITS.retention + HOUR)
    key = getattr(directory, document)
    world.plan.run_before(
        "delete", partial(world.store.put, BUCKET, key, b"new"), where=lambda call: call.key == key
    )
    world.sweep()
    assert world.all_keys(directory.prefix) == [key]


def test_a_copied_directory_is_no_job_and_is_left_alone(world: Swept) -> None:
    announced(world, job_directory())
    copy = job_directory(prefix="copy/")
    announced(world, job_directory(OTHER_JOB, "copy/"))
    body = world.store.get(BUCKET, job_directory().job, max_bytes=10_000).body
    world.store.put(BUCKET, copy.job, body)
    world.later(LIMITS.abandoned - HOUR)
    world.limits = replace(LIMITS, abandoned=HOUR)
    world.attempt(job_directory(), "t2")
    world.attempt(job_directory(OTHER_JOB, "copy/"), "t2")
    assert world.sweep().asked == 0
    assert world.all_keys(copy.prefix) == [copy.job]


def test_a_ledger_full_of_ended_jobs_is_not_read_in_each_call(world: Swept) -> None:
    """Those that ended long ago, and are not due, are not asked for."""
    ended(world, job_directory())
    world.later(10 * DAY)
    plan = world.plan
    plan.forget_calls()
    sweep = Sweep(BUCKET, world.ports, world.executions)
    assert STEPS["TidyJobDirectories"](sweep, "") == ""
    assert set(plan.counts()) == {"jobs_in"}


def test_i5_a_copied_directory_is_not_retired_either(world: Swept) -> None:
    """`aws s3 sync` brought it along with its result; nothing in it is a job's of here."""
    directory, copy = job_directory(), job_directory(prefix="copy/")
    ended(world, directory)
    ended(world, job_directory(OTHER_JOB, "copy/"))
    for name in ("job", "request", "result"):
        body = world.store.get(BUCKET, getattr(directory, name), max_bytes=10_000).body
        world.store.put(BUCKET, getattr(copy, name), body)
    world.store.put(BUCKET, copy.manifest("t0", "a0"), b"{}")
    world.later(LIMITS.retention + HOUR)
    kept = world.all_keys(copy.prefix)
    assert len(kept) == 4
    assert world.sweep().retired == 2
    assert world.all_keys(copy.prefix) == kept


# S3A's


def test_i4_a_late_manifest_of_many_files_is_left_to_the_sweep(
    world: Swept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_pendingsets, "MOST_ABORTED", 2)
    directory = job_directory()
    world.open(directory)
    world.request_abort(directory)
    world.run(directory)
    mark = f"-{JOB}"
    late = world.attempt(
        directory, "t0", files={f"{number}{mark}.csv": b"late" for number in range(3)}
    )
    assert world.announce(directory, late) == 0
    assert len(world.open_uploads()) == 3
    world.later(LIMITS.stuck + 1)
    world.sweep()
    assert world.open_uploads() == []
    assert not world.all_keys(directory.tasks)


def test_manifests_that_name_many_uploads_are_for_an_execution(
    world: Swept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "TIDIED_BYTES", 100)
    directory = job_directory()
    ended(world, directory)
    world.attempt(directory, "t9", "zombie")
    world.later(LIMITS.stuck + 1)
    assert world.sweep().started == 1
    world.settle()
    assert world.open_uploads() == []
    assert not world.all_keys(directory.tasks)
