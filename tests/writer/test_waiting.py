"""How a client waits for the end of its job, and what it is told if it waits in vain."""

import io
import itertools
from collections import Counter

import pytest

from s3commit.core.documents.result_json import RESULT_JSON
from s3commit.core.formats.layout import META_REQUESTED
from s3commit.core.model.errors import (
    AccessError,
    OutcomeUnknownError,
    S3CommitError,
    TransientError,
)
from s3commit.core.model.outcome import Outcome
from s3commit.writer.job import Job
from tests.fakes.clock import ManualClock
from tests.fakes.faults import FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.writer.ending import attempt, commit_of, end, standing, unknown
from tests.writer.support import BUCKET, ScriptedEnvironment, fake_id, result_of


@pytest.fixture
def store() -> MemoryObjectStore:
    """Each put is a second later than the one before."""
    return MemoryObjectStore(BUCKET, clock=ManualClock(step=1))


def test_an_outcome_is_seen_soon_by_the_wait(job: Job, environment: ScriptedEnvironment) -> None:
    unknown(job, 600)
    # A pause after each wait so far, whenever the answer comes.
    waits = list(itertools.accumulate(environment.slept, initial=0))
    assert waits[-1] == pytest.approx(600)
    late = zip(environment.slept, waits, strict=False)
    assert all(pause <= max(0.05, before / 20) + 1e-9 for pause, before in late)
    # The most in a minute is in the first: 20 in its first second, then one for each 5 %.
    minutes = Counter(int(before // 60) for before in waits)
    assert minutes[0] <= 105
    assert max(count for minute, count in minutes.items() if minute) <= 21
    message = unknown(job, 60)
    assert "no result after 60 s; it may still commit" in message
    assert f"`s3commit show {job.directory.uri}`" in message
    assert "Step Functions console" in message
    assert "\n" not in message


def test_who_waits_for_long_is_told_once(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    for seconds, count in ((59, 0), (300, 1)):
        unknown(job, seconds)
        told = capsys.readouterr().err
        assert told.count("\n") == count
    assert "has no result after 60 s, still waiting" in told
    assert job.directory.uri in told


def test_a_program_without_a_standard_error_waits_as_any_other(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (closed, None):
        monkeypatch.setattr("sys.stderr", stream)
        assert "no result after 300 s" in unknown(job, 300)


def test_the_request_is_put_again_as_it_stands_while_no_result_comes(
    job: Job, plan: FaultPlan, store: MemoryObjectStore
) -> None:
    """Each put is a new event; at intervals that double, so a sweep sees the job as silent.

    It keeps its place among the jobs: each says when S3 got the first one.
    """
    begun = ""
    for seconds, count in ((299, 1), (301, 2), (599, 2), (1300, 4)):
        plan.forget_calls()
        unknown(job, seconds)
        puts = [call for call in plan.calls if call.verb == "put"]
        assert len(puts) == count
        assert all(call.arguments.get("if_match") for call in puts[1:])
        assert len({bytes(call.arguments["body"]) for call in puts}) == 1
        stands = store.head(BUCKET, job.directory.request)
        assert stands is not None
        begun = begun or stands.modified
        first = {call.arguments["metadata"][META_REQUESTED] for call in puts[1:]}
        assert first == ({begun} if count > 1 else set())
    assert standing(store, job) == commit_of(store, job, attempt())


def test_a_request_that_another_one_has_replaced_is_not_put_over_it(
    job: Job, plan: FaultPlan, store: MemoryObjectStore
) -> None:
    request = job.directory.request

    def replaced() -> None:
        store.put(BUCKET, request, b"another's")

    plan.run_after("get", replaced, where=lambda call: call.key == request)
    unknown(job, 301)
    assert store.get(BUCKET, request, max_bytes=100).body == b"another's"


def test_a_result_that_came_while_the_process_stood_still_is_seen(
    job: Job,
    store: MemoryObjectStore,
    environment: ScriptedEnvironment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moments = iter((0.0, 3600.0))  # stopped between the first look and the clock

    def monotonic() -> float:
        now = next(moments)
        if now:
            end(store, job, Outcome.COMMITTED)
        return now

    monkeypatch.setattr(environment, "monotonic", monotonic)
    job.commit_timeout = 60
    assert job.commit([attempt()]).job_id == job.job_id


def test_commit_may_be_called_again_and_goes_on_waiting(job: Job, store: MemoryObjectStore) -> None:
    unknown(job, 1, attempt("0"), attempt("1"))
    end(store, job, Outcome.COMMITTED)
    assert job.commit([attempt("1"), attempt("0")]).job_id == job.job_id


def test_a_request_that_never_gets_through_has_no_known_outcome(job: Job, plan: FaultPlan) -> None:
    plan.fail("put", TransientError("unreachable"), times=None)
    assert "unreachable" in unknown(job, 3)


@pytest.mark.parametrize("error", [TransientError("slow down"), AccessError("no such key, or not")])
def test_a_look_that_fails_is_no_outcome(
    job: Job, store: MemoryObjectStore, plan: FaultPlan, error: S3CommitError
) -> None:
    plan.fail("get", error, times=3)
    end(store, job, Outcome.COMMITTED)
    assert job.commit([attempt()]).job_id == job.job_id


@pytest.mark.parametrize(
    ("job_id", "told"), [(None, r"\$ must be an object"), (fake_id(99), "another job")]
)
def test_i2_a_result_that_can_not_be_read_or_is_of_another_job_is_no_outcome(
    job: Job, store: MemoryObjectStore, job_id: str | None, told: str
) -> None:
    """Somebody has put it, or copied it here: whether this job is committed it does not say."""
    body = b"[]" if job_id is None else RESULT_JSON.encode(result_of(job, job_id=job_id))
    store.put(BUCKET, job.directory.result, body)
    with pytest.raises(OutcomeUnknownError, match=told):
        job.commit([attempt()])
