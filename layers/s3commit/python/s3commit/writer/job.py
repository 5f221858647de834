"""Write files that become visible together: the API for any Python program.

::

    with s3commit.open_job("s3://bucket/table/") as job:
        with job.task("0") as task:
            with task.open("dt=2026-11-21/part-0.csv") as file:
                file.write(b"...")
        job.commit([task.counted])

The job can be pickled and sent to other processes, which make their tasks of it; what
`Task.finish` returns comes back to the one that commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Self, TypeVar

from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.session import Encryption, make_client
from s3commit.core.formats.documents import (
    MAX_JOB_BYTES,
    decode_job,
    encode_job,
)
from s3commit.core.formats.layout import JobDirectory, check_job_id, parse_destination
from s3commit.core.formats.manifest import digest
from s3commit.core.model.errors import AccessError, InvalidInputError, NotFoundError, S3CommitError
from s3commit.core.model.job import (
    MAX_KEY_CHARACTERS,
    CommitRequest,
    Conditions,
    Conflict,
    CountedAttempt,
    JobResult,
    JobSpec,
    Scope,
    Who,
    decode_conditions,
)
from s3commit.core.model.limits import MAX_WAIT_SECONDS
from s3commit.core.model.locks import key_digest
from s3commit.version import __version__
from s3commit.writer.attempts import chosen, refuse_left_out
from s3commit.writer.conditional_put import WriterStore, put_first
from s3commit.writer.connect import check_pipeline, no_bucket, shared_store
from s3commit.writer.environment import Environment, say, timestamp
from s3commit.writer.place import check_place, side_by_side
from s3commit.writer.requests import (
    AbortAnswer,
    Patience,
    request_abort,
    request_commit,
    require_committed,
    saying_that_it_goes_on,
    wait_for_result,
)
from s3commit.writer.task import Task
from s3commit.writer.transfer import UploadSettings
from s3commit.writer.who import this_program

DEFAULT_CLIENT: Final = f"s3commit-python/{__version__}"
# Seconds: as long as a job may wait for its locks, and what it then takes at most.
DEFAULT_COMMIT_TIMEOUT: Final = MAX_WAIT_SECONDS + 900.0


Choice = TypeVar("Choice", Conflict, Scope)


@dataclass
class Job:
    """One write to one destination; made by `open_job`.

    It is picklable: the store does not travel, another process connects by the standard AWS
    configuration when it first needs one. As a ``with`` block it is aborted in an exception (which
    changes nothing after the request), and, with a line on standard error, if the block ends
    before `commit` or `abort` was called.
    """

    spec: JobSpec
    settings: UploadSettings = field(default_factory=UploadSettings)
    encryption: Encryption | None = None
    environment: Environment = field(default_factory=Environment)
    _store: WriterStore | None = field(default=None, repr=False, compare=False)
    _asked: bool = field(default=False, repr=False, compare=False)
    _tasks: list[Task] = field(default_factory=list, repr=False, compare=False)  # of this process
    key: str | None = field(default=None, repr=False)  # as it was given: S3 sees its digest

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self.spec.job_id

    @property
    def directory(self) -> JobDirectory:
        """Where the job's own objects lie."""
        return JobDirectory(self.spec.destination, self.spec.job_id)

    def task(
        self, task_id: str, attempt_id: str | None = None, *, task_count: int | None = None
    ) -> Task:
        """One try at the task; no request. ``attempt_id`` must be unique to the try.

        ``task_count`` is how many tasks of the job write files, if that is known by now: then a
        commit in the place of a program that died misses those of which no manifest is there.

        Raises `InvalidInputError` (``BAD_ID``).
        """
        task = Task(
            self.directory,
            task_id,
            self.environment.new_id() if attempt_id is None else attempt_id,
            self._connected(),
            settings=self.settings,
            environment=self.environment,
            encryption=self.encryption,
            task_count=task_count,
        )
        self._tasks.append(task)
        return task

    def commit(
        self,
        attempts: Iterable[CountedAttempt | None],
        *,
        timeout: float = DEFAULT_COMMIT_TIMEOUT,
        leave_out: bool = False,
    ) -> JobResult:
        """Ask for the commit of exactly these attempts and wait for the outcome.

        None stands for a task without files. Of the tasks that this process has made, each that
        has files must be among them, by one of its tries; with ``leave_out`` the others are
        discarded.

        Returns the result if the job is committed, also if it adds nothing since another job with
        the same idempotency key has been (`JobResult.already_committed`; its error names that job).
        May be called again with the same attempts. Whatever ends the wait, the commit goes on: an
        exception of the program's own, such as `KeyboardInterrupt`, gets a note that says so, and
        standard error a line.

        Raises `InvalidInputError` (``LEFT_OUT``, ``BAD_OPTION``) before anything is asked for;
        `JobFailedError` with the pipeline's code if the job is not committed; `JobRefusedError`
        (``ABORT_REQUESTED``) or `PreconditionError` (``OTHER_REQUEST``) if another request stands;
        `OutcomeUnknownError` after ``timeout`` seconds: the job may be committed, also later.
        """
        counted = chosen(attempts)
        if not leave_out:
            refuse_left_out(self._tasks, counted)
        request = CommitRequest(self.job_id, counted, job_sha256=digest(encode_job(self.spec)))
        self._asked = True  # from here on: a request that was never made leaves the job to abort
        store, patience = self._connected(), Patience(self.environment, timeout)
        with saying_that_it_goes_on(self.directory):
            request_commit(store, self.directory, request, patience)
            result = wait_for_result(store, self.directory, patience)
        return require_committed(self._naming_the_key(result))

    def abort(self, reason: str) -> AbortAnswer:
        """Ask for the abort; changes nothing, and says so, if a commit was asked for before."""
        answer = request_abort(self._connected(), self.directory, reason)
        self._asked = True
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            try:
                answer = self.abort(f"{type(error).__name__}: {error}")
            except S3CommitError as failed:
                error.add_note(f"the job could not be aborted either: {failed.message}")
            else:
                if answer.accepted:
                    error.add_note(f"{answer.message}: none of its files is or becomes visible")
        elif not self._asked:
            self.abort("the program ended without a commit")
            say(
                f"job {self.job_id} at {self.spec.destination.uri} was left without a commit, and"
                " what its tasks wrote is discarded; to keep it, call job.commit with what each"
                " task.finish() returned"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_store": None, "_tasks": []}

    def _naming_the_key(self, result: JobResult) -> JobResult:
        """With the key as the program knows it."""
        digest_of_key = self.spec.idempotency_key
        if result.error is None or digest_of_key is None or self.key is None:
            return result
        message = result.error.message.replace(digest_of_key, self.key)
        return replace(result, error=replace(result.error, message=message))

    def _connected(self) -> WriterStore:
        if self._store is None:
            self._store = shared_store(self.encryption)
        return self._store


def open_job(
    destination: str,
    *,
    conflict: str = Conflict.APPEND,
    scope: str = Scope.DIRECTORY,
    partition_by: Iterable[str] = (),
    conditions: Conditions | Mapping[str, Any] = Conditions(),  # noqa: B008 - frozen
    idempotency_key: str | None = None,
    client: str = DEFAULT_CLIENT,
    who: Who | None = None,
    job_id: str | None = None,
    settings: UploadSettings | None = None,
    encryption: Encryption | None = None,
    store: WriterStore | None = None,
    environment: Environment | None = None,
) -> Job:
    """Start a job at ``s3://bucket/prefix/``: a few requests, before anything is written.

    ``conflict`` is ``append``, ``fail`` (refuse if files are there) or ``replace`` (remove them
    once all new ones are visible); ``scope`` says where: ``directory``, all of the destination,
    or ``partition``, the directories that the job writes. ``conditions`` must hold of the job's
    data (`s3commit.core.model.job`; a mapping as in ``_job.json``). Of the jobs with one
    ``idempotency_key`` at one destination at most one is committed; ``_job.json`` has its digest.

    ``settings`` and ``encryption`` are for the uploads; without ``encryption`` the bucket's own way
    holds.

    ``client`` names the library in ``_job.json``, and ``who`` the program, its user, its host and
    its Airflow run, which are looked up unless given; ``job_id`` is a new UUID unless given, and
    never used twice. Of a ``store`` given by hand pipeline and place are trusted.

    Raises, each with one line that says what to do: `InvalidInputError` (``BAD_PATH``,
    ``BAD_ID``, ``BAD_OPTION``, ``BAD_CONDITION``, ``BAD_CONFIG``,
    ``JOB_EXISTS``, ``PATH_IS_OBJECT``), `NotFoundError` (``NO_BUCKET``, ``NO_PIPELINE``),
    `AccessError`, `TransientError`.
    """
    environment = environment or Environment()
    directory = parse_destination(destination)
    spec = JobSpec(
        job_id=check_job_id(environment.new_id() if job_id is None else job_id),
        destination=directory,
        conflict=_choice(Conflict, conflict, "conflict"),
        scope=_choice(Scope, scope, "scope"),
        partition_by=tuple(partition_by),
        created_at=timestamp(environment),
        client=client,
        who=this_program() if who is None else who,
        idempotency_key=_checked_key(idempotency_key),
        conditions=conditions
        if isinstance(conditions, Conditions)
        else decode_conditions(conditions),
    )
    if store is None:
        s3 = make_client()
        store = found = S3ObjectStore(s3, encryption=encryption)
        side_by_side(
            partial(check_pipeline, s3, spec.destination),
            partial(check_place, found, spec.destination, spec.partition_by),
        )
    put_job(store, spec)
    given = settings or UploadSettings()
    return Job(spec, given, encryption, environment, store, key=idempotency_key)


def put_job(store: WriterStore, spec: JobSpec) -> None:
    """Put ``_job.json``, unless this very one is there: one request.

    Raises `InvalidInputError` if no reader would take it, or another one is there
    (``JOB_EXISTS``), `NotFoundError`
    (``NO_BUCKET``), `AccessError` and `TransientError`.
    """
    directory, body = JobDirectory(spec.destination, spec.job_id), encode_job(spec)
    decode_job(body, directory)  # what the pipeline would refuse after the last task, now
    destination, job_id = directory.destination, directory.job_id
    try:
        stands = put_first(store, directory.bucket, directory.job, body, max_bytes=MAX_JOB_BYTES)
    except NotFoundError as error:
        raise no_bucket(destination) from error
    except AccessError as error:
        raise AccessError(
            f"no access to {destination.uri}: {error.message}", code=error.code
        ) from error
    if stands != body:
        raise InvalidInputError(
            f"job id {job_id} is taken at {destination.uri}: give another, or none",
            code="JOB_EXISTS",
        )


def _choice(kind: type[Choice], value: str, what: str) -> Choice:
    """The member of the enumeration. Raises `InvalidInputError` (``BAD_OPTION``)."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(repr(str(one)) for one in kind)
        raise InvalidInputError(f"{what}={value!r} is none of {known}", code="BAD_OPTION") from None


def _checked_key(key: str | None) -> str | None:
    """The key's digest: nobody who reads a job's documents learns the next keys of a stream."""
    if key is not None and not 1 <= len(key) <= MAX_KEY_CHARACTERS:
        raise InvalidInputError(
            f"idempotency_key has {len(key)} characters, not 1 to {MAX_KEY_CHARACTERS}",
            code="BAD_OPTION",
        )
    return None if key is None else key_digest(key)
