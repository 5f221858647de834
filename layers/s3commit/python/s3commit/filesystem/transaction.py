"""fsspec's transaction as a job: what is written within it gets visible together, or never."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from fsspec.transaction import Transaction

from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.model.job import Destination, JobResult

if TYPE_CHECKING:
    from s3commit.writer.job import Job
    from s3commit.writer.stream import PendingUpload
    from s3commit.writer.task import Task

TASK: Final = "files"


class _FileSystem(Protocol):
    """The filesystem whose transaction it is."""

    @property
    def destination(self) -> Destination | None: ...

    def open_job(self) -> Job: ...


class JobTransaction(Transaction):  # type: ignore[misc]
    """A job of one task, from `start` to `complete`.

    Every file that this process opens for writing below the destination belongs to it, by whatever
    instance of the filesystem and in whatever thread: libraries make instances of their own from a
    URL. `result` says what was committed. Starting it makes two requests, completing it as many as
    a job's commit, and waits for the outcome.
    """

    def __init__(self, fs: _FileSystem) -> None:
        super().__init__(fs)
        self.result: JobResult | None = None
        self._opener = fs.open_job
        self._job: Job | None = None
        self._task: Task | None = None
        self._process = os.getpid()

    @property
    def destination(self) -> Destination:
        """Where its files go. Raises `S3CommitError` if it does not run."""
        return self._running()[0].spec.destination

    def start(self) -> None:
        """Open the job. Raises what `s3commit.open_job` raises."""
        if self.fs._intrans:
            raise S3CommitError(
                f"a transaction at {self.fs.destination.uri} runs already: complete it first",
                code="IN_TRANSACTION",
            )
        self._job = self._opener()
        self._task = self._job.task(TASK, task_count=1)
        self._process = os.getpid()
        self.result = None
        self.files.clear()  # the base class's own list; ours is the task's
        self.fs._intrans = True
        self.fs._transaction = self
        _RUNNING.add(self)

    def open(self, key: str, **options: Any) -> PendingUpload:
        """A file of the job; ``key`` lies below the destination."""
        job, task = self._running()
        return task.open(key.removeprefix(job.spec.destination.prefix), **options)

    def holds(self, bucket: str, key: str) -> bool:
        """Whether it runs, in this process, and the key lies below its destination."""
        # A forked child has a copy of it, and nobody would ever name what the copy writes.
        if self._job is None or self._process != os.getpid():
            return False
        destination = self.destination
        return destination.bucket == bucket and key.startswith(destination.prefix)

    def complete(
        self, commit: bool = True, *, reason: str = "the transaction was given up"
    ) -> None:
        """Commit the job and wait, or abort it; then the transaction has ended, whatever happened.

        Raises what `Task.finish` and `Job.commit` raise. If a file can't be finished the job is
        aborted.
        """
        job, task = self._running()
        try:
            if not commit:
                _abort(job, task, reason)
                return
            try:
                counted = task.finish()
            except BaseException as error:
                with _noted(error):
                    _abort(job, task, _reason(error))
                raise
            self.result = job.commit([counted])
        finally:
            _RUNNING.remove(self)
            self._job = self._task = None
            self.files.clear()
            self.fs._intrans = False
            self.fs._transaction = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        if exc_val is None:
            self.complete()
        else:
            with _noted(exc_val):
                self.complete(commit=False, reason=_reason(exc_val))

    def _running(self) -> tuple[Job, Task]:
        if self._job is None or self._task is None:
            raise S3CommitError("no transaction runs: start one first", code="NO_TRANSACTION")
        return self._job, self._task


def _abort(job: Job, task: Task, reason: str) -> None:
    task.abort()
    job.abort(reason)


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@contextmanager
def _noted(error: BaseException) -> Iterator[None]:
    try:
        yield
    except S3CommitError as failed:
        error.add_note(f"the job could not be aborted either: {failed.message}")


class Running:
    """The transactions that run in this process; thread-safe."""

    def __init__(self) -> None:
        self._found: list[JobTransaction] = []
        self._lock = threading.Lock()

    def add(self, transaction: JobTransaction) -> None:
        """From now on files may join it."""
        with self._lock:
            self._found.append(transaction)

    def remove(self, transaction: JobTransaction) -> None:
        """No file may join it any more."""
        with self._lock:
            self._found = [other for other in self._found if other is not transaction]

    def of(self, bucket: str, key: str) -> JobTransaction | None:
        """The one whose destination is the nearest above the key.

        Raises `InvalidInputError` (``TWO_TRANSACTIONS``) if two are equally near.
        """
        with self._lock:
            found = [one for one in self._found if one.holds(bucket, key)]
        nearest = max((len(one.destination.prefix) for one in found), default=0)
        found = [one for one in found if len(one.destination.prefix) == nearest]
        if len(found) > 1:
            raise InvalidInputError(
                f"two transactions run at {found[0].destination.uri}: open s3commit://{bucket}/{key}"
                " through the filesystem that the one you mean belongs to",
                code="TWO_TRANSACTIONS",
            )
        return found[0] if found else None


_RUNNING: Final = Running()


def joined(own: JobTransaction | None, bucket: str, key: str) -> JobTransaction | None:
    """The transaction that a file belongs to: the filesystem's own, else the nearest; or None."""
    if own is not None and own.holds(bucket, key):
        return own
    return _RUNNING.of(bucket, key)
