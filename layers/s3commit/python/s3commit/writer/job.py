"""Write files that become visible together: the API for any Python program."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from s3commit.aws.clients import Boto3Session
from s3commit.core.documents.job_json import JOB_JSON, JobSpec
from s3commit.core.documents.request_json import CommitRequest, CountedAttempt, refuse_two_attempts
from s3commit.core.documents.result_json import JobResult
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.strict_json import digest
from s3commit.core.jobs.idempotency import hinted_job
from s3commit.core.model.errors import InvalidInputError, S3CommitError, TransientError
from s3commit.core.ports.objects import WriterStore
from s3commit.writer.commit_result import CommitResult, result_at
from s3commit.writer.options import DEFAULT_COMMIT_TIMEOUT, Options
from s3commit.writer.requests import (
    AbortAnswer,
    Patience,
    request_abort,
    request_commit,
    require_committed,
    saying_that_it_goes_on,
    wait_for_result,
)
from s3commit.writer.system import Environment, say
from s3commit.writer.task import Task


@dataclass
class Job:
    """One write to one destination; made by `s3commit.open_job`.

    As a ``with`` block it is aborted in an exception (which changes nothing after the request),
    and, with a line on standard error, if the block ends before `commit` or `abort` was called.

    It can be pickled, without credentials. Other processes make their tasks of it, connect by the
    standard AWS configuration, and send back what `Task.finish` returns.
    """

    _spec: JobSpec
    _options: Options = field(repr=False)
    _environment: Environment = field(default_factory=Environment)
    _store: WriterStore | None = field(default=None, repr=False, compare=False)
    _process: int = field(default_factory=os.getpid, repr=False, compare=False)
    _asked: bool = field(default=False, repr=False, compare=False)
    _tasks: list[Task] = field(default_factory=list, repr=False, compare=False)  # of this process
    commit_timeout: float = DEFAULT_COMMIT_TIMEOUT
    """Seconds that `commit` waits for the outcome."""

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self._spec.job_id

    @property
    def directory(self) -> JobDirectory:
        """The directory of the job's own objects."""
        return JobDirectory(self._spec.destination, self._spec.job_id)

    def task(
        self,
        task_id: str,
        attempt_id: str | None = None,
        *,
        task_count: int | None = None,
        boto3_session: Boto3Session | None = None,
    ) -> Task:
        """One try at a task; no request.

        Args:
            task_id: which task of the job.
            attempt_id: unique to the try; a new UUID by default.
            task_count: how many tasks of the job write files, if that is known: then a
                commit in the place of a program that died misses those without a manifest.
            boto3_session: whose credentials count; by default the job's, elsewhere the process's.

        Returns:
            The `Task`, which writes files.

        Raises:
            InvalidInputError: an id is not one (``BAD_ID``), or the session (``BAD_OPTION``).
        """
        given = boto3_session is not None
        task = Task(
            self.directory,
            task_id,
            self._environment.new_id() if attempt_id is None else attempt_id,
            None if given else self._connected(),
            options=self._options.elsewhere(boto3_session) if given else self._options,
            task_count=task_count,
        )
        self._tasks.append(task)
        return task

    def commit(
        self, attempts: Iterable[CountedAttempt | None], *, leave_out: bool = False
    ) -> CommitResult:
        """Request the commit of exactly these attempts and wait for the outcome.

        May be called again with the same attempts. The commit continues after any end of the
        wait: an exception of the program's own, such as `KeyboardInterrupt`, gets a note that says
        so, and standard error a line.

        Args:
            attempts: what each task has `counted`; None is a task without files. Of the
                tasks that this process has made, each that has files must be among them, by one of
                its tries.
            leave_out: discard those that are not among them.

        Returns:
            The result if the job is committed, also if it adds nothing since another job with the
            same idempotency key has been (`CommitResult.already_committed`).

        Raises:
            InvalidInputError: ``LEFT_OUT``, ``BAD_OPTION``. Nothing was requested.
            JobFailedError: the job is not committed; its code is the pipeline's.
            JobRefusedError: an abort was requested first (``ABORT_REQUESTED``).
            PreconditionError: another commit was requested first (``OTHER_REQUEST``).
            OutcomeUnknownError: after ``commit_timeout``. The job may be committed, also later.
        """
        result = self._ended(attempts, leave_out=leave_out)
        if result.error is not None:  # the data was there, or a person committed without lists
            say(result.error.message)
        if not result.already_committed:
            return committed(self.directory, result)
        place, key = self.directory.destination, self._spec.idempotency_key or ""
        first = None
        with suppress(TransientError):  # the outcome is known
            first = hinted_job(self._connected(), place, key, needs_files=False)
        if first is None:  # its list, or the hint, was deleted since
            return CommitResult(place.uri, already_committed=True)
        return result_at(first, already_committed=True)

    def _ended(
        self, attempts: Iterable[CountedAttempt | None], *, leave_out: bool = False
    ) -> JobResult:
        """As `commit`, but with the whole result."""
        counted = _chosen(attempts)
        if not leave_out:
            _refuse_left_out(self._tasks, counted)
        sha256 = digest(JOB_JSON.encode(self._spec))
        request = CommitRequest(self.job_id, counted, job_sha256=sha256)
        self._asked = True  # from here on: a request that was never made leaves the job to abort
        store, patience = self._connected(), Patience(self._environment, self.commit_timeout)
        with saying_that_it_goes_on(self.directory):
            request_commit(store, self.directory, request, patience)
            result = wait_for_result(store, self.directory, patience)
        return require_committed(result)

    def abort(self, reason: str) -> AbortAnswer:
        """Request the abort, for a ``reason`` that people read; never stops a requested commit."""
        answer = request_abort(self._connected(), self.directory, str(reason))
        self._asked = True
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            try:
                why = ": ".join(filter(None, (type(error).__name__, str(error))))
                answer = self.abort(why)
            except S3CommitError as failed:
                error.add_note(f"the abort failed too: {failed.message}")
            else:
                if answer.accepted:
                    error.add_note(f"{answer.message}: none of its files will be visible")
        elif not self._asked:
            self.abort("the program ended without a commit")
            say(
                f"job {self.job_id} at {self._spec.destination.uri} ended without commit(), so its"
                " files were discarded. To keep them, call job.commit([...]) with the result of"
                " each task.finish()"
            )

    def __getstate__(self) -> dict[str, Any]:
        there = self._options.elsewhere()
        return {**vars(self), "_store": None, "_tasks": [], "_options": there}

    def _connected(self) -> WriterStore:
        if self._store is None or self._process != os.getpid():  # a fork shares no connection
            options, self._process = self._options, os.getpid()
            self._store = options.access.store(options.encryption)
        return self._store


def committed(directory: JobDirectory, result: JobResult) -> CommitResult:
    """The result of a committed job as a program gets it."""
    counts = {name: getattr(result, name) or 0 for name in ("files", "rows", "bytes", "replaced")}
    return result_at(directory, **counts)


def _chosen(attempts: Iterable[CountedAttempt | None]) -> tuple[CountedAttempt, ...]:
    """The attempts in the order of their tasks; None is a task without files.

    Raises `InvalidInputError` for something else (``BAD_OPTION``), and for two of one task.
    """
    if not isinstance(attempts, Iterable):
        raise _not_counted(attempts)
    counted = []
    for attempt in attempts:
        if isinstance(attempt, CountedAttempt):
            counted.append(attempt)
        elif attempt is not None:
            raise _not_counted(attempt)
    refuse_two_attempts(counted)
    return tuple(sorted(counted, key=lambda one: one.task_id))


def _refuse_left_out(tasks: Iterable[Task], counted: Iterable[CountedAttempt]) -> None:
    """Raise `InvalidInputError` (``LEFT_OUT``) if a task has files and no try of it is counted."""
    known = {attempt.task_id for attempt in counted}
    left = next((one for one in tasks if one.has_files and one.task_id not in known), None)
    if left is not None:
        raise InvalidInputError(
            f"task {left.task_id} of job {left.directory.job_id} has files and is not among the"
            " attempts: pass the result of its finish(), or commit(..., leave_out=True) to"
            " discard them. No commit was requested.",
            code="LEFT_OUT",
        )


def _not_counted(given: object) -> InvalidInputError:
    return InvalidInputError(
        f"commit needs a list with the result of each task.finish(), not {type(given).__name__}."
        " No commit was requested.",
        code="BAD_OPTION",
    )
