"""A table to read while jobs append, replace and are aborted, with every document of theirs.

A reader is asked at each moment (`Table.live`), and has to find the rows of the visible files.
"""

import io
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

import s3commit
from s3commit.core.formats.layout import JobDirectory, is_data
from s3commit.core.model.destination import Destination
from s3commit.core.ports.bundle import Ports
from s3commit.writer.job import Job
from s3commit.writer.options import make_options
from s3commit.writer.start import start_job
from s3commit.writer.system import Environment
from tests.fakes.execution import walk_execution

FORMATS: Final = ("json", "csv", "text", "parquet")
# The states in which a table has what it has in no other: the manifests, the plan, the decision,
# new files, old files beside them, all documents of an ended job.
STATES: Final = ("VerifyManifests", "CompleteUploads", "BeginPublish", "RemoveReplaced", "TidyUp")


def body(form: str, ids: list[int]) -> bytes:
    """A file with these rows, in one column."""
    if form == "parquet":
        file = io.BytesIO()
        parquet.write_table(pa.table({"id": ids}), file)
        return file.getvalue()
    line = '{{"id": {}}}\n' if form == "json" else "{}\n"
    return ("id\n" * (form == "csv") + "".join(map(line.format, ids))).encode()


class Instead(Environment):
    """While the program waits for the result, something else is done."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act

    def sleep(self, seconds: float) -> None:
        self._act()


@dataclass
class Table:
    """Files of ``form``, in two partitions or in none; ``live`` runs its jobs."""

    ports: Ports
    bucket: str
    form: str
    partitioned: bool
    prefix: str = field(default_factory=lambda: f"{uuid.uuid4().hex[:12]}/table/")
    _written: dict[str, list[int]] = field(default_factory=dict)
    _last: int = 0

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"

    @property
    def ids(self) -> list[int]:
        """The rows of the files that are visible now."""
        keys = [one.key for one in self.ports.store.list(self.bucket, self.prefix)]
        visible = [key for key in keys if is_data(key[len(self.prefix) :])]
        return sorted(number for key in visible for number in self._written[key])

    def live(self, look: Callable[[], object], states: tuple[str, ...] = STATES) -> int:
        """Run the jobs, and ``look`` in each of the states, and while a job has not asked yet.

        Returns how many rows there were in all, to prove that there was something to see.
        """
        seen = 0

        def moment() -> None:
            nonlocal seen
            look()
            seen += len(self.ids)

        self._commit("append", lambda: None, states)
        self._commit("append", moment, states)
        under_way, _ = self._write("append")
        moment()
        under_way.abort("it is given up")
        self._execute(under_way, moment, ("AbortJob", "TidyUp"))
        self._commit("overwrite", moment, states)
        self._write("append")  # nobody ends this one
        moment()
        return seen

    def append(self) -> str:
        """One more job; its id."""
        return self._commit("append", lambda: None, ())

    def _write(self, mode: str) -> tuple[Job, list[Any]]:
        options = make_options(self.uri, mode=mode, idempotency_key=uuid.uuid4().hex)
        job = start_job(options, store=self.ports.store)
        counted = []
        for part in range(2):
            with job.task(str(part)) as task:
                ids = [self._last + 1, self._last + 2]
                self._last += 2
                name = f"p={part}/" * self.partitioned + f"part-{part}.{self.form}"
                with task.open(name) as file:
                    file.write(body(self.form, ids))
            [key] = [one.key for one in self._uploads(job) if one.key not in self._written]
            self._written[key] = ids
            counted.append(task.counted)
        return job, counted

    def _uploads(self, job: Job) -> list[Any]:
        found = self.ports.store.list_uploads(self.bucket, self.prefix)
        return [one for one in found if job.job_id in one.key]

    def _commit(self, mode: str, look: Callable[[], object], states: tuple[str, ...]) -> str:
        job, counted = self._write(mode)
        job._environment = Instead(lambda: self._execute(job, look, states))
        job.commit(counted)
        look()
        return job.job_id

    def _execute(self, job: Job, look: Callable[[], object], states: tuple[str, ...]) -> None:
        place = JobDirectory(Destination(self.bucket, self.prefix), job.job_id)
        for state in walk_execution(self.ports, place):
            if state in states:
                look()


# The tables of the page on readers


TABLES = {"sales": 3, "flat": 3, "events": 2}  # the rows of each; sales' are those of spark.md


@contextmanager
def fill(place: str) -> Iterator[None]:
    """Commit the tables below ``place``; meanwhile a job of each has an open upload."""
    two, one = (_parquet(id=ids, price=[float(one) for one in ids]) for ids in ([1, 2], [4]))
    jobs = {
        "sales": [("dt=2026-11-20/part-0.parquet", two), ("dt=2026-11-21/part-0.parquet", one)],
        "flat": [("part-0.parquet", two), ("part-1.parquet", one)],
        "events": [("part-0.json", b'{"id": 1}\n{"id": 2}\n')],
    }
    with ExitStack() as under_way:
        for table, files in jobs.items():
            for path, body in files:
                with s3commit.open_job(f"{place}{table}/") as job:
                    job.commit([_add(job, path, body)])
            under_way.callback(
                (job := s3commit.open_job(f"{place}{table}/")).abort, "the test ends"
            )
            _add(job, *files[0])
        yield


def _parquet(**columns: list[Any]) -> bytes:
    parquet.write_table(pa.table(columns), file := io.BytesIO())
    return file.getvalue()


def _add(job: Any, path: str, body: bytes) -> Any:
    with job.task("0") as task, task.open(path) as file:
        file.write(body)
    return task.counted
