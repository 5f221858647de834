import json
import os
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from s3commit.local.moto_patches import PATCHES
from s3commit.local.runtime import LocalRuntime
from s3commit.local.worker import CallOutcome, FunctionSpec
from tests.local import templates
from tests.servers import ended

# To see that a test holds a patch: name the patch, and see the test fail.
if without := os.environ.get("S3COMMIT_TEST_WITHOUT_PATCH"):
    del PATCHES[without]


class FakeClock:
    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment


@dataclass
class Calls:
    """Every outcome of every function, and a way to wait for one."""

    seen: list[tuple[FunctionSpec, CallOutcome]] = field(default_factory=list)
    threads: dict[int, str] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, spec: FunctionSpec, outcome: CallOutcome) -> None:
        with self.changed:
            self.seen.append((spec, outcome))
            self.threads[id(outcome)] = threading.current_thread().name
            self.changed.notify_all()

    def of(self, text: str) -> list[CallOutcome]:
        return [outcome for _, outcome in self.seen if text in outcome.logs]

    def wait(self, text: str) -> list[CallOutcome]:
        """The outcomes whose logs have ``text``, when there is one."""
        self.wait_until(lambda: bool(self.of(text)), f"no call with {text!r}")
        return self.of(text)

    def wait_until(self, condition: Callable[[], bool], otherwise: str = "") -> None:
        with self.changed:
            assert self.changed.wait_for(condition, timeout=20), otherwise


@dataclass
class Local:
    """The running runtime and its clients."""

    runtime: LocalRuntime
    calls: Calls
    clock: FakeClock

    def __post_init__(self) -> None:
        self.s3 = self.runtime.client("s3")
        self.sqs = self.runtime.client("sqs")
        self.functions = self.runtime.client("lambda")
        self.machines = self.runtime.client("stepfunctions")
        self.dynamodb = self.runtime.client("dynamodb")
        self.bucket = self.runtime.bucket

    def output(self, name: str) -> str:
        return self.runtime.outputs[name]

    def invoke(self, name: str, event: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.functions.invoke(
            FunctionName=self.output(name), Payload=json.dumps(event)
        )
        body = answer["Payload"].read()
        answer["Result"] = json.loads(body) if body else None
        return answer

    def start(self, event: Any, name: str = "") -> str:
        """Start an execution; its ARN."""
        arn: str = self.machines.start_execution(
            stateMachineArn=self.runtime.state_machine_arn,
            name=name or uuid.uuid4().hex,
            input=json.dumps(event),
        )["executionArn"]
        return arn

    def ended(self, arn: str) -> dict[str, Any]:
        found: dict[str, Any] = ended(self.machines, arn, seconds=20, pause=0.02)
        return found

    def send(self, **body: Any) -> None:
        """Send the message to the queue that feeds the function."""
        self.sqs.send_message(QueueUrl=self.output("QueueUrl"), MessageBody=json.dumps(body))


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("assembly") / "cdk.out"
    return templates.write(directory, templates.storage(), templates.pipeline())


@pytest.fixture(scope="package")
def local(assembly: Path) -> Iterator[Local]:
    calls, clock = Calls(), FakeClock()
    with LocalRuntime(assembly, now=clock.now) as runtime:
        invoke = runtime.executor.invoke

        def seen(spec: FunctionSpec, payload: bytes) -> CallOutcome:
            outcome = invoke(spec, payload)
            calls(spec, outcome)
            return outcome

        with patch.object(runtime.executor, "invoke", seen):
            yield Local(runtime, calls, clock)


@pytest.fixture
def key() -> str:
    """A key that no other test uses."""
    return f"k/{uuid.uuid4().hex}"


@contextmanager
def switching_fast() -> Iterator[None]:
    """A switch interval of a microsecond."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
