"""What the checks share: the deployment that they try, jobs there, and their registry."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import s3commit
from acceptance.places import STACKS, BrokenError, NotSeenError, Place
from s3commit.aws import env
from s3commit.aws.clients import make_client
from s3commit.aws.clock import SystemClock
from s3commit.aws.executions import StateMachine
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.parallel import ThreadMap
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.documents.request_json import CommitRequest, CountedAttempt, encode_request
from s3commit.core.documents.result_json import JobResult
from s3commit.core.documents.ticket import decode_ticket, execution_input
from s3commit.core.formats.layout import JobDirectory, is_data
from s3commit.core.model.outcome import Outcome
from s3commit.core.ports.bundle import Ports
from s3commit.writer.requests import Patience, wait_for_result
from s3commit.writer.system import Environment
from tests.fakes.execution import COMPLETING, call

SEEN, NOT_SEEN, BROKEN = "seen", "not seen here", "broken"
WORKERS: Final = 16
FILES_PER_TASK: Final = 100
SMALL_JOB: Final = ("a.txt", "b.txt", "c.txt")


@dataclass(frozen=True, slots=True)
class Check:
    """A promise in one sentence, what tries it, and how many minutes that takes on AWS at most."""

    name: str
    promise: str
    minutes: float
    run: Callable[[Run], str]


CHECKS: dict[str, Check] = {}


def check(promise: str, minutes: float = 1) -> Callable[[Callable[[Run], str]], object]:
    """Register a check under its function's name. It returns what it has seen, in a line.

    It raises `NotSeenError` where the place can't run it; whatever else it raises, the promise is
    broken.
    """

    def register(function: Callable[[Run], str]) -> object:
        name = function.__name__.replace("_", "-")
        CHECKS[name] = Check(name, promise, minutes, function)
        return function

    return register


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a check."""

    check: str
    promise: str
    verdict: str
    detail: str
    seconds: float


def tried(run: Run, one: Check) -> Result:
    """Run a check; an error of any kind is a verdict and stops no other check."""
    began = time.monotonic()
    try:
        verdict, detail = SEEN, one.run(run)
    except NotSeenError as error:
        verdict, detail = NOT_SEEN, str(error)
    except Exception as error:
        kind = "" if isinstance(error, BrokenError) else f"{type(error).__name__}: "
        verdict, detail = BROKEN, " ".join(f"{kind}{error}".split())
    return Result(one.name, one.promise, verdict, detail, round(time.monotonic() - began, 1))


def equal(found: object, expected: object, what: str) -> None:
    """Raise `BrokenError` where something else was found."""
    if found != expected:
        raise BrokenError(f"{what}: {found}, not {expected}")


@dataclass
class Run:
    """A deployment under trial. ``files`` is the size of a large job, ``patience`` in seconds."""

    place: Place
    outputs: dict[str, str]
    files: int
    patience: float
    events: str = "notifications"  # by which the bucket's events come
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    executions: list[str] = field(default_factory=list)  # of jobs that were committed by events

    def __post_init__(self) -> None:
        self.bucket, self.table = self.outputs[env.BUCKET_OUTPUT], self.outputs[env.TABLE_OUTPUT]
        self.arn = self.outputs[env.STATE_MACHINE_OUTPUT]
        self.clients = self.place.clients

    @cached_property
    def ports(self) -> Ports:
        """The pipeline's own ports, with the rights of the caller."""
        store = S3ObjectStore(make_client(connections=WORKERS))
        return Ports(store, DynamoLedger(self.table), SystemClock(), parallel=ThreadMap(WORKERS))

    @cached_property
    def express(self) -> bool:
        """True if the children of the deployed Map are express executions, as on AWS alone."""
        machine = self.clients("stepfunctions").describe_state_machine(stateMachineArn=self.arn)
        return '"EXPRESS"' in machine["definition"]

    def by_express(self, seen: str) -> str:
        """What was seen; raises `NotSeenError` where the Map has children of another kind."""
        if not self.express:
            raise NotSeenError(f"no emulator has express executions; with standard ones: {seen}")
        return seen

    def uri(self, table: str) -> str:
        """The destination of that name."""
        return f"s3://{self.bucket}/{table}/"

    def write(
        self, table: str, names: Sequence[str] = SMALL_JOB, **how: Any
    ) -> tuple[s3commit.Job, list[CountedAttempt | None]]:
        """Open a job and write its files, which stay invisible; the job and its attempts."""
        job = s3commit.open_job(self.uri(table), **how)
        job.commit_timeout = self.patience
        starts = range(0, len(names), FILES_PER_TASK)
        parts = [(job.task(str(at)), names[at : at + FILES_PER_TASK]) for at in starts]

        def carry_out(part: tuple[s3commit.Task, Sequence[str]]) -> CountedAttempt | None:
            task, files = part
            for name in files:
                with task.open(name) as file:
                    file.write(name.encode())
            return task.finish()

        with ThreadPoolExecutor(WORKERS) as pool:
            return job, list(pool.map(carry_out, parts))

    def commit(self, table: str, *names: str, **how: Any) -> JobResult:
        """A job from its start to its result, with the time from its request to its execution."""
        job, counted = self.write(table, names or SMALL_JOB, **how)
        began = time.time()
        result = job.commit(counted)
        service = self.clients("stepfunctions")
        started = service.describe_execution(executionArn=result.execution)["startDate"]
        self.times[self.events].append(started.timestamp() - began)
        self.executions.append(result.execution)
        return result

    def data(self, table: str) -> list[str]:
        """The names of the files that a reader of the destination sees."""
        listed = self.ports.store.list(self.bucket, f"{table}/")
        names = (one.key.removeprefix(f"{table}/") for one in listed)
        return sorted(name for name in names if is_data(name))

    def ended(self, directory: JobDirectory, outcome: Outcome) -> JobResult:
        """Wait until the job has ended so."""
        patience = Patience(Environment(), self.patience)
        result = wait_for_result(self.ports.store, directory, patience)
        equal(result.outcome, outcome, "outcome")
        return result

    def until(self, look: Callable[[], Any], what: str, seconds: float = 0) -> Any:
        """What ``look`` finds, as soon as it finds something."""
        end = time.monotonic() + (seconds or self.patience)
        while not (found := look()):
            if time.monotonic() > end:
                raise BrokenError(f"waited in vain for {what}")
            time.sleep(2 if self.place.is_aws else 0.2)
        return found

    @contextmanager
    def events_off(self) -> Iterator[None]:
        """No event of a request starts an execution in the block."""
        self._switch(on=False)
        try:
            yield
        finally:
            self._switch(on=True)

    def _switch(self, *, on: bool) -> None:
        functions, source = self.clients("lambda"), self.outputs[env.MAPPING_OUTPUTS["Request"]]
        functions.update_event_source_mapping(UUID=source, Enabled=on)
        wanted = "Enabled" if on else "Disabled"
        self.until(
            lambda: functions.get_event_source_mapping(UUID=source)["State"] == wanted,
            f"the event source of requests to be {wanted}",
        )

    def request(self, job: s3commit.Job, counted: Sequence[CountedAttempt | None]) -> None:
        """Put the job's request, and do not wait."""
        body = encode_request(CommitRequest(job.job_id, tuple(filter(None, counted))))
        self.ports.store.put(self.bucket, job.directory.request, body, if_absent=True)

    def decide(self, job: s3commit.Job, counted: Sequence[CountedAttempt | None]) -> None:
        """Request the job and carry it to its decision from here, while `events_off`."""
        self.request(job, counted)
        ticket, step = decode_ticket(execution_input(job.directory)), "SealJob"
        while step not in COMPLETING:
            ticket, step = call(self.ports, step, ticket)

    def start(self, job: s3commit.Job, again: str = "") -> str:
        """Start an execution of the job; its ARN."""
        started = StateMachine(self.arn).start(job.directory.ref + again, job.directory)
        if started is None:
            raise BrokenError(f"an execution named {job.directory.ref}{again} was there already")
        return started

    def pipelines(self, job: s3commit.Job, part: str) -> str:
        """The key of the first of the pipeline's own objects for the job that has ``part``."""
        prefix = job.directory.pipeline_prefix
        keys = (one.key for one in self.ports.store.list(self.bucket, prefix))
        return next(key for key in keys if part in key)

    @cached_property
    def functions(self) -> dict[str, dict[str, Any]]:
        """The configurations of the deployed functions, by their modules.

        They are known by the path of their roles: CloudFormation cuts the stack's name in theirs.
        """
        pages = self.clients("lambda").get_paginator("list_functions").paginate()
        return {
            one["Handler"].removesuffix(".handler"): one
            for page in pages
            for one in page["Functions"]
            if f"/{STACKS[0]}-{self.place.name}/" in one["Role"]
        }

    def history(self, execution: str) -> list[dict[str, Any]]:
        """The events of an execution."""
        pages = self.clients("stepfunctions").get_paginator("get_execution_history")
        found = pages.paginate(executionArn=execution, includeExecutionData=False)
        return [event for page in found for event in page["events"]]
