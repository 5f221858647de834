"""Runs functions in pools of persistent workers."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from s3commit.local.packages import link_runtime
from s3commit.local.worker import CallOutcome, FunctionSpec, Worker

MAX_WORKERS = max(4, 2 * (os.cpu_count() or 1))
Observer = Callable[[FunctionSpec, CallOutcome], None]


@dataclass(slots=True)
class _Pool:
    """The workers of one function; ``idle`` is a stack, the warmest is on top."""

    idle: list[Worker] = field(default_factory=list)
    busy: set[Worker] = field(default_factory=set)


class Executor:
    """Calls functions in worker processes.

    ``environment`` is given to every worker (endpoint, region, credentials). ``observe`` sees each
    outcome. At most `MAX_WORKERS` processes a function run at a time; further calls wait, which
    in AWS would be more environments. It does not retry.
    """

    def __init__(
        self,
        directory: Path,
        environment: dict[str, str],
        *,
        observe: Observer | None = None,
    ) -> None:
        self._environment = environment
        self._runtime = link_runtime(directory)
        self._observe = observe
        self._pools: dict[FunctionSpec, _Pool] = {}
        self._changed = threading.Condition()
        self._closing = threading.Event()

    def invoke(self, spec: FunctionSpec, payload: bytes) -> CallOutcome:
        """Call the function and wait; a failed call is an `CallOutcome` too."""
        worker = self._take(spec)
        if worker is None:
            return CallOutcome(b'{"errorType": "Runtime.Stopping"}', True, "")
        try:
            outcome = worker.invoke(payload)
        finally:
            self._give_back(worker)
        if self._observe and not self._closing.is_set():
            self._observe(spec, outcome)
        return outcome

    def workers(self) -> list[Worker]:
        """The processes that live now, those at work among them."""
        with self._changed:
            pools = list(self._pools.values())
            return [worker for pool in pools for worker in (*pool.busy, *pool.idle) if worker.alive]

    def warm(self, specs: Iterable[FunctionSpec]) -> None:
        """Start a worker for each function that has none, two at a time, and wait for them."""
        with ThreadPoolExecutor(2, thread_name_prefix="warm") as starters:
            list(starters.map(self._warm_one, specs))

    def _warm_one(self, spec: FunctionSpec) -> None:
        with self._changed:
            pool = self._pools.setdefault(spec, _Pool())
            if self._closing.is_set() or pool.idle or pool.busy:
                return
            worker = Worker(spec, self._runtime, self._environment)
            pool.busy.add(worker)
        worker.wait_ready()
        self._give_back(worker)

    def close(self) -> None:
        """Kill every worker and wait until the last has ended; running calls end as failed."""
        if self._closing.is_set():
            return
        self._closing.set()
        with self._changed:
            idle = [worker for pool in self._pools.values() for worker in pool.idle]
            busy = [worker for pool in self._pools.values() for worker in pool.busy]
            self._changed.notify_all()
        for worker in busy:
            worker.kill()  # its call ends, and `invoke` closes it
        for worker in idle:
            worker.close()

    def _take(self, spec: FunctionSpec) -> Worker | None:
        """A worker to call, or None if the runtime stops."""
        with self._changed:
            pool = self._pools.setdefault(spec, _Pool())
            self._changed.wait_for(
                lambda: self._closing.is_set() or pool.idle or len(pool.busy) < MAX_WORKERS
            )
            if self._closing.is_set():
                return None
            while pool.idle and not pool.idle[-1].alive:
                pool.idle.pop().close()
            worker = (
                pool.idle.pop() if pool.idle else Worker(spec, self._runtime, self._environment)
            )
            pool.busy.add(worker)
            return worker

    def _give_back(self, worker: Worker) -> None:
        with self._changed:
            pool = self._pools[worker.spec]
            pool.busy.discard(worker)
            if worker.alive and not self._closing.is_set():
                pool.idle.append(worker)
            else:
                worker.close()
            self._changed.notify_all()


def report_failures(spec: FunctionSpec, outcome: CallOutcome) -> None:
    """Print error lines of a function, and how a failed call ended, to stderr."""
    for line in outcome.logs.splitlines():
        if _is_error(line):
            print(f"{spec.name}: {line}", file=sys.stderr, flush=True)  # noqa: T201
    if outcome.failed:
        try:
            error = json.loads(outcome.payload)
            text = f"{error.get('errorType')}: {error.get('errorMessage')}"
        except (json.JSONDecodeError, AttributeError):
            text = outcome.payload.decode(errors="replace")
        print(f"{spec.name}: failed: {text}", file=sys.stderr, flush=True)  # noqa: T201


def _is_error(line: str) -> bool:
    if line.startswith("{"):
        try:
            return json.loads(line).get("level") in {"ERROR", "CRITICAL"}
        except (json.JSONDecodeError, AttributeError):
            return False
    return line.startswith(("[ERROR]", "[CRITICAL]"))
