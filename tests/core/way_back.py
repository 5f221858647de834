"""Jobs at a table, undos of them, and what a replay of those that stand gives."""

from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from s3commit.core.documents.commit_manifest import CommitHeader, CommittedFile, commit_lines
from s3commit.core.formats.layout import JobDirectory, partition_of
from s3commit.core.model.destination import Conflict, Scope
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.limits import S3_CLOCKS
from s3commit.core.model.moments import shifted
from s3commit.core.model.outcome import Outcome
from s3commit.core.undo.job import plan_undo
from s3commit.writer.commit_result import CommitResult
from s3commit.writer.options import make_options
from s3commit.writer.undo import carry_out
from tests.core.world import World, job_directory
from tests.writer.support import ScriptedEnvironment

Content = set[tuple[str, bytes]]  # a key's directory, and the bytes of a file


PARTITIONS: Final = ("dt=1/", "dt=2/")
OPTIONS: Final = make_options("s3://lake/sales/", commit_timeout=60)


@dataclass
class Table:
    """Jobs at one table, one after the other, and what a replay of those that stand gives."""

    world: World = field(default_factory=lambda: World(versioned=True))
    jobs: list[tuple[JobDirectory, Conflict, Scope, Content]] = field(default_factory=list)
    keys: dict[JobDirectory, str] = field(default_factory=dict)
    undone: dict[JobDirectory, JobDirectory] = field(default_factory=dict)  # by which job
    pace: int = 2 * S3_CLOCKS  # seconds from one job to the next, which S3's clocks tell apart
    environment: ScriptedEnvironment = field(init=False)

    def __post_init__(self) -> None:
        self.environment = ScriptedEnvironment(lambda _: self.pipeline())

    def pipeline(self, but: JobDirectory | None = None) -> None:
        """What the pipeline does for the jobs that are asked for."""
        for key in self.world.all_keys("sales/"):
            if key.endswith("_request.json"):
                place, _, rest = key.partition("__magic_job-")
                directory = job_directory(rest.partition("/")[0], place)
                if directory != but and not self.world.store.head("lake", directory.result):
                    self.world.run(directory)

    def write(
        self,
        *partitions: str,
        conflict: Conflict = Conflict.APPEND,
        scope: Scope = Scope.DIRECTORY,
        place: str = "sales/",
        key: str | None = None,
    ) -> JobDirectory:
        """A job that writes a file to each partition, unless a job with its key stands."""
        self.world.clock.advance(self.pace)
        directory = job_directory(self.environment.new_id(), place)
        number = len(self.jobs)
        files = {
            f"{one}part-0-{directory.job_id}.c000.csv": f"{number} {place}{one}".encode()
            for one in partitions
        }
        self.world.open(directory, conflict=conflict, scope=scope, idempotency_key=key)
        attempts = [self.world.attempt(directory, "t", files=files)] if files else []
        self.world.request(directory, *attempts)
        self.world.run(directory)
        same = [
            job for job, one in self.keys.items() if one == key and job.destination.prefix == place
        ]
        if any(map(self.stands, same)):
            assert self.world.ended(directory)[1] in {"ALREADY_COMMITTED", "KEY_TAKEN"}
            return directory
        assert self.world.result(directory).outcome is Outcome.COMMITTED
        if key is not None:
            self.keys[directory] = key
        content = {(place + partition_of(name), body) for name, body in files.items()}
        self.jobs.append((directory, conflict, scope, content))
        return directory

    def undo(self, job: JobDirectory, *, leave_removed: bool = False) -> CommitResult:
        self.world.clock.advance(self.pace)
        ports = self.world.unplanned
        planned = plan_undo(ports, job, leave_removed=leave_removed)
        result = carry_out(ports, planned, OPTIONS, self.environment)
        self.undone[job] = JobDirectory(job.destination, result.job_id)
        return result

    def stands(self, job: JobDirectory) -> bool:
        return job not in self.undone or not self.stands(self.undone[job])

    def replayed(self) -> Content:
        found: Content = set()
        for directory, conflict, scope, content in self.jobs:
            if not self.stands(directory):
                continue
            place = directory.destination.prefix
            if conflict is Conflict.REPLACE:
                reached = {at for at, _ in content} if scope is Scope.PARTITION else {place}
                found -= {one for one in found if one[0].startswith(tuple(reached) or "/")}
            found |= content
        return found

    def visible(self) -> Content:
        return {(partition_of(key), body) for key, body in self.world.visible().items()}


REPLACE: Final[dict[str, Any]] = {"conflict": Conflict.REPLACE}


PARTITION: Final[dict[str, Any]] = {**REPLACE, "scope": Scope.PARTITION}


def code_of(table: Table, job: JobDirectory, *, leave_removed: bool = False) -> str:
    """The code with which an undo is refused; nothing was changed."""
    before = table.world.all_keys("sales/")
    with pytest.raises(JobRefusedError) as refused:
        table.undo(job, leave_removed=leave_removed)
    assert table.world.all_keys("sales/") == before
    return str(refused.value.code)


def dated(table: Table, job: JobDirectory, seconds: float) -> None:
    """S3 got the job's manifest so much later, by the clock of one of its hosts."""
    version = table.world.store.bucket("lake").current(job.commits)
    assert version is not None
    object.__setattr__(version, "modified", shifted(version.modified, seconds))


def forge(table: Table, directory: JobDirectory, *files: CommittedFile, **header: Any) -> None:
    """A list of a job that never was, by somebody who may put there."""
    place, count = directory.destination.uri, header.pop("count", len(files))
    said = CommitHeader(directory.job_id, place, "2099-01-01T00:00:00Z", count, 0, None, **header)
    table.world.store.put("lake", directory.commits, b"".join(commit_lines(said, files)))
