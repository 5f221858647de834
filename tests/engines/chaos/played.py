"""What a client did and which answer it got, for the judge."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from s3commit.core.formats.layout import JobDirectory, is_data, parse_directory, partition_of
from s3commit.core.model.job import Conflict, Scope
from tests.engines.chaos.plans import Plan


@dataclass
class Played:
    """A job of a plan. ``files`` are the bodies of the counted attempts by key."""

    plan: Plan
    directory: JobDirectory
    files: dict[str, bytes] = field(default_factory=dict)
    written: dict[str, set[bytes]] = field(default_factory=dict)
    uncounted: set[str] = field(default_factory=set)
    asked: str = ""
    answer: str = "nothing"
    code: str = ""
    done: bool = False

    @property
    def job_id(self) -> str:
        """Its id."""
        return self.directory.job_id

    @property
    def name(self) -> str:
        """Its plan's name."""
        return self.plan.name

    def before(self, table: dict[str, bytes]) -> set[str]:
        """The keys that its policy is about, if ``table`` is what is there."""
        root = self.directory.destination.prefix
        here = {key for key in table if key.startswith(root) and is_data(key[len(root) :])}
        if self.plan.scope is Scope.DIRECTORY:
            return here - self.files.keys()
        return {key for key in here if key.startswith(tuple(self.partitions))} - self.files.keys()

    @property
    def partitions(self) -> set[str]:
        """The prefixes of the partitions that it writes."""
        root = self.directory.destination.prefix
        return {root + partition_of(key[len(root) :]) for key in self.files}

    @property
    def claimed(self) -> set[str]:
        """The prefixes that its policy is about."""
        if self.plan.conflict is not Conflict.APPEND and self.plan.scope is Scope.PARTITION:
            return self.partitions
        return {self.plan.prefix}

    @property
    def alone(self) -> bool:
        """It needs all of its destination for itself."""
        return self.plan.conflict is not Conflict.APPEND and self.plan.scope is Scope.DIRECTORY


class Register:
    """All jobs that were begun, and what else lies in the bucket; thread-safe."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.foreign: dict[str, bytes] = {}
        self.foreign_uploads: dict[str, str] = {}
        self._lock = threading.Lock()
        self._jobs: dict[str, Played] = {}

    def add(self, job: Played) -> None:
        """From before its first request on."""
        with self._lock:
            self._jobs[job.job_id] = job

    @property
    def jobs(self) -> list[Played]:
        """In the order in which they began."""
        with self._lock:
            return list(self._jobs.values())

    def get(self, job_id: str) -> Played | None:
        """The job, if it is one of the run."""
        return self._jobs.get(job_id)

    def owner(self, key: str, body: bytes) -> Played | None:
        """Whose file that is; bodies name their job."""
        job_id = body[:36].decode(errors="replace")
        job = self._jobs.get(job_id)
        return job if job is not None and body in job.written.get(key, set()) else None

    def named(self, key: str) -> str:
        """The key, with the job's name for its id."""
        for job in self.jobs:
            key = key.replace(job.job_id, job.name)
        return key

    def job_of(self, key: str) -> Played | None:
        """The job in whose directory the key lies, or whose id it carries."""
        try:
            return self.get(parse_directory(self.bucket, key).job_id)
        except Exception:
            for job in self.jobs:
                if job.job_id in key:
                    return job
            return None
