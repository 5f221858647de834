"""PySpark drivers that die, and what becomes of their jobs."""

import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from tests.e2e.conftest import ROOT, Deployed, until
from tests.engines.chaos.driver.deployment import kill, kill_session
from tests.engines.chaos.driver.gate import Gate, How, Point, Seen
from tests.engines.chaos.driver.program import ROWS, Client, Task, partition_of, text_of
from tests.engines.chaos.driver.trial import Trial, settle

PROGRAM = "tests.engines.chaos.driver.program"
WAIT_SECONDS = 600  # a bound for what hangs, on a busy machine too
QUIET_SECONDS = 3.0  # a zombie that asks nothing for so long has come to its end
OLD = {f"table/k={number}/old.bin": b"old" for number in range(3)}
LAST_WORDS = {"_request.json", "abort request"}


@dataclass(frozen=True)
class Case:
    """A policy: what the driver writes, and which of the old files it replaces."""

    name: str
    mode: str = "append"
    options: Mapping[str, str] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()
    again: bool = False  # another driver comes after the dead one


CASES = {
    case.name: case
    for case in (
        Case("append"),
        Case("directory", "overwrite", {"partitionOverwriteMode": "static"}, tuple(OLD)),
        Case(
            "partition",
            "overwrite",
            {"partitionOverwriteMode": "dynamic"},
            ("table/k=0/old.bin", "table/k=1/old.bin"),
        ),
        Case("once", options={"idempotencyKey": "the day"}, again=True),
    )
}


def check(files: Mapping[str, bytes]) -> None:
    """What is visible is the source, row for row."""
    found: list[tuple[int, int, str]] = []
    for key, body in files.items():
        partition = int(key.split("/k=")[1].split("/")[0])
        # A file object: by a path pyarrow would take a partition column from it.
        columns = pq.read_table(io.BytesIO(body)).to_pydict()
        rows = zip(columns["id"], columns["text"], strict=True)
        found += [(number, partition, text) for number, text in rows]
    wanted = [(number, partition_of(number), text_of(number)) for number in range(ROWS)]
    assert len(found) == len(wanted), f"{len(found)} rows instead of {len(wanted)}"
    assert sorted(found) == wanted


class Driver:
    """A driver's processes behind a gate."""

    def __init__(self, deployed: Deployed, client: Client, task: Task, point: Point | None) -> None:
        self._client = client
        self._stack = ExitStack()
        self.gate = self._stack.enter_context(Gate(deployed.endpoint, self._strike, point))
        directory = self._stack.enter_context(tempfile.TemporaryDirectory())
        self._log = Path(directory, "log")
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, client, task.encode()],
                env={
                    **os.environ,
                    **deployed.environment,
                    "AWS_ENDPOINT_URL": self.gate.url,
                    "PYSPARK_PYTHON": sys.executable,
                    "PYTHONPATH": path,
                },
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def end(self) -> None:
        """Wait until it has done all and is gone. It must be well."""
        assert self._process.wait(WAIT_SECONDS) == 0, self.log()

    def await_strike(self) -> None:
        """Wait until it is dead, or stalls, at its point."""
        until(
            lambda: self.gate.struck.is_set() or self._process.poll() == 0,
            f"{self.gate.point}: {self.log()}",
            WAIT_SECONDS,
        )
        assert self.gate.struck.is_set(), f"{self.gate.point} is not on its way"

    def await_quiet(self) -> None:
        """Wait until a zombie has said its last word on the job, and has nothing more to ask."""
        if self._client is not Client.WRITE:  # whose JVM knows nothing of the job
            seen = self.gate.requests
            until(
                lambda: {one.name for one in seen} & LAST_WORDS, "the zombie's word", WAIT_SECONDS
            )
        before, since = -1, time.monotonic()
        while time.monotonic() - since < QUIET_SECONDS:
            count = len(self.gate.requests)
            if count != before:
                before, since = count, time.monotonic()
            time.sleep(0.1)

    def kill(self) -> None:
        """Every process of it."""
        kill_session(self._process.pid)
        self._process.wait(WAIT_SECONDS)
        self.gate.settled()

    def close(self) -> None:
        """Nothing of it is left."""
        self.kill()
        self._stack.close()

    def log(self) -> str:
        """The end of what it said."""
        return self._log.read_text()[-4000:]

    def _strike(self, how: How) -> None:
        if how is How.ZOMBIE:
            kill(self._process.pid)
        else:
            kill_session(self._process.pid)


@dataclass
class Stage:
    """What all trials share."""

    deployed: Deployed
    client: Client

    def record(self, case: Case) -> list[Seen]:
        """The requests of a driver that nothing happens to."""
        with self._trial(case, "in peace") as trial, self._driver(trial, case) as driver:
            driver.end()
        return list(driver.gate.requests)

    def kill_at(self, case: Case, point: Point) -> Trial:
        """One dies, others come after it if the case says so; then the sweep, and the verdict."""
        with self._trial(case, str(point)) as trial, self._driver(trial, case, point) as driver:
            driver.await_strike()
            if point.how is not How.ZOMBIE:
                driver.kill()
            if case.again:
                with self._driver(trial, case) as another:
                    another.end()
            settle(trial)
            driver.gate.release()
            if point.how is How.ZOMBIE:
                driver.await_quiet()
        return trial

    @contextmanager
    def _trial(self, case: Case, what: str) -> Iterator[Trial]:
        """A new destination with old files, judged at the end."""
        name = f"{self.client}-{case.name}-{what}".replace(" ", "-")
        trial = Trial(self.deployed, name, check, OLD, frozenset(case.replaced), case.again)
        yield trial
        settle(trial)
        trial.verdict()

    @contextmanager
    def _driver(self, trial: Trial, case: Case, point: Point | None = None) -> Iterator[Driver]:
        """A driver at work there."""
        survives = point is not None and point.how is How.ZOMBIE
        task = Task(trial.uri, case.mode, case.options, survives)
        with closing(Driver(self.deployed, self.client, task, point)) as driver:
            trial.gates.append(driver.gate)
            yield driver
