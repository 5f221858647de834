"""A lake, its writers and its pipeline, all in memory.

Hadoop's words and ours: setting up a job is `open_job`, setting up a task `Job.task`, committing a
task `Task.finish`, committing the job `Job.commit`, during which the state machine runs.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from s3commit.core.formats.layout import JobDirectory, parse_directory
from s3commit.core.model.job import CountedAttempt
from s3commit.core.ports.bundle import Ports
from s3commit.writer.environment import SystemEnvironment
from s3commit.writer.job import Job, open_job
from s3commit.writer.settings import PartSizes
from tests.fakes.execution import run_execution
from tests.fakes.faults import FaultPlan
from tests.fakes.memory import ManualClock, MemoryLedger, MemoryObjectStore
from tests.writer.support import BUCKET, ScriptedEnvironment, SmallSettings

OUT = "out/"


# A file of 40 bytes has three parts.
SETTINGS = SmallSettings(PartSizes(first=16, step=0), threads=1)


@dataclass
class Lake:
    """A bucket; ``tasks`` strikes at the calls of writers, ``steps`` at those of the pipeline."""

    tasks: FaultPlan = field(default_factory=FaultPlan)
    steps: FaultPlan = field(default_factory=FaultPlan)

    def __post_init__(self) -> None:
        self.clock = ManualClock(step=0.001)
        self.store = MemoryObjectStore(BUCKET, clock=self.clock, min_part_bytes=1)
        self.ledger = MemoryLedger()
        self.ports = Ports(self.steps.wrap(self.store), self.steps.wrap(self.ledger), self.clock)
        self.environment = ScriptedEnvironment(on_sleep=lambda _: self.serve())
        self.executions = 0

    def job(self, prefix: str = OUT, **options: Any) -> Job:
        """Set up a job; its commit and abort are served by this lake's pipeline."""
        return open_job(
            f"s3://{BUCKET}/{prefix}",
            store=self.tasks.wrap(self.store),
            environment=self.environment,
            settings=SETTINGS,
            **options,
        )

    def sent(self, job: Job) -> Job:
        """The job as another process has it."""
        copy: Job = pickle.loads(pickle.dumps(replace(job, environment=SystemEnvironment())))
        copy.environment = self.environment
        copy.connect(self.store)
        return copy

    def serve(self) -> None:
        """Run the state machine for each job that has a request and no result."""
        for key in self.all_keys():
            if key.endswith("/request.json"):
                directory = parse_directory(BUCKET, key)
                if self.store.head(BUCKET, directory.result) is None:
                    self.executions += 1
                    run_execution(self.ports, directory, execution=f"execution-{self.executions}")

    def all_keys(self, prefix: str = "") -> list[str]:
        """Every object's key, hidden ones too."""
        return [listed.key for listed in self.store.list(BUCKET, prefix)]

    def visible(self, prefix: str = OUT) -> dict[str, bytes]:
        """What a reader of the table finds below a prefix."""
        keys = [key for key in self.all_keys(prefix) if "/_" not in key]
        return {key: self.store.get(BUCKET, key, max_bytes=1 << 30).body for key in keys}

    def contents(self, prefix: str = OUT) -> list[bytes]:
        """The visible files' bytes, sorted."""
        return sorted(self.visible(prefix).values())

    def uploads(self, prefix: str = "") -> list[str]:
        """The keys of all pending uploads."""
        return [upload.key for upload in self.store.list_uploads(BUCKET, prefix)]

    def marker(self, prefix: str = OUT) -> dict[str, Any] | None:
        """``_SUCCESS``, or None."""
        if self.store.head(BUCKET, f"{prefix}_SUCCESS") is None:
            return None
        body = self.store.get(BUCKET, f"{prefix}_SUCCESS", max_bytes=1 << 20).body
        found: dict[str, Any] = json.loads(body)
        return found

    def scratch(self, directory: JobDirectory) -> list[str]:
        """What is left of a job's own working objects."""
        kept = {directory.job, directory.request, directory.result}
        return [key for key in self.all_keys(directory.prefix) if key not in kept]

    def put(self, key: str, body: bytes = b"old") -> None:
        """A file that was there before."""
        self.store.put(BUCKET, key, body)


def write(
    job: Job,
    task_id: str = "0",
    files: Mapping[str, bytes] | None = None,
    attempt_id: str | None = None,
) -> CountedAttempt:
    """A task that writes its files (one by default) and commits itself."""
    if files is None:
        files = {f"part-{task_id}.txt": f"of task {task_id}".encode()}
    with job.task(task_id, attempt_id) as task:
        for name, body in files.items():
            with task.open(name) as file:
                file.write(body)
    counted = task.counted
    assert counted is not None
    return counted
