"""The driver's one request for its job, commit or abort, and the wait for the result."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from s3commit.core.documents.request_json import (
    MAX_REQUEST_BYTES,
    AbortRequest,
    CommitRequest,
    decode_request,
    encode_request,
    first_put_at,
)
from s3commit.core.documents.result_json import JobResult, read_result
from s3commit.core.formats.layout import META_REQUESTED, JobDirectory
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobFailedError,
    JobRefusedError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    S3CommitError,
    TransientError,
)
from s3commit.core.model.outcome import Outcome
from s3commit.core.ports.objects import WriterStore
from s3commit.writer.conditional_put import put_first
from s3commit.writer.system import Environment, say

# A pause is this share of the time waited: the result is seen that late at most.
LATENESS: Final = 0.05
SHORTEST_PAUSE: Final = 0.05  # seconds
LONGEST_PAUSE: Final = 3.0
REMIND_AFTER: Final = 60.0
ASK_AGAIN_AFTER: Final = 300.0  # and then after twice the time, and so on


@dataclass(frozen=True, slots=True)
class AbortAnswer:
    """The answer of `Job.abort`."""

    accepted: bool
    """False if a commit was requested first: it decides, or has; nothing was changed."""
    message: str
    """The state of the job, in words."""


class Patience:
    """Pauses that grow with the time waited, 50 ms to 3 s, until ``timeout`` seconds are over."""

    def __init__(self, environment: Environment, timeout: float) -> None:
        self.timeout = timeout
        self._environment = environment
        self._deadline = environment.monotonic() + timeout

    @property
    def waited(self) -> float:
        """The seconds so far."""
        return self.timeout - self._deadline + self._environment.monotonic()

    def pause(self) -> bool:
        """Wait a little; False, without waiting, when the time is over."""
        left = self._deadline - self._environment.monotonic()
        if left <= 0:
            return False
        pause = min(max(LATENESS * self.waited, SHORTEST_PAUSE), LONGEST_PAUSE)
        self._environment.sleep(min(pause, left))
        return True


def request_commit(
    store: WriterStore, directory: JobDirectory, request: CommitRequest, patience: Patience
) -> bool:
    """Make ``request`` the job's one request, or find that it is already.

    One with ``put_at`` takes its place among the jobs as if S3 had got it then (docs/adr/0037).
    False if the sweep was faster and gave the job up: then its result says why, and may say that
    the data is there.

    Raises `JobRefusedError` (``ABORT_REQUESTED``) if an abort is there, `PreconditionError`
    (``OTHER_REQUEST``) if another commit does, `OutcomeUnknownError` if S3 could not be reached and
    the request may have arrived.
    """
    stands = _put_commit(store, directory, request, patience)
    standing = _read(stands, directory)
    if standing == request:
        return True
    if isinstance(standing, AbortRequest) and standing.abandoned:
        return False
    if isinstance(standing, AbortRequest):
        raise JobRefusedError(
            f"job {directory.job_id} was not committed: its abort was requested first"
            f" ({standing.reason or 'no reason given'})",
            code="ABORT_REQUESTED",
        )
    raise PreconditionError(
        f"job {directory.job_id}: another commit was requested first, with"
        f" {len(standing.attempts)} attempts, and decides; see {_uri(directory)}",
        code="OTHER_REQUEST",
    )


@contextmanager
def saying_that_it_goes_on(directory: JobDirectory) -> Iterator[None]:
    """Tell a program that something of its own, such as Ctrl-C, interrupts what the wait is for.

    By a note on the exception, and by a line on standard error: a notebook shows one of them.
    """
    try:
        yield
    except S3CommitError:
        raise
    except BaseException as error:
        line = (
            f"job {directory.job_id}: if its commit was requested, it continues; see: s3commit"
            f" show {directory.typed}"
        )
        error.add_note(line)
        say(line)
        raise


def request_abort(store: WriterStore, directory: JobDirectory, reason: str) -> AbortAnswer:
    """Request the abort, unless the job has its request. Raises S3's errors.

    Spark calls it after a commit that failed: then the answer is how the job has ended.
    """
    body = encode_request(AbortRequest(directory.job_id, reason))
    stands = put_first(
        store, directory.bucket, directory.request, body, max_bytes=MAX_REQUEST_BYTES
    )
    job_id = directory.job_id
    if stands == body:
        return AbortAnswer(True, f"the abort of job {job_id} was requested")
    standing = _read(stands, directory)
    if isinstance(standing, AbortRequest):
        return AbortAnswer(True, f"the abort of job {job_id} was already requested")
    with suppress(S3CommitError):  # there is no result, or none that can be read
        result = read_result(store, directory)
        if result.outcome is not Outcome.COMMITTED:
            return AbortAnswer(False, f"job {job_id} {result.ended}")
    return AbortAnswer(
        False,
        f"job {job_id} was not aborted: its commit was requested first, and the pipeline decides;"
        f" see: s3commit show {directory.typed}",
    )


def wait_for_result(store: WriterStore, directory: JobDirectory, patience: Patience) -> JobResult:
    """Poll ``_result.json`` and return it, whatever the outcome (`require_committed`).

    After a minute without a result one line says so on standard error. After five minutes, and at
    intervals that double, the request is put again as it is: its event may have been lost.

    Raises `OutcomeUnknownError` when the time is over or the result can't be read.
    """
    over, reminded, ask_again = False, False, ASK_AGAIN_AFTER
    while True:
        try:
            result = read_result(store, directory)
        # Without s3:ListBucket, S3 answers 403 for an object that is not there (yet).
        except (NotFoundError, AccessError, TransientError) as error:
            if over:
                why = f"no result after {patience.timeout:g} s"
                if isinstance(error, NotFoundError):  # the reason says it all
                    raise _unknown(directory, why) from None
                raise _unknown(directory, f"{why} ({error.message})") from error
        except S3CommitError as error:
            raise _unknown(directory, error.message) from error
        else:
            return result
        # One more look when the time is over: it may have passed while the process did not run.
        over = not patience.pause()
        if not over and not reminded and patience.waited >= REMIND_AFTER:
            reminded = True
            say(
                f"job {directory.job_id} has no result after {REMIND_AFTER:g} s, still waiting;"
                f" see: s3commit show {directory.typed}"
            )
        if not over and patience.waited >= ask_again:
            ask_again *= 2
            _put_again(store, directory)


def _put_again(store: WriterStore, directory: JobDirectory) -> None:
    """Put the existing request once more, the same bytes, unless it changes first.

    It keeps its place among the requests (docs/adr/0037): what it says of the first one's time.
    """
    bucket, key = directory.bucket, directory.request
    with suppress(S3CommitError):  # the result is what counts
        stands = store.get(bucket, key, max_bytes=MAX_REQUEST_BYTES)
        metadata = {META_REQUESTED: first_put_at(stands.facts)}
        store.put(bucket, key, stands.body, if_match=stands.facts.etag, metadata=metadata)


def _put_commit(
    store: WriterStore, directory: JobDirectory, request: CommitRequest, patience: Patience
) -> bytes:
    doubtful, body = False, encode_request(request)
    metadata = {META_REQUESTED: request.put_at} if request.put_at else None
    put = partial(put_first, store, directory.bucket, directory.request, body)
    while True:
        try:
            return put(max_bytes=MAX_REQUEST_BYTES, metadata=metadata)
        except TransientError as error:
            doubtful = True  # it may have happened
            if not patience.pause():
                raise _unknown(directory, error.message) from error
        except S3CommitError as error:
            if doubtful:
                raise _unknown(directory, error.message) from error
            raise


def _read(body: bytes, directory: JobDirectory) -> CommitRequest | AbortRequest:
    try:
        return decode_request(body, directory)
    except InvalidInputError as error:
        raise PreconditionError(
            f"job {directory.job_id}: the request at {_uri(directory)} cannot be read:"
            f" {error.message}",
            code="OTHER_REQUEST",
        ) from error


def require_committed(result: JobResult) -> JobResult:
    """The result, if the job, or another one with its key, is committed; else `JobFailedError`."""
    if result.outcome is Outcome.COMMITTED or result.already_committed:
        return result
    error = result.error
    raise JobFailedError(
        f"job {result.job_id} {result.ended}: {error.message if error else 'no reason given'}",
        code=error.code if error else None,
    )


def _unknown(directory: JobDirectory, why: str) -> OutcomeUnknownError:
    job_id = directory.job_id
    return OutcomeUnknownError(
        f"outcome of job {job_id} unknown: {why}; it may still commit. Check it with `s3commit"
        f" show {directory.typed}`, or as execution {job_id} in the Step Functions console"
    )


def _uri(directory: JobDirectory) -> str:
    return f"s3://{directory.bucket}/{directory.request}"
