"""`s3commit local up` in a process of its own, and its deployed sweep without any patience."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.conftest import Deployed, runtime

# S3's clock can't be turned back, so it is the limits that are moved: all that is not new is old.
IMPATIENT = {"stuckMinutes": 0, "abandonedHours": 0, "retentionDays": 30}


@contextmanager
def local_up() -> Iterator[Deployed]:
    """The runtime; this process's AWS configuration leads to it."""
    with runtime() as deployed, pytest.MonkeyPatch.context() as patch:
        for name, value in deployed.environment.items():
            patch.setenv(name, value)
        patch.setenv("S3COMMIT_STATE_MACHINE", deployed.stateMachine)
        yield deployed


def sweep(functions: Any, **limits: int) -> Mapping[str, Any]:
    """Call the deployed sweep by a client of Lambda; what it reports, or how it failed."""
    time.sleep(1.1)  # S3's times are whole seconds: what was just written is new
    listed = functions.list_functions()["Functions"]
    (name,) = [one["FunctionName"] for one in listed if one["Handler"] == "sweep.handler"]
    answer = functions.invoke(FunctionName=name, Payload=json.dumps(IMPATIENT | limits))
    report: Mapping[str, Any] = json.loads(answer["Payload"].read())
    return report
