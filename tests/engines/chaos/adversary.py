"""The seeded adversary: what it does to whom is drawn from the seed, when it happens is reality's.

Its numbers come from streams of their own, one a function and one a kind of deed, so that the n-th
request of a function meets the same fate in each run of a seed. Which request that is depends on
threads, processes and the machine: a run is not replayed, only its pressure is.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from s3commit.core.formats.ticket import execution_input
from tests.engines.chaos.wire import Call, Fault
from tests.engines.sim.model import Job

# How many requests of a function are let through, on average, between two kills of a worker.
KILLS: dict[str, int] = {
    "ingest": 120,
    "dispatch": 20,
    "decide": 400,
    "complete": 45,
    "end": 80,
    "sweep": 200,
}
ERRORS = 0.02  # of the requests of workers and clients
THROTTLED = 0.01  # of the state machine's calls of functions
PULSE = 0.1  # seconds between two looks around
# How many requests of workers go by, on average, between two deeds of a kind.
DEEDS = {"kill": 400, "stop": 130, "twin": 200}


class Adversary:
    """Says what happens to requests and messages, and acts by itself while it is awake."""

    def __init__(self, seed: int, trace: Callable[[str, str], None]) -> None:
        self._seed = seed
        self._trace = trace
        self._awake = threading.Event()
        self._lock = threading.Lock()
        self._streams: dict[str, Random] = {}
        self._left: dict[str, int] = {}
        self._mistakes = 0
        self.done: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        self._thread: threading.Thread | None = None
        self.runtime: Any = None
        self._machines: Any = None
        self._jobs: Callable[[], list[Job]] = list

    def begin(self, runtime: Any, jobs: Callable[[], list[Job]]) -> None:
        """Be awake from now on; ``jobs`` gives those that were requested."""
        self.runtime, self._jobs = runtime, jobs
        self._machines = runtime.client("stepfunctions")
        self._awake.set()
        self._thread = threading.Thread(target=self._prowl, name="adversary", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Do nothing any more."""
        self._awake.clear()
        if self._thread is not None:
            self._thread.join()

    def draw(self, stream: str) -> Random:
        """A stream of its own for each use. To be used under the lock, or in one thread."""
        return self._streams.setdefault(stream, Random(f"{self._seed} {stream}"))

    def does(self, deed: str, what: str) -> None:
        """Note a deed."""
        with self._lock:
            self.done[deed] += 1
        self._trace("ADVERSARY", f"{deed}: {what}")

    def strikes(self, stream: str, share: float) -> bool:
        """The next of its kind is hit."""
        if not self._awake.is_set():
            return False
        with self._lock:
            return self.draw(stream).random() < share

    def pick(self, stream: str, low: int, high: int) -> int:
        """A number of a stream."""
        with self._lock:
            return self.draw(stream).randint(low, high)

    def fault(self, call: Call) -> Fault | None:
        """What happens to a request, if anything."""
        if not self._awake.is_set():
            return None
        with self._lock:
            if call.function:
                self.met[call.function] += 1
            fault = self._drawn(call)
            if fault is not None:
                self.done[_named(call, fault)] += 1
        if fault is not None:
            what = f"{call.who[:12]} {call.operation} {call.key}"
            self._trace("ADVERSARY", f"{_named(call, fault)}: {what}")
        return fault

    def _drawn(self, call: Call) -> Fault | None:
        if call.function:
            random = self.draw(f"kill {call.function}")
            mean = KILLS[call.function]
            left = self._left.setdefault(call.function, random.randint(1, mean)) - 1
            self._left[call.function] = left
            if left <= 0:
                self._left[call.function] = random.randint(mean // 2, mean * 3 // 2)
                return Fault("kill", executed=random.random() < 0.5)
        if call.function or call.who == "client":
            random = self.draw(f"errors {call.function}")
            if call.service in {"s3", "dynamodb", "states"} and random.random() < ERRORS:
                kind = random.choice(("500", "503", "reset"))
                # A request that is answered with 'slow down' was not served.
                return Fault(kind, executed=kind != "503" and random.random() < 0.5)
        if call.service == "lambda" and "/invocations" in call.operation:
            random = self.draw("throttle")
            if random.random() < THROTTLED:
                return Fault("503", executed=False)
        return None

    def kill(self, call: Call) -> None:
        """End the worker that sent it."""
        for worker in self.runtime.workers():
            if worker.id == call.who:
                worker.kill()

    def _prowl(self) -> None:
        while self._awake.is_set():
            for deed, mean in DEEDS.items():
                random = self.draw(deed)
                due = self._left.setdefault(deed, random.randint(1, mean))
                if self.met.total() >= due:
                    self._left[deed] = due + random.randint(mean // 2, mean * 3 // 2)
                    getattr(self, f"_{deed}")(random)
            time.sleep(PULSE)

    def _kill(self, random: Random) -> None:
        workers = self.runtime.workers()
        if workers:
            worker = random.choice(workers)
            self.does("kill at any moment", f"{worker.spec.handler} {worker.id[:12]}")
            worker.kill()

    def _stop(self, random: Random) -> None:
        running = [one for one in executions() if one.status == "RUNNING"]
        if running:
            chosen = random.choice(running)
            self.does("execution stopped", chosen.name)
            self._machines.stop_execution(executionArn=chosen.execution_arn)

    def _twin(self, random: Random) -> None:
        jobs = self._jobs()
        if jobs:
            job = random.choice(jobs)
            self._mistakes += 1
            self.does("execution started by mistake", job.name)
            self._machines.start_execution(
                stateMachineArn=self.runtime.state_machine_arn,
                name=f"{job.directory.job_id}-mistake-{self._mistakes}",
                input=json.dumps(execution_input(job.directory)),
            )


def executions() -> list[Any]:
    """Moto's executions of all machines of this process."""
    from moto.stepfunctions.parser.models import stepfunctions_parser_backends

    from s3commit.local.server import ACCOUNT, REGION

    machines = stepfunctions_parser_backends[ACCOUNT][REGION].state_machines
    return [one for machine in machines for one in list(machine.executions)]


def _named(call: Call, fault: Fault) -> str:
    when = "after" if fault.executed else "before"
    if fault.kind == "kill":
        return f"{call.function} killed {when} a request"
    kind = {"500": "500", "503": "503 or throttled", "reset": "connection reset"}[fault.kind]
    service = {"s3": "S3", "dynamodb": "DynamoDB", "states": "Step Functions"}.get(
        call.service, "Lambda"
    )
    return f"{service} {kind} {when} it was executed"
