"""The embedded runtime in this process, PySpark drivers that die at it, and who kills them."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from s3commit.local.runtime import LocalRuntime
from s3commit.local.synth import synthesize
from tests.engines.chaos.driver.gate import REQUEST, Gate, How, Point
from tests.engines.chaos.driver.program import Client, Task
from tests.engines.chaos.driver.trial import WAIT_SECONDS, Case, Trial
from tests.engines.chaos.wire import Call, Fault, Wire
from tests.engines.chaos.world import PROJECT
from tests.engines.sim.clients import BUCKET
from tests.servers import until

PROGRAM = "tests.engines.chaos.driver.program"
LAST_WORDS = {REQUEST, "abort request"}
QUIET_SECONDS = 3.0  # a zombie that asks nothing for so long has come to its end


class Stage:
    """What all trials of a client share. The access key of each driver is a name of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._gates: dict[str, Gate] = {}
        self._wire = Wire(self._fault, lambda call: self._gates[call.who].kill(call), self._notice)

    @contextmanager
    def up(self) -> Iterator[None]:
        """The runtime; this process's AWS configuration leads to it."""
        assembly = synthesize(PROJECT, PROJECT / ".s3commit" / "assembly")
        with (
            LocalRuntime(assembly, bucket=BUCKET, middleware=self._wire.around) as self._runtime,
            pytest.MonkeyPatch.context() as patch,
        ):
            for name, value in self._runtime.names().items():
                patch.setenv(name, value)
            yield

    def record(self, case: Case) -> list[tuple[str, int]]:
        """The requests of a driver that nothing happens to."""
        with self._trial(case, "in peace") as trial, self._driver(trial) as (process, gate, log):
            assert process.wait(WAIT_SECONDS) == 0, log.read_text()[-4000:]
        return gate.requests

    def kill_at(self, case: Case, point: Point) -> None:
        """One dies, another comes after it if the case says so; then the sweep, and the verdict."""
        with (
            self._trial(case, str(point)) as trial,
            self._driver(trial, point) as (process, gate, _),
        ):
            until(lambda: gate.struck.is_set() or process.poll() == 0, str(point), WAIT_SECONDS)
            assert gate.struck.is_set(), f"{point} is not on its way"
            if point.how is not How.ZOMBIE:
                process.wait(WAIT_SECONDS)
            if case.again:
                with self._driver(trial) as (another, _, said):
                    assert another.wait(WAIT_SECONDS) == 0, said.read_text()[-4000:]
            trial.settle()
            gate.release()
            if point.how is How.ZOMBIE:
                self._await_quiet(gate)
                if point.name.startswith("part"):  # it was at work after the sweep
                    assert (point.name, 404) in gate.answers

    @contextmanager
    def _trial(self, case: Case, what: str) -> Iterator[Trial]:
        """A new table, judged at the end."""
        name = f"{self._client}-{case.name}-{what}".replace(" ", "-")
        trial = Trial(self._runtime, name, case)
        yield trial
        trial.settle()
        trial.verdict()

    @contextmanager
    def _driver(
        self, trial: Trial, point: Point | None = None
    ) -> Iterator[tuple[subprocess.Popen[bytes], Gate, Path]]:
        """A driver at work there; at the end nothing of it is left."""
        who = f"driver{len(self._gates)}"
        gate = self._gates[who] = Gate(point, lambda how: kill(process.pid, how))
        trial.gates.append(gate)
        survives = point is not None and point.how is How.ZOMBIE
        task = Task(trial.table.uri, trial.case.mode, trial.case.options, survives)
        path = os.pathsep.join(filter(None, (str(PROJECT), os.environ.get("PYTHONPATH"))))
        own = {"AWS_ACCESS_KEY_ID": who, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path}
        with tempfile.TemporaryDirectory() as directory:
            log = Path(directory, "log")
            with log.open("w") as out:
                process = subprocess.Popen(
                    [sys.executable, "-m", PROGRAM, self._client, task.encode()],
                    env={**os.environ, **own},
                    cwd=PROJECT,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
            try:
                yield process, gate, log
            finally:
                kill(process.pid, How.AFTER)
                process.wait(WAIT_SECONDS)

    def _await_quiet(self, gate: Gate) -> None:
        """Wait until a zombie has said its last word on the job, and has nothing more to ask."""
        if self._client is not Client.WRITE:  # whose JVM knows nothing of the job
            seen = gate.requests
            until(lambda: {name for name, _ in seen} & LAST_WORDS, "its last word", WAIT_SECONDS)
        while time.monotonic() - gate.asked_at < QUIET_SECONDS:
            time.sleep(0.1)

    def _fault(self, call: Call) -> Fault | None:
        return self._gates[call.who].fault(call) if call.who in self._gates else None

    def _notice(self, call: Call, status: int) -> None:
        if call.who in self._gates:
            self._gates[call.who].notice(call, status)


def kill(leader: int, how: How) -> None:
    """Kill the leader of a session, or all of it as a machine that goes down does."""
    if how is How.ZOMBIE:
        os.kill(leader, signal.SIGKILL)
    else:
        signalled(leader, signal.SIGSTOP)  # first all stop: none sees another one die
        until(lambda: not signalled(leader, signal.SIGKILL))


def signalled(leader: int, number: int) -> bool:
    """Send the signal to all of a session; whether there was one."""
    found = session(leader)
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return bool(found)


def session(leader: int) -> list[int]:
    """The living processes of the session that ``leader`` began, it may be dead itself.

    Spark's Python workers have a process group of their own, and lose their parent with the JVM;
    they stay in the session. Fields of ``/proc/<pid>/stat``: proc(5).
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found
