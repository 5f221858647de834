"""``s3commit commit`` and ``abort`` where an execution died: another one goes on with the job."""

import pytest

from s3commit.aws import env
from s3commit.core.model.destination import Conflict
from s3commit.core.model.limits import HOLDER_SECONDS
from s3commit.core.model.outcome import Outcome
from s3commit.core.model.states import JobState
from tests.cli.support import JOB, MACHINE, OTHER, REF, SALES, TABLE, Desk, arn_of
from tests.core.world import BUCKET, job_directory
from tests.fakes.execution import run_execution


def the_started(desk: Desk) -> str:
    """The one execution that was started; it is run to its end."""
    (arn,) = desk.executions.started
    desk.world.run(job_directory(arn.rsplit(":", 1)[-1][:36]), arn)
    return arn


@pytest.mark.parametrize("step", ["SealJob", "AcquireDestination", "DecideCommit", "BeginPublish"])
@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
def test_i6_a_command_frees_what_a_dead_execution_held(desk: Desk, step: str, status: str) -> None:
    holder = desk.job_at(step, conflict=Conflict.FAIL)
    desk.dies(JOB, status)
    would = desk.run("commit", JOB, "--table", TABLE, "--dry-run")
    assert desk.executions.started == []
    told = desk.run("commit", JOB, "--table", TABLE)
    arn = the_started(desk)
    does = f"an execution of job {JOB}, which continues its commit (the last one is {status})"
    assert (would.stdout, told.stdout) == (f"would start {does}\n", f"started {does}: {arn}\n")
    assert told.stderr == f"follow it: s3commit show --follow {JOB} --table {TABLE}\n"
    assert arn.startswith(arn_of(JOB, f"{REF}-6b021"))  # the seconds since 1970, in hex
    assert desk.world.result(holder).outcome is Outcome.COMMITTED
    assert desk.world.ledger.holders == set()
    desk.committed_job(OTHER, conflict=Conflict.REPLACE)
    assert desk.world.result(job_directory(OTHER)).outcome is Outcome.COMMITTED


@pytest.mark.parametrize(
    ("step", "conflict", "told"),
    [
        ("AcquireDestination", Conflict.REPLACE, True),
        ("AcquireDestination", Conflict.FAIL, False),
        ("DecideCommit", Conflict.REPLACE, False),
    ],
)
def test_a_late_overwrite_is_told(desk: Desk, step: str, conflict: Conflict, told: bool) -> None:
    desk.job_at(step, conflict=conflict)
    desk.dies(JOB)
    note = desk.run("commit", JOB, "--table", TABLE, "--dry-run").stderr
    says = f"since its request; see: s3commit log {SALES}; to abort it: s3commit abort {JOB}"
    assert (says in note) == told


def test_a_job_whose_execution_runs_is_left_to_it(desk: Desk) -> None:
    desk.job_at("VerifyManifests")
    line = desk.fails("commit", JOB, "--table", TABLE, exit_code=3)
    assert "its commit was already requested, and its execution, which is RUNNING, decides" in line
    assert "nothing was changed" in line
    assert desk.executions.started == []


def test_a_job_that_was_given_up_for_another_is_ended(desk: Desk) -> None:
    """I4: who took its locks away has not aborted its uploads, and nobody else would."""
    directory = desk.job_at("AcquireDestination", conflict=Conflict.REPLACE)
    desk.dies(JOB)
    desk.world.clock.advance(HOLDER_SECONDS + 1)
    desk.committed_job(OTHER, conflict=Conflict.FAIL)
    assert desk.world.record(directory).state is JobState.ABORTING
    assert len(desk.world.open_uploads()) == 2
    shown = desk.shown()
    assert shown["error"]["code"] == "STALLED"
    ends_it = f"s3commit commit {JOB} --table {TABLE} ends it"
    assert shown["next"] == [f"no execution works on it: {ends_it}"]
    (listed,) = desk.listed()
    assert (listed["jobId"], listed["attention"]) == (JOB, True)
    line = desk.fails("commit", JOB, "--table", TABLE, exit_code=3)
    assert "with --state-machine or S3COMMIT_STATE_MACHINE, or the deployment with --name" in line
    desk.run("commit", JOB, "--table", TABLE, "--state-machine", MACHINE)
    the_started(desk)
    assert desk.world.failure(directory).code == "STALLED"
    assert desk.world.open_uploads() == []


def test_a_request_nobody_took_up_is_taken_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's state machine is beside the environment's table, and no other."""
    directory = desk.requested_job()
    monkeypatch.setenv(env.STATE_MACHINE, MACHINE)
    line = desk.fails("commit", JOB, "--table", TABLE, exit_code=3)
    assert "name the state machine with --state-machine" in line
    monkeypatch.setenv(env.TABLE, TABLE)
    document = desk.json("commit", JOB)
    assert document["started"] == the_started(desk)
    assert document["written"] is False
    assert desk.world.result(directory).outcome is Outcome.COMMITTED


@pytest.mark.parametrize("said", ["foo", MACHINE.replace("stateMachine", "execution")])
def test_what_is_no_state_machine(desk: Desk, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    desk.requested_job()
    monkeypatch.setenv(env.TABLE, TABLE)
    monkeypatch.setenv(env.STATE_MACHINE, said)
    line = f"{said!r} is not the ARN of a state machine: give the stack's output"
    for verb in (["sweep"], ["commit", JOB], ["abort", JOB]):
        assert line in desk.fails(*verb, "--state-machine", said, exit_code=2)
    for verb in (["sweep"], ["commit", JOB]):
        assert f"{env.STATE_MACHINE}: {line}" in desk.fails(*verb, exit_code=2)


@pytest.mark.parametrize(
    ("step", "verb", "other", "says"),
    [
        ("SealJob", "abort", "commit", "its request cannot be read here"),
        ("CompleteUploads", "commit", "abort", "its commit was already requested"),
    ],
)
def test_a_job_whose_request_was_written_over_is_resumed_by_the_verb_that_show_names(
    desk: Desk, step: str, verb: str, other: str, says: str
) -> None:
    """A stranger's document changes nothing for a job that is decided; any other is aborted."""
    directory = desk.job_at(step)
    desk.world.store.put(BUCKET, directory.request, b"no json")
    desk.dies(JOB)
    (line,) = desk.shown()["next"]
    assert f"its execution is FAILED: s3commit {verb} {JOB} --table {TABLE} starts" in line
    assert says in desk.fails(other, JOB, "--table", TABLE, exit_code=3)
    assert f"continues its {verb}" in desk.run(verb, JOB, "--table", TABLE).stdout


def test_i4_an_abort_whose_execution_died_is_gone_on_with(desk: Desk) -> None:
    directory = desk.open_job()
    desk.world.request_abort(directory)
    record = desk.world.record(directory)
    desk.world.ledger.take_over(record, execution=arn_of(JOB), now=desk.world.clock.now())
    desk.executions.statuses[arn_of(JOB)] = "RUNNING"
    told = desk.run("abort", JOB, "--table", TABLE).stdout
    assert "and its execution, which is RUNNING, decides" in told
    desk.dies(JOB)
    line = desk.fails("commit", JOB, "--table", TABLE, exit_code=3)
    assert "its abort was already requested" in line
    assert "continues its abort" in desk.run("abort", JOB, "--table", TABLE).stdout
    the_started(desk)
    assert desk.world.result(directory).outcome is Outcome.ABORTED
    assert desk.world.open_uploads() == []


@pytest.mark.parametrize("step", ["", "SealJob", "AcquireDestination", "CheckConditions"])
@pytest.mark.parametrize("status", ["RUNNING", "FAILED"])
def test_i1_i4_a_requested_job_is_given_up_until_it_is_decided(
    desk: Desk, step: str, status: str
) -> None:
    """Whether its execution works on it or not; that one is fenced off."""
    directory = desk.job_at(step, conflict=Conflict.REPLACE) if step else desk.requested_job()
    desk.executions.statuses[arn_of(JOB)] = status
    where = ["--table", TABLE, "--state-machine", MACHINE]
    (*_, line) = desk.shown()["next"]
    is_offered = status == "FAILED" or not step
    assert (line == f"to abort it: s3commit abort {JOB} --table {TABLE}") == is_offered
    assert "would start an execution" in desk.run("abort", JOB, *where, "--dry-run").stdout
    told = desk.run("abort", JOB, *where, "--reason", "wrong date").stdout
    assert f"of job {JOB}, which aborts it, unless it is already decided" in told
    (arn,) = desk.executions.started
    run_execution(desk.world.ports, directory, execution=arn, gives_up=desk.executions.gives_up)
    failure = desk.world.failure(directory)
    assert failure.code == "ABORTED_BY_OPERATOR"
    assert failure.message.endswith(": wrong date")
    assert "@" in failure.message
    assert desk.world.open_uploads() == []
    assert desk.world.visible() == {}
    assert desk.world.ledger.holders == set()


def test_i2_a_decided_job_is_given_up_by_nobody(desk: Desk) -> None:
    directory = desk.job_at("DecideCommit")
    where = ["--table", TABLE, "--state-machine", MACHINE]
    assert "decides; see" in desk.fails("abort", JOB, *where, exit_code=3)
    assert desk.executions.started == []
    run_execution(desk.world.ports, directory, execution="late", gives_up="decided meanwhile")
    assert desk.world.result(directory).outcome is Outcome.COMMITTED


def test_i11_a_job_whose_key_was_committed_by_another_says_so(desk: Desk) -> None:
    directory = job_directory(JOB)
    desk.world.open(directory, idempotency_key="k")
    desk.world.announce(directory, desk.world.attempt(directory, "0"))
    shown = desk.shown()
    assert (shown["keyCommittedBy"], shown["next"][0]) == (None, "nothing while its driver lives")
    desk.committed_job(OTHER, idempotency_key="k")
    shown = desk.shown()
    assert shown["keyCommittedBy"] == OTHER
    assert f"job {OTHER} already committed" in shown["next"][0]
    (listed,) = desk.listed()
    assert (listed["jobId"], listed["attention"]) == (JOB, False)  # the sweep ends it
    assert listed["code"] == "ALREADY_COMMITTED"


def test_a_job_that_has_ended_without_its_result_gets_it(desk: Desk) -> None:
    """I2: the ledger says how it ended, and its program still waits to hear it."""
    directory = desk.job_at("PublishSuccess")
    desk.world.store.delete(directory.bucket, directory.result)
    desk.dies(JOB)
    desk.run("commit", JOB, "--table", TABLE)
    the_started(desk)
    assert desk.world.result(directory).outcome is Outcome.COMMITTED
