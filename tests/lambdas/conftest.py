"""The handlers' real modules, their pipeline exchanged for one over the fakes."""

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from s3commit.aws import env
from tests.core.world import BUCKET, World
from tests.lake import QUEUE

ENVIRONMENT = {
    env.TABLE: "ledger",
    env.LEDGER: "arn:aws:dynamodb:eu-central-1:123456789012:table/ledger",
    env.BUCKET: BUCKET,
    env.LISTENS: json.dumps({name: [QUEUE, ""] for name in env.PAUSED}),
    env.STATE_MACHINE: "arn:aws:states:eu-central-1:123456789012:stateMachine:s3commit",
    env.LEDGER_TTL_DAYS: "90",
    env.REPLACE_BELOW: '[""]',
    env.WORKERS: "[100, 40]",
    "POWERTOOLS_SERVICE_NAME": env.SERVICE,
    "POWERTOOLS_METRICS_NAMESPACE": f"{env.METRICS_NAMESPACE}/dev",
}


def there(_service: str) -> Any:
    """SQS and EventBridge, by which the sweep looks at queues and rules: all is well."""
    return SimpleNamespace(get_queue_url=lambda **_: {}, describe_rule=lambda **_: {})


@dataclass(frozen=True)
class Context:
    """What Powertools reads of Lambda's context."""

    function_name: str = "function"
    memory_limit_in_mb: int = 256
    invoked_function_arn: str = "arn:aws:lambda:eu-central-1:123456789012:function:function"
    aws_request_id: str = "request-1"


Module = Callable[[str], ModuleType]
Call = Callable[[str, dict[str, Any]], dict[str, Any]]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def module(world: World, monkeypatch: pytest.MonkeyPatch) -> Module:
    """Import a handler's module by name, as Lambda does, in the environment of the stack."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    def load(name: str) -> ModuleType:
        loaded = importlib.import_module(f"lambdas.{name}")
        if hasattr(loaded, "ports"):
            monkeypatch.setattr(loaded, "ports", world.ports)
        if name == "ingest":
            monkeypatch.setattr(loaded, "machine", world.late)
        return loaded

    return load


@pytest.fixture
def call(module: Module) -> Call:
    """Invoke a function by name."""

    def invoke(name: str, event: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = module(name).handler(event, Context())
        return answer

    return invoke


Refusals = Callable[[], list[tuple[str, str]]]


@pytest.fixture
def refusals(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> Refusals:
    """The prefix and code of each refused document that was logged; the metric counts as many.

    Its one dimension is the service: with prefixes their owners could make any number of metrics.
    """

    def read() -> list[tuple[str, str]]:
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        counted = [line for line in lines if "DocumentsRefused" in line]
        for line in counted:
            (metrics,) = line["_aws"]["CloudWatchMetrics"]
            assert metrics["Dimensions"] == [["service"]]
            assert metrics["Namespace"] == f"{env.METRICS_NAMESPACE}/dev"
        logged = [vars(one) for one in caplog.records if one.getMessage() == "document refused"]
        assert sum(sum(line["DocumentsRefused"]) for line in counted) == len(logged)
        return [(one["prefix"], one["code"]) for one in logged]

    return read
