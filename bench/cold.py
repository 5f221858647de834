"""Benchmark 5: what the functions of a small job take when each of them starts cold.

Each function is a process of the functions' own Python, where this machine has it, that sees the
standard library and the layers as they are deployed. It is given the events of one job, step by
step as the state machine does, and moto stands in for AWS. What is measured is CPU time: of the
import, which is Lambda's init, and of each call.

From request to result such a job takes at least the sum: the init at a whole processor, and the
calls at the share of one that the function's memory buys. What is Lambda's, S3's and Step
Functions' own is not in it: starting a machine, fetching the layers, and waiting for answers.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Self
from unittest.mock import patch

import boto3

import s3commit
from bench.figures import Figure, Sample
from s3commit.aws import env
from s3commit.aws.ledger_items import bind
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.calls.routes import COUNTED, ENDS, STEPS
from s3commit.core.documents.ticket import execution_input
from s3commit.core.formats.layout import JobDirectory, parse_directory
from stacks.definition import MAP_FUNCTION
from stacks.functions import FUNCTIONS
from stacks.layers import ROOT, dependencies_layer, function_code, runtime_python
from tests.fakes.execution import COMPLETING
from tests.lake import QUEUE, REQUEST, Lake, notify

LAMBDAS: Final = ROOT / "lambdas"
ROUNDS: Final = 7
GOAL: Final = 1.3  # of an init, beside that of the clients alone
LIMIT: Final = 4.0  # seconds, from request to result
WHOLE_PROCESSOR: Final = 1769  # MB; as in stacks/functions.py
REQUESTED: Final = "dispatch"
BARE: Final = "boto3 clients of S3 and DynamoDB"
BUCKET: Final = "cold"
TABLE: Final = "ledger"
REGION: Final = "eu-central-1"
FILES: Final = 3
_EXECUTION: Final = "arn:aws:states:eu-central-1:123456789012:execution:bench:cold"

# Answers go to the first stdout; what a function logs goes with stderr.
_PROGRAM: Final = """
import json, os, sys, time, types
sys.path[:0] = sys.argv[2:]
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
context = types.SimpleNamespace(
    function_name="cold", memory_limit_in_mb=1, invoked_function_arn="arn", aws_request_id="1")
start = time.process_time()
exec(sys.argv[1])
print(json.dumps([time.process_time() - start, None]), file=answers)
for line in sys.stdin:
    event = json.loads(line)
    start = time.process_time()
    answer = handler(event, context)
    print(json.dumps([time.process_time() - start, answer]), file=answers)
"""
_BARE: Final = "import boto3; boto3.client('s3'); boto3.client('dynamodb')"


@dataclass(frozen=True, slots=True)
class Function:
    """A process that is one function: ``init`` and ``calls`` are its CPU seconds."""

    name: str
    init: float
    process: subprocess.Popen[str]
    calls: list[float] = field(default_factory=list)

    @classmethod
    def start(cls, name: str, program: str, code: Path, compiled: bool = True) -> Self:
        """Import what it imports. Without ``compiled`` no byte code is read; none is written."""
        compiler = runtime_python()
        elsewhere = () if compiled else ("-X", "pycache_prefix=/nowhere")
        paths = [code, dependencies_layer() / "python"]
        process = subprocess.Popen(
            [
                *(compiler or sys.executable, "-I", "-S", "-B", *elsewhere),
                *("-c", _PROGRAM, program, *map(str, paths)),
            ],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return cls(name, _answer(name, process)[0], process)

    def call(self, event: Any) -> Any:
        """Give it an event; its answer."""
        assert self.process.stdin is not None
        print(json.dumps(event), file=self.process.stdin, flush=True)
        cpu, answer = _answer(self.name, self.process)
        self.calls.append(cpu)
        return answer

    def end(self) -> None:
        """It dies of its stdin's end."""
        self.process.communicate(timeout=60)

    @property
    def seconds(self) -> float:
        """How long it takes of a job that finds it cold, by its memory."""
        share = min(1.0, FUNCTIONS[self.name].memory / WHOLE_PROCESSOR)
        return self.init + sum(self.calls) / share


def _answer(name: str, process: subprocess.Popen[str]) -> list[Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.communicate(timeout=60)
        raise RuntimeError(f"{name} ended with {process.returncode}")
    found: list[Any] = json.loads(line)
    return found


def cold(say: Callable[[str], None], rounds: int = ROUNDS) -> list[Figure]:
    """Commit small jobs, each with processes of its own, in turn with and without byte code."""
    say(f"cold: {rounds} jobs with byte code and {rounds} without, by {_interpreter()}")
    jobs: dict[bool, list[dict[str, Function]]] = {True: [], False: []}
    bare: dict[bool, list[float]] = {True: [], False: []}
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        code = function_code(Path(scratch) / "code")
        lake = stack.enter_context(on_moto())
        for turn in range(rounds + 1):
            for compiled, made in jobs.items():
                client = Function.start(BARE, _BARE, code, compiled)
                client.end()
                job = _job(lake.store, partial(_start, code=code, compiled=compiled))
                if turn:  # the first one warms the disk's cache
                    bare[compiled].append(client.init)
                    made.append(job)
    return [*_inits(jobs[True], bare[True]), *_calls(jobs[True]), _whole(jobs)]


def _interpreter() -> str:
    compiler = runtime_python()
    if compiler is None:
        return "this Python: there is no other"
    return subprocess.check_output([compiler, "--version"], text=True).strip()


def _inits(jobs: list[dict[str, Function]], bare: list[float]) -> list[Figure]:
    against = Sample(tuple(bare))
    return [
        Figure(
            "cold init of a function",
            name,
            "CPU s",
            Sample(tuple(job[name].init for job in jobs)),
            BARE,
            against,
            goal=GOAL,
        )
        for name in jobs[0]
    ]


def _calls(jobs: list[dict[str, Function]]) -> list[Figure]:
    return [
        Figure(
            "calls for a small job of a function that was cold",
            f"{name}, {len(jobs[0][name].calls)} calls",
            "CPU s",
            Sample(tuple(sum(job[name].calls) for job in jobs)),
            "its init",
            Sample(tuple(job[name].init for job in jobs)),
        )
        for name in jobs[0]
    ]


def _whole(jobs: dict[bool, list[dict[str, Function]]]) -> Figure:
    with_bytecode, without = (
        Sample(tuple(sum(one.seconds for one in job.values()) for job in jobs[compiled]))
        for compiled in (True, False)
    )
    return Figure(
        "cold deployment",
        f"request to result of {FILES} files, {len(jobs[True][0])} functions",
        "s",
        with_bytecode,
        "the same without byte code",
        without,
        limit=LIMIT,
    )


def _start(name: str, *, code: Path, compiled: bool) -> Function:
    return Function.start(name, f"from {name} import handler", code, compiled)


def _job(store: S3ObjectStore, start: Callable[[str], Function]) -> dict[str, Function]:
    """Write a job and carry it out; the functions that took part until its result was there."""
    job = s3commit.open_job(f"s3://{BUCKET}/{os.urandom(4).hex()}/")
    with job.task("0") as task:
        for number in range(FILES):
            with task.open(f"part-{number}.bin") as file:
                file.write(b"cold" * 1000)
    results: list[Any] = []
    driver = threading.Thread(target=lambda: results.append(job.commit([task.counted])))
    driver.start()
    functions: dict[str, Function] = {}
    try:
        _carry_out(store, _requested(store, job.job_id), functions, start)
        driver.join(60)
    finally:
        for function in functions.values():
            function.end()
    assert results and results[0].files == FILES
    return functions


def _requested(store: S3ObjectStore, job_id: str) -> JobDirectory:
    while True:
        for found in store.list(BUCKET, ""):
            if found.key.endswith("/_request.json") and job_id in found.key:
                return parse_directory(BUCKET, found.key)


def _carry_out(
    store: S3ObjectStore,
    directory: JobDirectory,
    functions: dict[str, Function],
    start: Callable[[str], Function],
) -> None:
    """The way of the state machine until the result is there."""

    def call(name: str, event: Any) -> Any:
        if name not in functions:
            functions[name] = start(name)
        return functions[name].call(event)

    record = {"s3": {"bucket": {"name": BUCKET}, "object": {"key": directory.request}}}
    message = {"messageId": "1", "body": json.dumps({"Records": [record]})}
    assert call(REQUESTED, {"Records": [message]}) == {"batchItemFailures": []}
    ticket: Any = execution_input(directory)
    step = "SealJob"
    while step not in ENDS.values():
        if step in COMPLETING:
            units = json.loads(store.get(BUCKET, ticket["plan"], max_bytes=1 << 20).body)
            done = [call(MAP_FUNCTION, {"unit": unit, "ticket": ticket}) for unit in units]
            ticket["completed"], step = done, COUNTED
        else:
            event = {"step": step, "execution": _EXECUTION, "ticket": ticket, "goesOn": True}
            ticket = call(STEPS[step], event)
            step = ticket["next"]


@contextmanager
def on_moto() -> Iterator[Lake]:
    """Moto with the bucket, the table and a state machine that does nothing."""
    command = [sys.executable, str(ROOT / "tests" / "servers.py")]
    with (
        patch.dict(os.environ),
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as server,
    ):
        assert server.stdout is not None
        os.environ.update(environment(), AWS_ENDPOINT_URL=server.stdout.readline().strip())
        lake = Lake(BUCKET)
        where: Any = {"LocationConstraint": REGION}
        lake.client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
        notify(lake.client, lake.bucket, QUEUE, REQUEST)
        bind(TABLE).job.create_table(billing_mode="PAY_PER_REQUEST")
        definition = {"StartAt": "Done", "States": {"Done": {"Type": "Succeed"}}}
        boto3.client("stepfunctions").create_state_machine(
            name="bench",
            roleArn="arn:aws:iam::123456789012:role/bench",
            definition=json.dumps(definition),
        )
        yield lake


def environment() -> dict[str, str]:
    """What the handlers read of their environment."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL")
    return {
        **({"AWS_ENDPOINT_URL": endpoint} if endpoint else {}),
        "PATH": os.environ.get("PATH", os.defpath),
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_EC2_METADATA_DISABLED": "true",
        env.TABLE: TABLE,
        env.LEDGER: f"arn:aws:dynamodb:{REGION}:123456789012:table/{TABLE}",
        env.BUCKET: BUCKET,
        env.LEDGER_TTL_DAYS: "90",
        env.REPLACE_BELOW: '[""]',
        env.WORKERS: "[40, 40]",
        env.CATALOGS: "[]",
        env.STATE_MACHINE: f"arn:aws:states:{REGION}:123456789012:stateMachine:bench",
        "POWERTOOLS_SERVICE_NAME": env.SERVICE,
        "POWERTOOLS_METRICS_NAMESPACE": env.METRICS_NAMESPACE,
    }
