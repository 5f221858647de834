"""Runs functions in pools of persistent workers."""

import json
import os
import sys
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from moto.awslambda.models import lambda_backends

from s3commit.local import ACCOUNT, REGION
from s3commit.local.worker import RUNTIME, CallOutcome, FunctionSpec, Worker

# The runtime interface client and what it needs (Lambda brings it, no layer does).
_RUNTIME_DISTRIBUTIONS = ("awslambdaric", "simplejson", "snapshot-restore-py")
MAX_WORKERS = max(4, 2 * (os.cpu_count() or 1))


@dataclass(slots=True)
class _Pool:
    """The workers of one function; ``idle`` is a stack, the warmest is on top."""

    turns: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MAX_WORKERS))
    idle: list[Worker] = field(default_factory=list)
    busy: set[Worker] = field(default_factory=set)


class Executor:
    """Calls functions in worker processes.

    ``environment`` is given to every worker (endpoint, region, credentials). At most `MAX_WORKERS`
    processes a function run at a time; further calls wait, which in AWS would be more environments.
    It does not retry.
    """

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self._directory = directory
        self._environment = environment
        self._pools: defaultdict[FunctionSpec, _Pool] = defaultdict(_Pool)
        self._lock = threading.Lock()
        self._is_closing = False
        link_runtime(directory)

    def invoke(self, spec: FunctionSpec, payload: bytes) -> CallOutcome:
        """Call the function and wait; a failed call is an `CallOutcome` too."""
        with self._lock:
            pool = self._pools[spec]
        with pool.turns:
            with self._lock:
                if self._is_closing:
                    return CallOutcome(b'{"errorType": "Runtime.Stopping"}', True, "")
                idle = pool.idle
                # Lambda sends no call to an environment that has died at rest.
                while idle and not idle[-1].alive:
                    idle.pop().close()
                worker = idle.pop() if idle else Worker(spec, self._directory, self._environment)
                pool.busy.add(worker)
            outcome = worker.invoke(payload)
            with self._lock:
                pool.busy.remove(worker)
                if worker.alive and not self._is_closing:
                    pool.idle.append(worker)
                else:
                    worker.close()
        if not self._is_closing:
            report_failures(spec, outcome)
        return outcome

    def close(self) -> None:
        """Kill every worker and wait until the last has ended; running calls end as failed."""
        with self._lock:
            self._is_closing = True
            for pool in self._pools.values():
                for worker in pool.busy:
                    worker.kill()  # its call ends, and `invoke` closes it
                for worker in pool.idle:
                    worker.close()


def report_failures(spec: FunctionSpec, outcome: CallOutcome) -> None:
    """Print error lines of a function, and how a failed call ended, to stderr."""
    said = outcome.logs.splitlines()
    lines = [one for one in said if one.startswith("[ERROR]") or '"level":"ERROR"' in one]
    if outcome.failed:
        error = json.loads(outcome.payload)
        lines.append(f"failed: {error['errorType']}: {error['errorMessage']}")
    for line in lines:
        print(f"{spec.name}: {line}", file=sys.stderr, flush=True)  # noqa: T201


def link_runtime(directory: Path) -> None:
    """Link the runtime interface client, and nothing else of this environment, below a folder."""
    target = directory / RUNTIME
    target.mkdir()
    for name in _RUNTIME_DISTRIBUTIONS:
        found = distribution(name)
        for root in {file.parts[0] for file in found.files or ()} - {".."}:
            (target / root).symlink_to(Path(str(found.locate_file(root))))


def spec_of(function: Any) -> FunctionSpec:
    """The spec of moto's ``LambdaFunction``."""
    backend = lambda_backends[ACCOUNT][REGION]
    versions = [backend.layers_versions_by_arn(layer["Arn"]) for layer in function.layers]
    environment = {str(key): str(value) for key, value in function.environment_vars.items()}
    return FunctionSpec(
        name=function.function_name,
        arn=function.function_arn,
        handler=function.handler,
        timeout=float(function.timeout),
        memory=int(function.memory_size),
        runtime=str(function.run_time),
        environment=tuple(sorted(environment.items())),
        code=_folder(function),
        layers=tuple(_folder(version) for version in versions),
    )


def _folder(packed: Any) -> Path:
    """Where code or a layer is: what moto takes for its zip is the path of its folder."""
    return Path(os.fsdecode(packed.code_bytes))
