"""A desk with the command on it: a world in memory, or one on a moto server."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from click.testing import CliRunner, Result

from s3commit.aws import env
from s3commit.cli.app import app
from s3commit.cli.deployment import Deployment
from s3commit.cli.render import epoch_of
from s3commit.cli.session import Session
from s3commit.cli.status import NOT_HERE
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.ports.executions import FORGOTTEN, NO_REASON, Execution, Reason
from s3commit.core.ports.ledger import Change
from s3commit.writer.system import Environment
from tests.core.world import BUCKET, World, job_directory
from tests.fakes.clock import ManualClock
from tests.fakes.execution import How, walk_execution

TABLE = "ledger"
JOB = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
OTHER = "11111111-7425-40de-944b-e07fc1f90ae7"
REF = job_directory(JOB).ref
THIRD = "22222222-7425-40de-944b-e07fc1f90ae7"
SALES = "s3://lake/sales/"
# As `status` says on stderr.
NO_JOBS = f"no jobs under way; --all adds those that have ended; {NOT_HERE}\n"
MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:Machine"


def arn_of(job_id: str, name: str = "") -> str:
    """The execution of a job, or one with another name."""
    return f"{MACHINE.replace('stateMachine', 'execution')}:{name or job_directory(job_id).ref}"


def run(*arguments: str, exit_code: int = 0, session: Session | None = None) -> Result:
    """Run the command and see that it ends so; as people do, by the environment's AWS settings."""
    result = CliRunner().invoke(app, arguments, obj=session)
    assert result.exit_code == exit_code, result.output
    return result


class WorldEnvironment(Environment):
    """The world's clock; whoever sleeps moves it, and ``on_sleep`` acts meanwhile."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.on_sleep: Callable[[], object] = lambda: None

    def now(self) -> str:
        return self.clock.now()

    def monotonic(self) -> float:
        return epoch_of(self.clock.now())

    def new_id(self) -> str:
        raise AssertionError("the command makes no ids")

    def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.on_sleep()


class FakeExecutions:
    """Step Functions: what a test says of executions; those that are started only stand there."""

    def __init__(self) -> None:
        self.statuses: dict[str, str] = {}
        self.errors: dict[str, tuple[str, str]] = {}
        self.started: list[str] = []
        self.gives_up, self.lists_lost = "", False
        self.refusal: S3CommitError | None = None

    def describe(self, execution: str) -> Execution:
        if self.refusal is not None:
            raise self.refusal
        return Execution(self.statuses.get(execution, FORGOTTEN), *self.errors.get(execution, ()))

    def start(self, name: str, directory: JobDirectory, reason: Reason = NO_REASON) -> str:
        arn = arn_of(directory.job_id, name)
        self.statuses[arn] = "RUNNING"
        self.gives_up, self.lists_lost = reason.gives_up, reason.lists_lost
        self.started.append(arn)
        return arn


class FakeStacks:
    """CloudFormation: the outputs of the stacks that there are, or why they can't be read."""

    def __init__(self) -> None:
        self.outputs: dict[str, dict[str, str]] = {}
        self.events: list[dict[str, Any]] = []
        self.logged: list[str] = []  # of each function
        self.pages_of_logs = 1
        self.alarms: list[str] = []  # those that fire, by the names that the runbook has
        self.dead_letters = 0  # of each queue
        self.refusal: Exception | None = None
        self.unwatched: Exception | None = None

    def describe_stacks(self, **asked: str) -> Any:
        if self.refusal is not None:
            raise self.refusal
        if asked["StackName"] not in self.outputs:
            raise InvalidInputError(f"Stack with id {asked['StackName']} does not exist")
        named = self.outputs[asked["StackName"]]
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in named.items()]
        return {"Stacks": [{"Outputs": outputs} if outputs else {}]}

    def describe_alarms(self, **asked: Any) -> Any:
        if self.unwatched is not None:
            raise self.unwatched
        prefix = asked["AlarmNamePrefix"]
        named = {
            "StateValue": asked["StateValue"],
            "StateUpdatedTimestamp": datetime(2026, 11, 21, 23, tzinfo=UTC),
            "StateTransitionedTimestamp": datetime(2026, 11, 21, 22, tzinfo=UTC),
        }
        return {"MetricAlarms": [{"AlarmName": prefix + one, **named} for one in self.alarms]}

    def get_queue_attributes(self, **_asked: Any) -> Any:
        if self.unwatched is not None:
            raise self.unwatched
        count = str(self.dead_letters)
        return {"Attributes": {"ApproximateNumberOfMessages": count, "QueueArn": "arn:q"}}

    def history(self, *events: tuple[str, str]) -> None:
        """Step Functions has these events of each execution: type, and state or error."""
        start = datetime(2026, 11, 21, 22, tzinfo=UTC)
        members = {"StateEntered": "name", "StateExited": "name", "Failed": "error"}
        self.events = [
            {
                **{"id": number, "previousEventId": number - 1, "type": kind},
                "timestamp": start + timedelta(seconds=number),
                **{
                    f"{end[0].lower()}{end[1:]}EventDetails": {member: text}
                    for end, member in members.items()
                    if kind.endswith(end)
                },
            }
            for number, (kind, text) in enumerate(events, start=1)
        ]

    def describe_log_groups(self, **asked: Any) -> Any:
        return {"logGroups": [{"logGroupName": f"{asked['logGroupNamePrefix']}EndLogs"}]}

    def get_paginator(self, _operation: str) -> Any:
        return self

    def paginate(self, **asked: Any) -> Any:
        """The pages of a history, or of a log's lines that have what is asked for."""
        if "filterPattern" not in asked:
            return [{"events": self.events[::-1]}]
        text = asked["filterPattern"].strip('"')
        lines = [{"timestamp": 1_000, "message": one} for one in self.logged if text in one]
        return [{"events": lines}, *[{"events": [], "nextToken": "x"}] * (self.pages_of_logs - 1)]

    def deployment(self, name: str | None) -> Deployment:
        return Deployment("eu-central-1", lambda _service: self, name)

    def deploy(self, name: str = "", *, table: str = TABLE) -> None:
        """A deployment with that parameter name, for the world's bucket."""
        stack, outputs = self.deployment(name).stack, self.outputs
        outputs[stack(env.STORAGE_STACK)] = {env.TABLE_OUTPUT: table, env.BUCKET_OUTPUT: BUCKET}
        dead = {env.DEAD_LETTERS_OUTPUTS[inbox]: "https://q" for inbox in env.PAUSED}
        outputs[stack(env.PIPELINE_STACK)] = {env.STATE_MACHINE_OUTPUT: MACHINE, **dead}


@dataclass
class Desk:
    """The command over a world in memory."""

    world: World = field(default_factory=World)
    executions: FakeExecutions = field(default_factory=FakeExecutions)
    stacks: FakeStacks = field(default_factory=FakeStacks)
    has_pipeline: bool | None = None  # None: the caller may not know
    has_console: bool = True

    def __post_init__(self) -> None:
        self.world.heal()  # as a deployment's ledger is after its first job
        self.environment = WorldEnvironment(self.world.clock)
        self.session = Session()
        self.session.store = self.world.plan.wrap(self.world.store)
        self.session.machines = {MACHINE: self.executions}
        self.session.deployments = self.stacks.deployment
        vars(self.session)["has_pipeline"] = lambda _bucket: self.has_pipeline
        vars(self.session)["has_console"] = lambda: self.has_console
        self.session.parallel = map
        self.session.clock = self.world.clock
        self.session.environment = self.environment
        self.session.ledgers[TABLE] = self.world.ledger

    def run(self, *arguments: str, exit_code: int = 0) -> Result:
        return run(*arguments, exit_code=exit_code, session=self.session)

    def run_any(self, *arguments: str) -> Result:
        """Run the command, however it ends."""
        return CliRunner().invoke(app, arguments, obj=self.session)

    def json(self, *arguments: str, exit_code: int = 0) -> Any:
        told = json.loads(self.run(*arguments, "--output", "json", exit_code=exit_code).stdout)
        check_units("", told)
        return told

    def shown(self, job_id: str = JOB) -> Any:
        """What `show` tells a program of a job, with the ledger."""
        return self.json("show", job_id, "--table", TABLE)

    def text(self, *arguments: str) -> str:
        """What a verb prints, with single blanks."""
        lines = self.run(*arguments).stdout.splitlines()
        return "\n".join(" ".join(line.split()) for line in lines)

    def listed(self, *options: str) -> Any:
        """The jobs that `status` tells a program of."""
        return self.json("status", "--table", TABLE, *options)["jobs"]

    def fails(self, *arguments: str, exit_code: int) -> str:
        """Run the command, see that it fails without data, and return its one line of error."""
        result = self.run(*arguments, exit_code=exit_code)
        *usage, line = result.stderr.splitlines()
        assert exit_code == 2 or not usage, result.stderr
        assert line.startswith("Error: ")
        assert result.stdout == ""
        return line

    def while_it_waits(self, *steps: Callable[[], object]) -> None:
        """Do one step each time that the command sleeps; it must not sleep more often."""
        left = iter(steps)

        def act() -> None:
            next(left)()

        self.environment.on_sleep = act

    # Jobs in the states that people ask about.

    def open_job(self, job_id: str = JOB, *, tasks: int = 2) -> JobDirectory:
        """A job whose tasks are done and noted; nobody has asked for anything."""
        directory = job_directory(job_id)
        self.world.open(directory, created_at="2026-11-21T22:00:00.000Z", client="test/1")
        for task in range(tasks):
            self.world.announce(directory, self.world.attempt(directory, str(task)))
        return directory

    def requested_job(
        self, job_id: str = JOB, *, files: Mapping[str, bytes] | None = None, **spec: Any
    ) -> JobDirectory:
        """A job whose commit is requested, and no execution has begun.

        ``files`` are those of its one task; without them it has two tasks.
        """
        directory = job_directory(job_id)
        self.world.open(directory, **spec)
        tasks = "01" if files is None else "0"
        attempts = [self.world.attempt(directory, task, files=files) for task in tasks]
        for attempt in attempts:
            self.world.announce(directory, attempt)
        self.world.request(directory, *attempts)
        return directory

    def committed_job(self, job_id: str = JOB, **how: Any) -> JobDirectory:
        directory = self.requested_job(job_id, **how)
        self.world.run(directory)
        return directory

    def job_at(self, step: str, job_id: str = JOB, **how: Any) -> JobDirectory:
        """A requested job whose execution, with an ARN, is running and is done with ``step``.

        Each step is a call of its own, as it is for a job that is not small.
        """
        directory = self.requested_job(job_id, **how)
        execution = arn_of(job_id)
        self.executions.statuses[execution] = "RUNNING"
        is_done = False
        calls = How(execution=execution, pause=lambda: None, alone=True)
        for name in walk_execution(self.world.ports, directory, **calls):
            if is_done:
                break
            is_done = name == step
        return directory

    def change(self, directory: JobDirectory, **fields: Any) -> None:
        """Have the ledger's record of the job say something else."""
        record = self.world.record(directory)
        self.world.ledger.update(Change(record, replace(record, **fields)))

    def dies(self, job_id: str, status: str = "FAILED", *, error: str = "", says: str = "") -> None:
        """The job's execution is no more; a step of it has raised ``error``, and ``says`` why."""
        self.executions.statuses[arn_of(job_id)] = status
        if error:
            trace = ['  File "/var/task/end.py", line 23, in handler\n'] * 20
            cause = {"errorMessage": says, "errorType": error, "stackTrace": trace}
            self.executions.errors[arn_of(job_id)] = (error, json.dumps(cause))

    def aborted_job(self, job_id: str = JOB) -> JobDirectory:
        directory = self.open_job(job_id)
        self.world.request_abort(directory)
        self.world.run(directory)
        return directory


def check_units(name: str, value: Any) -> None:
    """A member's name ends in what it is, and nothing else ends so: `s3commit.cli.render`."""
    if isinstance(value, dict):
        for member, inner in value.items():
            check_units(member, inner)
    elif isinstance(value, list):
        for element in value:
            check_units(name, element)
    elif value not in {None, ""}:
        is_time = isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value) is not None
        assert is_time == name.endswith(("At", "Since")), (name, value)
        assert isinstance(value, int | float) or not name.endswith("Seconds"), (name, value)
