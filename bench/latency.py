"""Benchmark 4: from request to result for a small job on the embedded runtime.

The baseline is a state machine in the same runtime that calls a function which does nothing, as
often and one after the other as the pipeline calls its functions for such a job: what Step
Functions and Lambda take by themselves, as they are played here.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import boto3

import s3commit
from bench.figures import Figure, Sample
from stacks.layers import ROOT

JOBS: Final = 20
WARM_JOBS: Final = 3
FILES: Final = 3
LIMIT: Final = 2.0  # seconds
CALLS: Final = 3  # SealJob, the one unit of CompleteFew, BeginPublish
_POLL: Final = 0.01


@dataclass(frozen=True, slots=True)
class Local:
    """A running embedded runtime: its ready line, and a machine that does nothing in it."""

    ready: dict[str, str]
    machine: str

    @classmethod
    def of(cls, ready: dict[str, str]) -> Local:
        """Make the machine, and point the environment at the runtime."""
        os.environ.update(
            AWS_ENDPOINT_URL=ready["endpoint"],
            AWS_REGION=ready["region"],
            AWS_DEFAULT_REGION=ready["region"],
            AWS_ACCESS_KEY_ID=ready["accessKey"],
            AWS_SECRET_ACCESS_KEY=ready["secretKey"],
            AWS_EC2_METADATA_DISABLED="true",
        )
        return cls(ready, _make_machine())


def latency(say: Callable[[str], None], jobs: int = JOBS) -> list[Figure]:
    """Jobs of 3 small files: seconds from `Job.commit` to its return, one job at a time."""
    with _runtime() as local:
        bucket = local.ready["bucket"]
        for _ in range(WARM_JOBS):
            _job(bucket)
            _nothing(local.machine)
        measured, nothing = [], []
        for _ in range(jobs):
            measured.append(_job(bucket))
            nothing.append(_nothing(local.machine))
    say(f"latency: {jobs} jobs")
    return [
        Figure(
            "embedded runtime, warm",
            f"request to result, {FILES} files",
            "s",
            Sample(tuple(measured)),
            f"a state machine of {CALLS} calls of an empty function",
            Sample(tuple(nothing)),
            limit=LIMIT,
        )
    ]


def _job(bucket: str) -> float:
    job = s3commit.open_job(f"s3://{bucket}/bench/{uuid.uuid4().hex}/")
    with job.task("0") as task:
        for number in range(FILES):
            with task.open(f"part-{number}.bin") as file:
                file.write(b"bench" * 1000)
    start = time.perf_counter()
    result = job.commit([task.counted])
    taken = time.perf_counter() - start
    assert result.files == FILES
    return taken


def _nothing(machine: str) -> float:
    client = boto3.client("stepfunctions")
    start = time.perf_counter()
    started = client.start_execution(stateMachineArn=machine, name=uuid.uuid4().hex, input="{}")
    arn = started["executionArn"]
    while (status := client.describe_execution(executionArn=arn)["status"]) == "RUNNING":
        time.sleep(_POLL)
    taken = time.perf_counter() - start
    assert status == "SUCCEEDED", status
    return taken


def _make_machine() -> str:
    code = tempfile.mkdtemp(prefix="s3commit-bench-")
    atexit.register(shutil.rmtree, code)
    Path(code, "nothing.py").write_text("def handler(event, context):\n    return event\n")
    trust = {"Version": "2012-10-17", "Statement": []}
    role = boto3.client("iam").create_role(
        RoleName="bench", AssumeRolePolicyDocument=json.dumps(trust)
    )["Role"]["Arn"]
    function = boto3.client("lambda").create_function(
        FunctionName="bench-nothing",
        Runtime="python3.13",
        Role=role,
        Handler="nothing.handler",
        Code={"ZipFile": os.fsencode(code)},  # the runtime takes a folder's path for a zip
        Timeout=30,
    )["FunctionArn"]
    machine = boto3.client("stepfunctions").create_state_machine(
        name="bench-nothing", roleArn=role, definition=json.dumps(_definition(function))
    )
    return machine["stateMachineArn"]


def _definition(function: str) -> dict[str, Any]:
    """Tasks in a row, in the form in which the pipeline's own states call their functions."""
    states: dict[str, Any] = {}
    for number in range(1, CALLS + 1):
        state: dict[str, Any] = {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Parameters": {"FunctionName": function, "Payload.$": "$"},
            "OutputPath": "$.Payload",
        }
        states[f"Call{number}"] = state | (
            {"End": True} if number == CALLS else {"Next": f"Call{number + 1}"}
        )
    return {"StartAt": "Call1", "States": states}


@contextmanager
def _runtime() -> Iterator[Local]:
    """`s3commit local up` in a process of its own, as a developer runs it."""
    command = [sys.executable, "-m", "s3commit", "local", "up"]
    with (
        patch.dict(os.environ),
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise SystemExit("bench: the embedded runtime did not start")
            yield Local.of(json.loads(line))
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
