"""How a client ends its job: its request, or an abort."""

import pickle

import pytest

from s3commit.core.documents.request_json import AbortRequest, CommitRequest, encode_request
from s3commit.core.formats.layout import parse_destination
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobFailedError,
    JobRefusedError,
    OutcomeUnknownError,
    PreconditionError,
    TransientError,
)
from s3commit.core.model.outcome import Failure, Outcome
from s3commit.writer.commit_result import CommitResult
from s3commit.writer.connect import check_pipeline
from s3commit.writer.job import Job, committed
from s3commit.writer.transfer import UploadSettings
from tests.fakes.faults import FaultPlan
from tests.fakes.store import MemoryObjectStore
from tests.writer.ending import attempt, commit_of, end, standing, unknown
from tests.writer.support import (
    BUCKET,
    DESTINATION,
    JOB,
    FakeS3,
    ScriptedEnvironment,
    notifying,
    open_on,
    result_of,
)


def test_cost_a_job_is_job_json_request_json_and_the_looks(
    store: MemoryObjectStore, plan: FaultPlan, environment: ScriptedEnvironment
) -> None:
    s3 = FakeS3(notifying("/_request.json"))
    check_pipeline(s3, parse_destination(DESTINATION))  # type: ignore[arg-type]
    job = open_on(plan.wrap(store), environment=environment)

    def pipeline(nth: int) -> None:
        if nth == 3:
            end(store, job, Outcome.COMMITTED)

    environment.on_sleep = pipeline
    result = job.commit([attempt(str(number)) for number in range(1000)])
    assert result == committed(job.directory, result_of(job))
    assert s3.asked == [BUCKET]
    assert plan.counts() == {"get": 4, "put": 2}


def test_i3_the_request_names_the_counted_attempts(job: Job, store: MemoryObjectStore) -> None:
    end(store, job, Outcome.COMMITTED)
    job.commit([attempt("1"), None, attempt("0")])
    assert standing(store, job) == commit_of(store, job, attempt("0"), attempt("1"))


def test_i3_two_attempts_of_one_task_are_refused(job: Job, plan: FaultPlan) -> None:
    with pytest.raises(InvalidInputError, match="two attempts of one task") as caught:
        job.commit([attempt("0", "a"), attempt("0", "b")])
    assert caught.value.code == "TWO_ATTEMPTS"
    assert plan.count() == 0


@pytest.mark.parametrize("outcome", [Outcome.ABORTED, Outcome.ROLLED_BACK])
def test_a_job_that_failed_raises_the_pipelines_code_and_message(
    job: Job, store: MemoryObjectStore, outcome: Outcome
) -> None:
    end(store, job, outcome, Failure("MANIFEST_CHANGED", "_tasks/0/_a.pendingset was changed"))
    with pytest.raises(JobFailedError, match=f"{outcome}; none of .*: _tasks/0/_a.pend") as caught:
        job.commit([attempt()])
    assert caught.value.code == "MANIFEST_CHANGED"


def test_a_commit_after_an_abort_says_which_word_stands(job: Job, store: MemoryObjectStore) -> None:
    job.abort("no sign of life")
    with pytest.raises(JobRefusedError, match=r"abort was requested first \(no sign") as caught:
        job.commit([attempt()])
    assert caught.value.code == "ABORT_REQUESTED"
    assert standing(store, job) == AbortRequest(JOB, "no sign of life")


def test_what_the_sweep_gave_up_is_told_by_its_result(
    job: Job, store: MemoryObjectStore, plan: FaultPlan
) -> None:
    """It may say that another job has committed the data, which is no failure."""
    body = encode_request(AbortRequest(JOB, "abandoned", abandoned=True))
    store.put(BUCKET, job.directory.request, body)
    end(store, job, Outcome.ABORTED, Failure("ALREADY_COMMITTED", "by another"))
    unknown = CommitResult(job.directory.destination.uri, already_committed=True)
    assert job.commit([attempt()]) == unknown, "no list or hint says which job it was"
    plan.fail("get", TransientError("timed out"), where=lambda call: "/_once/" in call.key)
    assert job.commit([attempt()]) == unknown, "nor is the outcome lost to a read that fails"
    end(store, job, Outcome.ABORTED, Failure("ABANDONED", "no task has ended"))
    with pytest.raises(JobFailedError, match="no task has ended") as caught:
        job.commit([attempt()])
    assert caught.value.code == "ABANDONED"


@pytest.mark.parametrize(
    ("stands", "told"),
    [
        (encode_request(CommitRequest(JOB, (attempt("0", "b"),))), "another commit was"),
        (encode_request(CommitRequest(JOB, ())), "another commit was"),
        (b"{", "_request.json cannot be read"),
    ],
)
def test_i3_another_request_that_stands_is_not_waited_for(
    job: Job, store: MemoryObjectStore, stands: bytes, told: str
) -> None:
    store.put(BUCKET, job.directory.request, stands)
    end(store, job, Outcome.COMMITTED)
    with pytest.raises(PreconditionError, match=told) as caught:
        job.commit([attempt("0", "a")])
    assert caught.value.code == "OTHER_REQUEST"


@pytest.mark.parametrize("times", [1, 3])
def test_i2_a_lost_answer_to_the_request_finds_its_own_words(
    job: Job, store: MemoryObjectStore, plan: FaultPlan, times: int
) -> None:
    plan.lose_response("put", times=times)
    end(store, job, Outcome.COMMITTED)
    assert job.commit([attempt()]).job_id == JOB
    assert plan.count("put") <= times + 1


def test_a_refused_request_is_raised_unless_one_may_have_arrived(job: Job, plan: FaultPlan) -> None:
    plan.fail("put", AccessError("denied"), nth=1)
    with pytest.raises(AccessError, match="denied"):
        job.commit([attempt()])
    plan.fail("put", TransientError("timed out")).fail("put", AccessError("denied"), nth=2)
    with pytest.raises(OutcomeUnknownError, match="denied"):
        job.commit([attempt()])


# --- abort


def test_abort_is_the_jobs_word_if_it_is_the_first(job: Job, store: MemoryObjectStore) -> None:
    answer = job.abort("task 3 failed")
    assert answer.accepted
    assert standing(store, job) == AbortRequest(JOB, "task 3 failed")
    assert job.abort("again").accepted
    assert standing(store, job) == AbortRequest(JOB, "task 3 failed")


def test_i2_abort_after_a_commit_changes_nothing(job: Job, store: MemoryObjectStore) -> None:
    unknown(job, 0.1)
    answer = job.abort("the driver gave up")
    assert not answer.accepted
    assert "commit was requested first" in answer.message
    assert standing(store, job) == commit_of(store, job, attempt())
    end(store, job, Outcome.ABORTED)
    answer = job.abort("Spark gave the write up")
    assert not answer.accepted
    assert answer.message == f"job {JOB} ended ABORTED; none of its files are visible"


def test_a_block_that_fails_aborts_and_keeps_its_error(job: Job, store: MemoryObjectStore) -> None:
    with pytest.raises(KeyError), job:
        raise KeyError("x")
    assert standing(store, job) == AbortRequest(JOB, "KeyError: 'x'")


def test_a_block_that_ends_without_commit_aborts_the_job_and_says_so(
    job: Job, store: MemoryObjectStore, capsys: pytest.CaptureFixture[str]
) -> None:
    with job:
        pass
    assert isinstance(standing(store, job), AbortRequest)
    said = capsys.readouterr().err
    assert said.startswith(f"s3commit: job {JOB} at {DESTINATION} ended without commit()")
    assert said.count("\n") == 1


@pytest.mark.parametrize("commits", [True, False])
def test_a_block_that_has_ended_its_job_says_nothing_more(
    job: Job,
    store: MemoryObjectStore,
    plan: FaultPlan,
    capsys: pytest.CaptureFixture[str],
    *,
    commits: bool,
) -> None:
    with job:
        if commits:
            end(store, job, Outcome.COMMITTED)
            job.commit([])
        else:
            job.abort("not today")
    assert plan.count("put") == 1
    assert capsys.readouterr().err == ""


def test_a_failed_abort_does_not_hide_the_error_of_the_block(job: Job, plan: FaultPlan) -> None:
    plan.fail("put", TransientError("unreachable"))
    with pytest.raises(KeyError) as caught, job:
        raise KeyError("x")
    assert caught.value.__notes__ == ["the abort failed too: unreachable"]


# --- travel


def test_a_job_travels_with_its_settings(store: MemoryObjectStore) -> None:
    """And without its store and key: tests/writer/test_processes.py works in other processes."""
    settings = UploadSettings(threads=2)
    job = open_on(store, uploads=settings, job_id=JOB, idempotency_key="of-the-next-run")
    travelling = pickle.dumps(job)
    assert b"of-the-next-run" not in travelling
    copy = pickle.loads(travelling)
    assert (copy._spec, copy._options.uploads) == (job._spec, settings)
