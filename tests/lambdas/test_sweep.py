"""The sweep's function: one call, with the limits that the schedule sends, and a report."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from s3commit.aws.notifications import SUFFIXES
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import NeedsOperatorError, TransientError
from s3commit.core.sweep.sweep import DAY, HOUR
from tests.core.world import OTHER_JOB, World, job_directory
from tests.fakes.executions import MemoryExecutions
from tests.lake import QUEUE
from tests.lambdas.conftest import Context, Module, there
from tests.writer.support import FakeS3, notifying

LIMITS = {"stuckMinutes": 15, "abandonedHours": 24, "retentionDays": 30}
Sweep = Callable[..., dict[str, Any]]


@pytest.fixture
def notified() -> FakeS3:
    return FakeS3(notifying(*SUFFIXES, name="Suffix", queue=QUEUE))


@pytest.fixture
def sweep(module: Module, notified: FakeS3, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """Call the function as the schedule does."""

    def call(**limits: int) -> dict[str, Any]:
        loaded = module("sweep")
        monkeypatch.setattr(loaded, "machine", MemoryExecutions())
        monkeypatch.setattr(loaded, "client", notified)
        monkeypatch.setattr(loaded, "connect", there)
        answer: dict[str, Any] = json.loads(json.dumps(loaded.handler(LIMITS | limits, Context())))
        return answer

    return call


@pytest.fixture
def abandoned(world: World) -> JobDirectory:
    """A job that nobody asked for in two days."""
    directory = job_directory()
    world.announce(directory, world.attempt(directory, "t0"))
    world.clock.advance(2 * DAY)
    return directory


@pytest.mark.usefixtures("abandoned")
def test_a_sweep_reports_what_it_did_as_answer_log_and_metrics(
    sweep: Sweep, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert sweep(abandonedHours=72)["aborted"] == 0
    report = sweep()
    assert (report["aborted"], report["failed"], report["incomplete"]) == (1, 0, False)
    said = [record for record in caplog.records if record.getMessage() == "swept"]
    assert [vars(one)["aborted"] for one in said] == [0, 1]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    metrics = {name for line in lines for name in line if name.startswith("Jobs")}
    assert metrics == {"JobsAbandoned"}


def test_a_sweep_without_index_fails(world: World, abandoned: JobDirectory, sweep: Sweep) -> None:
    world.plan.fail("jobs_in", TransientError("throttled"))
    with pytest.raises(TransientError, match="could not read"):
        sweep()
    assert world.store.head("lake", abandoned.request) is not None


def test_a_sweep_fails_after_its_work_if_the_bucket_announces_nothing_to_us(
    world: World, abandoned: JobDirectory, sweep: Sweep, notified: FakeS3
) -> None:
    notified.answer = notifying(*SUFFIXES[1:], queue=QUEUE)
    with pytest.raises(NeedsOperatorError, match=rf"\[NOT_NOTIFIED\].* end in {SUFFIXES[0]}:"):
        sweep()
    assert world.store.head("lake", abandoned.request) is not None


def test_a_sweep_fails_after_its_work_if_a_record_is_unread(world: World, sweep: Sweep) -> None:
    unread, directory = job_directory(OTHER_JOB, "other/").decision, job_directory()
    world.store.put("lake", unread, b"")
    world.heal()
    world.announce(directory, world.attempt(directory, "t0"))
    world.clock.advance(2 * DAY)
    with pytest.raises(NeedsOperatorError, match=rf"\[PAGE_CHANGED\].*{unread}"):
        sweep()
    assert world.store.head("lake", directory.request) is not None


def test_jobs_that_are_resumed_are_counted_apart_from_those_that_are_tidied_up(
    world: World, sweep: Sweep, capsys: pytest.CaptureFixture[str]
) -> None:
    world.commit(job_directory())
    world.attempt(job_directory(), "late")  # its event is lost
    lost = job_directory(OTHER_JOB)
    world.request(lost, world.attempt(lost, "t0"))
    world.clock.advance(HOUR)
    report = sweep()
    assert (report["started"], report["tidied"]) == (2, 1)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["JobsResumed"] for line in lines if "JobsResumed" in line] == [[1.0]]
