"""PySpark drivers that die, and what becomes of their jobs."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq

from tests.e2e.conftest import ROOT, Deployed
from tests.engines.chaos.driver.deployment import until
from tests.engines.chaos.driver.gate import Gate, How, Point, Seen
from tests.engines.chaos.driver.processes import kill, kill_session, process_at, session
from tests.engines.chaos.driver.program import BATCH_ROWS, ROWS, Client, Task, partition_of, text_of
from tests.engines.chaos.driver.trial import Trial, settle, watched

PROGRAM = "tests.engines.chaos.driver.program"
WAIT_SECONDS = 180
QUIET_SECONDS = 3.0  # a zombie that asks nothing for so long has come to its end
BATCHES = 2
OLD = {f"table/k={number}/old.bin": b"old" for number in range(3)}
LAST_WORDS = {"request.json", "abort request"}


@dataclass(frozen=True)
class Case:
    """A policy: what the driver writes, and which of the old files it replaces."""

    name: str
    mode: str = "append"
    options: Mapping[str, str] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()
    again: bool = False  # another driver comes after the dead one
    stream: bool = False


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
        Case("stream", again=True, stream=True),
    )
}


NATIVE_CASES = {name: case for name, case in CASES.items() if not case.stream}


def check(files: Mapping[str, bytes]) -> None:
    """What is visible is the source, row for row."""
    found = sorted(_rows(files, "text"))
    wanted = [(number, partition_of(number), text_of(number)) for number in range(ROWS)]
    assert len(found) == len(wanted), f"{len(found)} rows instead of {len(wanted)}"
    assert found == wanted


def check_stream(files: Mapping[str, bytes]) -> None:
    """Each row of the stream's source is there once."""
    found = sorted(_rows(files))
    assert found == [(number, number % 2) for number in range(BATCHES * BATCH_ROWS)], found


def _rows(files: Mapping[str, bytes], *more: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for key, body in files.items():
        partition = int(key.split("/k=")[1].split("/")[0])
        # A file object: by a path pyarrow would take a partition column from it.
        columns = pq.read_table(io.BytesIO(body)).to_pydict()
        rows = zip(columns["id"], *(columns[name] for name in more), strict=True)
        found += [(row[0], partition, *row[1:]) for row in rows]
    return found


class Driver:
    """A driver's processes behind a gate; killed, all of them, at the end."""

    def __init__(self, deployed: Deployed, client: Client) -> None:
        self._client = client
        self._stack = ExitStack()
        self.gate = self._stack.enter_context(Gate(deployed.endpoint, self._strike))
        directory = self._stack.enter_context(tempfile.TemporaryDirectory())
        self._log = Path(directory, "log")
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, client],
                env={
                    **os.environ,
                    **deployed.environment,
                    "AWS_ENDPOINT_URL": self.gate.url,
                    "PYSPARK_PYTHON": sys.executable,
                    "PYTHONPATH": path,
                },
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def begin(self, task: Task, point: Point | None) -> None:
        """Wait until it is ready, and tell it what to do."""
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        assert self._process.stdout.readline() == "ready\n", self.log()
        self.gate.point = point
        self._process.stdin.write(task.encode() + "\n")
        self._process.stdin.flush()

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

    def await_jvm(self) -> None:
        """Wait until what its Python has left behind has ended by itself."""
        leader = self._process.pid
        until(lambda: not session(leader), f"processes {session(leader)} to end", WAIT_SECONDS)
        self.gate.settled()

    def await_quiet(self) -> None:
        """Wait until a zombie has said its last word on the job, and has nothing more to ask."""
        if self._client is not Client.WRITE:  # whose JVM knows nothing of the job
            seen = self.gate.requests
            until(lambda: {one.name for one in seen} & LAST_WORDS, "the zombie's word")
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
        kill_session(self._process.pid)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self._process.wait(WAIT_SECONDS)
        self._stack.close()

    def log(self) -> str:
        """The end of what it said."""
        return self._log.read_text()[-4000:]

    def _strike(self, how: How, port: int) -> None:
        leader = self._process.pid
        if how is How.WORKER:
            kill(process_at(port, int(self.gate.url.rsplit(":", 1)[1]), leader))
        elif how in {How.ORPHAN, How.ZOMBIE}:
            kill(leader)
        else:
            kill_session(leader)


class Drivers:
    """Gives out drivers, and has the next one start up meanwhile."""

    def __init__(self, deployed: Deployed, count: int, client: Client = Client.WRITE) -> None:
        self._deployed = deployed
        self.client = client
        self._left = count
        self._spare: Driver | None = None
        self._given: list[Driver] = []
        self._prepare()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_given()
        if self._spare is not None:
            self._spare.close()

    def begin(self, task: Task, point: Point | None) -> Driver:
        """The next driver, at work."""
        driver = self._spare or Driver(self._deployed, self.client)
        self._spare = None
        self._given.append(driver)
        driver.begin(task, point)
        self._prepare()
        return driver

    def close_given(self) -> None:
        """Nothing is left of those that were given out."""
        while self._given:
            self._given.pop().close()

    def _prepare(self) -> None:
        if self._left > 0:
            self._left -= 1
            self._spare = Driver(self._deployed, self.client)


@dataclass
class Stage:
    """What all trials share."""

    deployed: Deployed
    drivers: Drivers
    work: Path

    def trial(self, case: Case, what: str) -> Trial:
        """A new destination with old files, read all the time."""
        name = f"{self.drivers.client}-{case.name}-{what}".replace(" ", "-")
        commits = BATCHES if case.stream else (1 if case.again else None)
        judge: Callable[[Mapping[str, bytes]], None] = check_stream if case.stream else check
        return Trial(self.deployed, name, judge, OLD, frozenset(case.replaced), commits)

    def begin(self, trial: Trial, case: Case, point: Point | None) -> Driver:
        """A driver at work there."""
        directory = self.work / trial.name if case.stream else None
        if directory is not None and not directory.exists():
            _fill(directory / "in")
        task = Task(
            trial.uri,
            case.mode,
            case.options,
            str(directory or ""),
            survives=point is not None and point.how is How.ZOMBIE,
        )
        driver = self.drivers.begin(task, point)
        trial.gates.append(driver.gate)
        return driver

    def record(self, case: Case) -> list[Seen]:
        """The requests of a driver that nothing happens to."""
        trial = self.trial(case, "in peace")
        with self._ending(trial):
            driver = self.begin(trial, case, None)
            driver.end()
        return list(driver.gate.requests)

    def kill_at(self, case: Case, point: Point) -> Trial:
        """One dies, others come after it if the case says so; then the sweep, and the verdict."""
        trial = self.trial(case, str(point))
        with self._ending(trial):
            driver = self.begin(trial, case, point)
            driver.await_strike()
            if point.how is How.WORKER:
                driver.end()
            elif point.how is How.ORPHAN:
                driver.await_jvm()
            elif point.how is not How.ZOMBIE:
                driver.kill()
            if case.again:
                self.begin(trial, case, None).end()
            settle(trial)
            driver.gate.release()
            if point.how is How.ZOMBIE:
                driver.await_quiet()
                driver.kill()
        return trial

    @contextmanager
    def _ending(self, trial: Trial) -> Iterator[None]:
        try:
            with watched(trial):
                yield
                settle(trial)
            trial.verdict()
        finally:
            self.drivers.close_given()


def _fill(directory: Path) -> None:
    """A file for each micro-batch; Spark takes the older one first."""
    directory.mkdir(parents=True)
    for batch in range(BATCHES):
        ids = range(batch * BATCH_ROWS, (batch + 1) * BATCH_ROWS)
        path = directory / f"{batch:03d}.json"
        path.write_text("\n".join(json.dumps({"id": n, "k": n % 2}) for n in ids))
        os.utime(path, (1_700_000_000 + batch,) * 2)
