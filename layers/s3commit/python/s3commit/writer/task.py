"""One try at one task: the files that it writes, and the manifest that names them."""

from __future__ import annotations

import os
import shutil
import threading
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from s3commit.core.documents.pendingset import PendingSet, encode_pendingset
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.formats.layout import JobDirectory, check_id
from s3commit.core.formats.strict_json import digest
from s3commit.core.model.checks import Figures
from s3commit.core.model.errors import InvalidInputError, S3CommitError
from s3commit.core.ports.objects import WriterStore
from s3commit.writer.conditional_put import put_own
from s3commit.writer.options import Options
from s3commit.writer.stream import PendingUpload
from s3commit.writer.target import DEFAULT_CONTENT_TYPE, Target, file_key
from s3commit.writer.transfer import Transfer

_COPIED_BYTES: Final = 1024 * 1024


class Task:
    """Writes files for a job; made by `Job.task` (``directory``, ``task_id``, ``attempt_id``).

    As a ``with`` block it is finished at the end, and aborted by an exception.
    Safe for use from several threads. Before its first file it can be pickled: the store does not
    travel, another process connects by the standard AWS configuration. Two copies are one try: the
    second of them to finish is refused.

    Examples:
        >>> with s3commit.open_job("s3://lake/files/") as job:
        ...     task, failed = job.task("0"), job.task("0")
        ...     with failed.open("part-0.txt") as file:
        ...         file.write(b"half of it")
        ...     failed.abort()
        ...     file = task.add(local_path, "part-0.txt")
        ...     file.rows = 1
        ...     result = job.commit([task.finish()])
        >>> result.files, result.rows
        (1, 1)
    """

    def __init__(
        self,
        directory: JobDirectory,
        task_id: str,
        attempt_id: str,
        store: WriterStore | None,
        *,
        options: Options,
        task_count: int | None = None,
    ) -> None:
        self.directory = directory
        self.task_id = check_id(task_id, "task id")
        self.attempt_id = check_id(attempt_id, "attempt id")
        self._options = options
        self._task_count = task_count
        self._transfer = Transfer(options.uploads)
        self._given_store = store
        self._streams: dict[str, PendingUpload | None] = {}
        self._lock = threading.Lock()
        self._ended = False
        self._finished = False
        self._process = os.getpid()
        self._counted: CountedAttempt | None = None
        self.figures: tuple[Figures, ...] = ()
        """Facts about checked columns, for the manifest; set by what writes Parquet."""

    @property
    def counted(self) -> CountedAttempt | None:
        """The result of `finish`, which the driver passes to `Job.commit`.

        Raises:
            InvalidInputError: it is not finished (``TASK_OPEN``), or never will be
                (``TASK_ABORTED``).
        """
        if not self._finished:
            raise InvalidInputError(
                f"task {self.task_id}, attempt {self.attempt_id}, was aborted, and its files will"
                " never be part of the job: write them again in another task, or leave it out"
                if self._ended
                else (
                    f"task {self.task_id} is not finished, so its files can't be committed yet:"
                    " read task.counted after its with block, or call task.finish()"
                ),
                code="TASK_ABORTED" if self._ended else "TASK_OPEN",
            )
        return self._counted

    @property
    def has_files(self) -> bool:
        """True if it has opened a file here, and was not aborted."""
        if self._ended:
            return self._counted is not None
        return any(stream is not None and not stream.aborted for stream in self._streams.values())

    def open(
        self,
        relative_path: str,
        *,
        rows: int | None = None,
        content_type: str = DEFAULT_CONTENT_TYPE,
    ) -> PendingUpload:
        """A binary file. Its bytes go to S3 while they are written; opening is one request.

        For a library that seeks see `add`. For text in UTF-16 or UTF-32 use `codecs.getwriter`:
        `io.TextIOWrapper` omits the byte order mark where a file cannot seek.

        Args:
            relative_path: below the destination. The file's name gets the job id before its first
                dot, ``part-0-<job_id>.csv``.
            rows: how many the file has, for conditions on rows and for the result.
            content_type: the object's.

        Returns:
            The file, as `open` of a path gives one.

        Raises:
            InvalidInputError: a path that can't be (``BAD_PATH``), or that the task has opened
                before (``DUPLICATE_PATH``).
            S3CommitError: of S3, by what is then true; so with all that follows.
        """
        key = file_key(self.directory, relative_path, check_names=self._options.check_names)
        with self._lock:
            self._check_running()
            if key in self._streams:
                raise InvalidInputError(
                    f"task {self.task_id} has already opened {relative_path!r}",
                    code="DUPLICATE_PATH",
                )
            self._streams[key] = None  # used, also should the start fail: it may have happened
        stream = PendingUpload(
            self._store,
            Target(self.directory, key, self.task_id, self.attempt_id, content_type),
            self._transfer,
            rows,
        )
        with self._lock:
            self._streams[key] = stream
            ended = self._ended
        if ended:  # aborted by another thread
            stream.withdraw()
            self._check_running()
        return stream

    def add(
        self,
        local_path: str | os.PathLike[str],
        relative_path: str,
        *,
        rows: int | None = None,
        content_type: str = DEFAULT_CONTENT_TYPE,
    ) -> PendingUpload:
        """Upload the whole file at ``local_path`` of this machine's disk, which stays as it is.

        For what is written by seeking, as zip archives and HDF5 files are. ``relative_path``,
        ``rows``, ``content_type`` and what is raised are as of `open`. The file is closed.

        Raises:
            OSError: the file can't be read.
        """
        with (
            Path(local_path).open("rb") as local,
            self.open(relative_path, rows=rows, content_type=content_type) as file,
        ):
            shutil.copyfileobj(local, file, _COPIED_BYTES)
        return file

    def finish(self) -> CountedAttempt | None:
        """Put the manifest: one request, or none and None if the task has no files.

        Every file must be closed or sealed, or aborted (then it is left out). Finishing again
        returns the same.

        Raises:
            InvalidInputError: a file is not closed (``FILE_OPEN``), or not whole
                (``FILE_FAILED``); then, as after an error of S3, it can only be aborted.
        """
        with self._lock:
            if self._finished:
                return self._counted
            self._check_running()
            files = tuple(stream.pending for stream in self._whole_streams())
            if files:
                more = (self.task_id, self.attempt_id, self._task_count, self.figures)
                pending = PendingSet(self.directory.job_id, files, *more)
                self._counted = put_manifest(self._store, self.directory, pending)
            self._ended = self._finished = True
            self._streams.clear()  # its job holds the task until the end
        self._transfer.close()
        return self._counted

    def abort(self) -> list[Exception]:
        """Abort the uploads of all files, closed ones too; return what could not be done.

        The pipeline does the rest when the job ends. A task that is finished is left as it is: its
        manifest remains, and the driver alone says whether it counts.
        """
        with self._lock:
            if self._ended:
                return []
            self._ended = True
            streams = [stream for stream in self._streams.values() if stream is not None]
            self._streams.clear()
        errors = [error for stream in streams if (error := stream.withdraw())]
        self._transfer.close()
        return errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.abort()
            return
        try:
            self.finish()
        except Exception:
            self.abort()
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        if self._streams or self._ended:
            raise TypeError(
                f"task {self.task_id} has opened a file and cannot be pickled: send it before it"
                " opens one, or send its job and create the task there"
            )
        return self._like(self._options.elsewhere()), (self.task_id, self.attempt_id, None)

    def _like(self, options: Options) -> partial[Task]:
        return partial(Task, self.directory, options=options, task_count=self._task_count)

    @property
    def _store(self) -> WriterStore:
        if self._given_store is None or self._process != os.getpid():  # a fork shares none
            self._given_store = self._options.access.store(self._options.encryption)
            self._process = os.getpid()
        return self._given_store

    def _whole_streams(self) -> list[PendingUpload]:
        kept = []
        for key, stream in self._streams.items():
            if stream is None or stream.failed:
                raise InvalidInputError(
                    f"task {self.task_id}: file {key} failed; abort the task and run it again",
                    code="FILE_FAILED",
                )
            if stream.aborted:
                continue
            if not stream.closed and not stream.sealed:
                raise InvalidInputError(
                    f"task {self.task_id}: file {key} is still open; close it first",
                    code="FILE_OPEN",
                )
            stream.close()
            kept.append(stream)
        return kept

    def _check_running(self) -> None:
        if self._ended:
            raise S3CommitError(
                f"task {self.task_id}, attempt {self.attempt_id}, has ended", code="TASK_ENDED"
            )


def another(task: Task, task_id: str, attempt_id: str) -> Task:
    """Another task of the same job, or another try, with the same connection."""
    return task._like(task._options)(task_id, attempt_id, task._given_store)


def options_of(task: Task) -> Options:
    """The options of the job's call."""
    return task._options


def connect(task: Task) -> None:
    """Connect the process for the task's first file; errors are those of `Task.open`."""
    task._store  # noqa: B018 - it is made here


def put_manifest(
    store: WriterStore, directory: JobDirectory, pending: PendingSet
) -> CountedAttempt:
    """Put the manifest of a try at a task: one request. Returns what the driver counts."""
    body = encode_pendingset(pending)
    name = directory.manifest_name(pending.task_id, pending.attempt_id)
    put_own(store, directory.bucket, directory.prefix + name, body)
    return CountedAttempt(
        task_id=pending.task_id,
        attempt_id=pending.attempt_id,
        manifest=name,
        sha256=digest(body),
        files=len(pending.files),
        bytes=pending.bytes,
    )
