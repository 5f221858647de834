"""The seeded adversary: what it does to whom is drawn from the seed, when it happens is reality's.

Its numbers come from streams of their own, one a function and one a kind of deed, so that the n-th
request of a function meets the same fate in each run of a seed. Which request that is depends on
threads, processes and the machine: a run is not replayed, only its pressure is.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from s3commit.core.documents.ticket import execution_input
from s3commit.local import ACCOUNT, REGION
from s3commit.local.moto_patches import Patcher
from tests.engines.chaos.wire import Call, Fault, workers_of
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
DEEDS = {"stop": 130, "twin": 200}


class Adversary:
    """Says what happens to requests and messages, and acts by itself while it is awake."""

    def __init__(self, seed: int, trace: Callable[[str, str], None]) -> None:
        self._seed = seed
        self._trace = trace
        self._awake = threading.Event()
        self._lock = threading.RLock()
        self._streams: dict[str, Random] = {}
        self._left: dict[str, int] = {}
        self._calls: Counter[str] = Counter()  # of workers, by their functions
        self.done: Counter[str] = Counter()

    def begin(self, runtime: Any, jobs: Callable[[], list[Job]]) -> None:
        """Be awake from now on; ``jobs`` gives those that were requested."""
        self._runtime, self._jobs = runtime, jobs
        self._machines = runtime.client("stepfunctions")
        self._awake.set()
        self._thread = threading.Thread(target=self._prowl, name="adversary", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._awake.is_set():
            self._awake.clear()
            self._thread.join()

    def strikes(self, deed: str, share: float, what: str) -> bool:
        """The next of its kind is hit; then it is noted."""
        with self._lock:
            hit = self._awake.is_set() and self._draw(deed).random() < share
        if hit:
            self._does(deed, what)
        return hit

    def fault(self, call: Call) -> Fault | None:
        """What happens to a request, if anything."""
        if not self._awake.is_set():
            return None
        with self._lock:
            fault = self._drawn(call)
        if fault is not None:
            self._does(_named(call, fault), f"{call.who[:12]} {call.operation} {call.key}")
        return fault

    def kill(self, call: Call) -> None:
        """End the worker that sent it."""
        for worker in workers_of(self._runtime.executor):
            if worker.id == call.who:
                worker.kill()

    def _draw(self, stream: str) -> Random:
        """A stream of its own for each use."""
        return self._streams.setdefault(stream, Random(f"{self._seed} {stream}"))

    def _is_due(self, stream: str, now: int, mean: int) -> bool:
        """Whether so many have gone by as lie between two deeds."""
        random = self._draw(stream)
        due = self._left.setdefault(stream, random.randint(1, mean))
        if now >= due:
            self._left[stream] = now + random.randint(mean // 2, mean * 3 // 2)
        return now >= due

    def _does(self, deed: str, what: str) -> None:
        with self._lock:
            self.done[deed] += 1
        self._trace("ADVERSARY", f"{deed}: {what}")

    def _drawn(self, call: Call) -> Fault | None:
        if call.function:
            self._calls[call.function] += 1
            kills = f"kill {call.function}"
            if self._is_due(kills, self._calls[call.function], KILLS[call.function]):
                return Fault("kill", executed=self._draw(kills).random() < 0.5)
        if call.function or call.who == "client":
            random = self._draw(f"errors {call.function}")
            if call.service in {"s3", "dynamodb", "states"} and random.random() < ERRORS:
                kind = random.choice(("500", "503", "reset"))
                # A request that is answered with 'slow down' was not served.
                return Fault(kind, executed=kind != "503" and random.random() < 0.5)
        is_invocation = call.service == "lambda" and "/invocations" in call.operation
        if is_invocation and self._draw("throttle").random() < THROTTLED:
            return Fault("503", executed=False)
        return None

    def _prowl(self) -> None:
        while self._awake.is_set():
            for deed, mean in DEEDS.items():
                if self._is_due(deed, self._calls.total(), mean):
                    getattr(self, f"_{deed}")(self._draw(deed))
            time.sleep(PULSE)

    def _stop(self, random: Random) -> None:
        running = [one for one in executions() if one.status == "RUNNING"]
        if running:
            chosen = random.choice(running)
            self._does("execution stopped", chosen.name)
            self._machines.stop_execution(executionArn=chosen.execution_arn)

    def _twin(self, random: Random) -> None:
        jobs = self._jobs()
        if jobs:
            job = random.choice(jobs)
            self._does("execution started by mistake", job.name)
            self._machines.start_execution(
                stateMachineArn=self._runtime.state_machine_arn,
                name=f"{job.directory.job_id}-mistake-{self._calls.total()}",
                input=json.dumps(execution_input(job.directory)),
            )


def executions() -> list[Any]:
    """Moto's executions of all machines of this process."""
    from moto.stepfunctions.parser.models import stepfunctions_parser_backends

    machines = stepfunctions_parser_backends[ACCOUNT][REGION].state_machines
    return [one for machine in machines for one in list(machine.executions)]


def _named(call: Call, fault: Fault) -> str:
    when = "after" if fault.executed else "before"
    if fault.kind == "kill":
        return f"{call.function} killed {when} a request"
    return f"{call.service} {fault.kind} {when} it was executed"


# What happens to SQS messages on their way: S3's notifications, and the pollers' deletes


LOST, TWICE, LATE, KEPT = 0.10, 0.11, 0.13, 0.05
LATEST = 8  # seconds
VISIBILITY = 4  # seconds; the template's are minutes: a message that failed comes back sooner


def meddle_with_mail(patcher: Patcher, adversary: Adversary) -> None:
    """Lose, repeat and delay messages; let a poller's delete be lost, so that one comes back."""
    from moto.sqs.models import Message, SQSBackend

    def send_message(
        original: Any, self: Any, queue_name: str, message_body: str, **more: Any
    ) -> Any:
        sent = [Message("lost", message_body)]
        for wait in _fate(adversary, message_body):
            sent.append(original(self, queue_name, message_body, **{**more, **wait}))
        return sent[-1]

    def delete_message(original: Any, self: Any, queue_name: str, receipt_handle: str) -> None:
        if not adversary.strikes("message redelivered", KEPT, queue_name[:40]):
            original(self, queue_name, receipt_handle)

    patcher.wrap(SQSBackend, "send_message", send_message)
    patcher.wrap(SQSBackend, "delete_message", delete_message)


def _fate(adversary: Adversary, body: str) -> list[dict[str, int]]:
    """Of each copy that arrives how it is delayed."""
    if adversary.strikes("message lost", LOST, body):
        return []
    copies: list[dict[str, int]] = [{}]
    if adversary.strikes("message twice", TWICE, body):
        copies.append({})
    if adversary.strikes("message late", LATE, body):
        copies[0] = {"delay_seconds": LATEST}
    return copies


def queues() -> list[Any]:
    """Moto's queues of this process, without those that take what was given up."""
    from moto.sqs.models import sqs_backends

    return [one for one in sqs_backends[ACCOUNT][REGION].queues.values() if one.redrive_policy]


def hurry() -> None:
    """Let messages that nobody deleted come back in seconds."""
    for queue in queues():
        queue.visibility_timeout = VISIBILITY


def waiting() -> int:
    """Messages that are still to be handled."""
    return sum(len(queue._messages) for queue in queues())
