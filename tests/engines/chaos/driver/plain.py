"""The plain Python client, in a process that is killed at each of its requests."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import s3commit
from s3commit.core.formats.file_names import owner_of
from s3commit.core.model.errors import S3CommitError
from s3commit.writer.sizes import MIN_PART_BYTES, PartSizes, UploadSettings
from tests.e2e.conftest import Deployed
from tests.engines.chaos.driver.gate import HOLDS, Gate, Point, Seen
from tests.engines.chaos.driver.processes import kill
from tests.engines.chaos.driver.trial import Trial, Watch, settle

WAIT_SECONDS = 120
BIG = bytes(range(256)) * (MIN_PART_BYTES // 256) + b"and one more part"
WORK: Mapping[str, Mapping[str, bytes]] = {
    "0": {"k=0/big.bin": BIG, "k=1/a.bin": b"one"},
    "1": {"k=0/b.bin": b"two"},
}
OLD = {f"table/k={number}/old.bin": b"old" for number in range(3)}
GONE = 3  # the exit code of a client whose job came to nothing


@dataclass(frozen=True)
class Case:
    """A policy: the options of the job, and which of the old files it replaces."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()
    again: bool = False  # another client comes after the dead one, with the same key


CASES = {
    case.name: case
    for case in (
        Case("append"),
        Case("directory", {"conflict": "replace"}, tuple(OLD)),
        Case(
            "partition",
            {"conflict": "replace", "scope": "partition", "partition_by": ["k"]},
            ("table/k=0/old.bin", "table/k=1/old.bin"),
        ),
        Case("once", {"idempotency_key": "the day"}, again=True),
        Case("exact", {"names": "exact"}),
    )
}


def write(environment: Mapping[str, str], destination: str, options: Mapping[str, Any]) -> None:
    """The client's program."""
    os.environ.update(environment)
    settings = UploadSettings(parts=PartSizes(first=MIN_PART_BYTES), threads=1)
    try:
        with s3commit.open_job(destination, settings=settings, **options) as job:
            counted = []
            for name, files in WORK.items():
                with job.task(name) as task:
                    for path, body in files.items():
                        with task.open(path) as file:
                            file.write(body)
                counted.append(task.counted)
            job.commit(counted, timeout=WAIT_SECONDS)
    except S3CommitError:
        sys.exit(GONE)


def check(files: Mapping[str, bytes]) -> None:
    """Every file of every task is there, byte for byte, and nothing else."""
    found = {}
    for key, body in files.items():
        owner = owner_of(key)
        found[key.replace(f"-{owner}", "") if owner else key] = body
    wanted = {f"table/{path}": body for task in WORK.values() for path, body in task.items()}
    assert found == wanted, f"{sorted(found)} instead of {sorted(wanted)}"


@dataclass
class Client:
    """A process behind a gate, or what is left of it."""

    process: Any
    gate: Gate


class Clients:
    """Starts clients at trials of one case, in a pool of gates that close at the end."""

    def __init__(self, deployed: Deployed, stack: ExitStack) -> None:
        self.deployed = deployed
        self._stack = stack
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__])

    def start(self, trial: Trial, case: Case, point: Point | None) -> Client:
        """A client that runs until the point is reached, or to its end."""
        started: Future[int] = Future()
        gate = self._stack.enter_context(
            Gate(self.deployed.endpoint, lambda *_: kill(started.result(WAIT_SECONDS)))
        )
        gate.point = point
        trial.gates.append(gate)
        options = dict(case.options)
        environment = {**self.deployed.environment, "AWS_ENDPOINT_URL": gate.url}
        process = self._context.Process(target=write, args=(environment, trial.uri, options))
        process.start()
        started.set_result(process.pid or 0)
        return Client(process, gate)


def ended(client: Client) -> int:
    """Wait for the client's end; its exit code."""
    client.process.join(WAIT_SECONDS)
    assert client.process.exitcode is not None, "the client does not end"
    return int(client.process.exitcode)


def trial_of(deployed: Deployed, watch: Watch, case: Case, what: str) -> Trial:
    """A new destination with old files, read all the time."""
    name = f"plain-{case.name}-{what}".replace(" ", "-")
    trial = Trial(
        deployed,
        name,
        check,
        OLD,
        frozenset(case.replaced),
        commits=1 if case.again else None,
        exact=case.options.get("names") == "exact",
    )
    watch.add(trial)
    return trial


def record(deployed: Deployed, watch: Watch, case: Case) -> list[Seen]:
    """The requests of a client whom nothing happens to."""
    trial = trial_of(deployed, watch, case, "in peace")
    with ExitStack() as stack:
        client = Clients(deployed, stack).start(trial, case, None)
        assert ended(client) == 0
        settle(deployed, [trial])
        watch.remove(trial)
        trial.verdict()
        return list(client.gate.requests)


def kill_at(deployed: Deployed, watch: Watch, chosen: Sequence[tuple[Case, Point]]) -> None:
    """A client dies at each of the points, all at once; then the sweep comes; then the verdict."""
    with ExitStack() as stack:
        clients = Clients(deployed, stack)
        stack.callback(watch.clear)
        struck: list[tuple[Trial, Point, Client]] = []
        for case, point in chosen:
            trial = trial_of(deployed, watch, case, str(point))
            client = clients.start(trial, case, point)
            struck.append((trial, point, client))
            _await_strike(trial, point, client)
            if case.again:
                assert ended(clients.start(trial, case, None)) == 0, trial.name
        trials = [trial for trial, _, _ in struck]
        settle(deployed, trials)
        for _, point, client in struck:
            client.gate.release()
            if point.how in HOLDS:
                assert ended(client) in {0, GONE}
        settle(deployed, trials)
        for trial in trials:
            trial.verdict()


def _await_strike(trial: Trial, point: Point, client: Client) -> None:
    assert client.gate.struck.wait(WAIT_SECONDS), f"{trial.name}: not reached"
    if point.how not in HOLDS:
        ended(client)
        client.gate.settled()
