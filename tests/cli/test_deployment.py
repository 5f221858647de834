"""Which deployment a verb works on: what is typed, the environment, and the stacks' outputs."""

import re
import shlex
from typing import Any

import pytest
from botocore.exceptions import ClientError
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from s3commit.aws import env
from s3commit.cli.app import app
from s3commit.cli.job_facts import REQUESTED
from s3commit.core.model.destination import Conflict
from s3commit.core.model.errors import AccessError, TransientError
from tests.cli.support import JOB, MACHINE, OTHER, SALES, TABLE, THIRD, Desk

ANOTHER = MACHINE.replace("Machine", "Another")


@pytest.mark.parametrize(("name", "named"), [("", []), ("prod", ["--name", "prod"])])
def test_the_stack_says_the_table_if_nothing_does(desk: Desk, name: str, named: list[str]) -> None:
    desk.stacks.deploy(name)
    desk.open_job()
    assert JOB in desk.run("status", *named).stdout
    assert desk.json("show", JOB, *named)["noted"]["tasks"] == 2
    told = desk.run("commit", JOB, *named, "--tasks=2", "--dry-run").stdout
    assert "would request the commit" in told
    assert "requested the abort" in desk.run("abort", JOB, *named).stdout


def test_a_table_that_is_typed_wins_over_every_stack(desk: Desk) -> None:
    desk.stacks.deploy("prod", table="of-prod")
    desk.open_job()
    assert JOB in desk.run("show", JOB, "--table", TABLE, "--name", "prod").stdout


@pytest.mark.parametrize("verb", ["status", "show"])
def test_a_name_wins_over_the_table(desk: Desk, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """Or else a sweep of a test's deployment would run on the one of every day."""
    desk.stacks.deploy("dev")
    desk.open_job()
    monkeypatch.setenv(env.TABLE, "of-every-day")
    assert JOB in desk.run(verb, *[JOB] * (verb == "show"), "--name", "dev").stdout


def test_the_environment_says_the_table_first(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.stacks.refusal = AssertionError("it was asked")
    desk.open_job()
    monkeypatch.setenv(env.TABLE, TABLE)
    assert JOB in desk.run("show", JOB).stdout


def test_a_completion_of_a_shell_asks_no_stack(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()
    monkeypatch.setattr(desk.stacks, "describe_stacks", lambda **names: asked.append(str(names)))
    complete = ShellComplete(app, {"obj": desk.session}, "s3commit", "_S3COMMIT_COMPLETE")
    for verb in ("status", "show", "commit", "sweep"):
        assert "--table" in [one.value for one in complete.get_completions([verb], "--")]
    assert asked == []


@pytest.mark.parametrize("place", ["a URI", "--destination"])
def test_a_job_whose_place_is_known_has_its_ledger_too(desk: Desk, place: str) -> None:
    directory = desk.requested_job()
    job = [directory.uri] if place == "a URI" else [JOB, "--destination", SALES]
    assert desk.json("show", *job)["state"] == REQUESTED
    desk.stacks.deploy()
    assert desk.json("show", *job)["noted"]["tasks"] == 2
    assert desk.json("show", *job, "--table", "")["noted"] is None


@pytest.mark.parametrize("refusal", [AccessError("not authorized"), TransientError("throttled")])
@pytest.mark.parametrize("of", ["stack", "table"])
def test_where_stack_or_table_can_not_be_read_s3_alone_is_enough(
    desk: Desk, refusal: AccessError | TransientError, of: str
) -> None:
    directory = desk.open_job()
    desk.stacks.deploy()
    if of == "stack":
        desk.stacks.refusal = refusal
    else:
        desk.session.ledgers[TABLE] = desk.world.plan.wrap(desk.world.ledger)
        desk.world.plan.fail("job", refusal, times=None)
    assert desk.json("show", directory.uri)["noted"] is None
    desk.run("commit", directory.uri, "--tasks", "2")
    assert "was already requested" in desk.fails("abort", directory.uri, exit_code=3)


def test_the_table_of_another_bucket_is_not_this_jobs(desk: Desk) -> None:
    """It would know nothing of the job, and an execution there would decide it a second time."""
    directory = desk.open_job()
    desk.stacks.deploy()
    desk.stacks.outputs[env.STORAGE_STACK][env.BUCKET_OUTPUT] = "another"
    assert desk.json("show", directory.uri)["noted"] is None


def test_a_caller_who_may_not_read_the_stack_is_told_what_to_name(desk: Desk) -> None:
    denied: Any = {"Error": {"Code": "AccessDenied", "Message": "not authorized"}}
    desk.stacks.refusal = ClientError(denied, "DescribeStacks")
    line = desk.fails("show", JOB, exit_code=1)
    assert line.startswith(
        "Error: reading stack S3CommitStorage: not authorized (AccessDenied); name"
    )
    assert "--table or S3COMMIT_TABLE, or the job's place with --destination" in line


def test_no_other_deployments_machine_starts(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ledger is another one, and would decide the job a second time."""
    desk.requested_job()
    desk.stacks.deploy(table="another")
    told = desk.fails("commit", JOB, "--table", TABLE, exit_code=3)
    assert "name the state machine" in told
    desk.stacks.deploy("prod")
    monkeypatch.setenv(env.STATE_MACHINE, ANOTHER)
    document = desk.json("commit", JOB, "--name", "prod", "--dry-run")
    assert (document["dryRun"], document["started"]) == (True, None)
    document = desk.json("commit", JOB, "--name", "prod")
    assert document["started"].startswith(MACHINE.replace("stateMachine", "execution"))


@pytest.mark.parametrize("typed", [("--table", TABLE), ("--name", "prod")])
def test_a_next_command_works_as_it_stands(desk: Desk, typed: tuple[str, str]) -> None:
    """Nobody types the table a second time, and no stack of the account's says this one."""
    desk.stacks.deploy("prod")
    waits = desk.open_job()
    desk.job_at("DecideCommit", OTHER, conflict=Conflict.REPLACE)
    desk.job_at("AcquireDestination", THIRD, conflict=Conflict.REPLACE)
    open_jobs = desk.json("fsck", SALES, *typed)["openJobs"]
    (fix,) = [one["fix"] for one in open_jobs if one["jobId"] == JOB]
    told = [*desk.json("show", JOB, *typed)["next"], *desk.json("show", THIRD, *typed)["next"]]
    told.append(desk.fails("commit", JOB, *typed, exit_code=3).partition(" [")[0])
    told.append(desk.fails("abort", OTHER, *typed, exit_code=3).partition(" [")[0])
    told.append(desk.run("abort", waits.uri, *typed).stderr)
    commands = re.findall(r"s3commit ([a-z]+ [^,;\n]+)", "\n".join([*told, fix]))
    verbs = ["commit", "abort", "show", "abort", "show", "show", "commit", "abort"]
    assert [command.split()[0] for command in commands] == verbs
    for command in commands:
        assert command.replace(" --dry-run", "").endswith(" ".join(typed))
        words = [*shlex.split(command), *["--timeout", "0s"] * ("--follow" in command)]
        assert CliRunner().invoke(app, words, obj=desk.session).exit_code in {0, 3, 4}
