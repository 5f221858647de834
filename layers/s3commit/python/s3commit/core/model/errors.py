"""The errors, sorted by what is then true of the world.

The class says what is guaranteed, so that a caller can decide by class alone whether to retry, to
clean up, or to keep its hands off. ``code`` is stable and part of ``_result.json``.
"""

from typing import Final

CONFLICT = "CONFLICT"  # the code where another request for the same key was under way
PAGE_CHANGED = "PAGE_CHANGED"  # the code of an object of the pipeline that another has changed
ARCHIVED = "ARCHIVED"  # the code of an object that has to be restored before it can be read

# With these codes a document is refused that no sound writer makes, even by bad luck: another
# program's mistake, a copy of a table, or an attack. They are counted; many of them fire an alarm.
DOCUMENT_CODES: Final = frozenset(
    {
        *("BAD_CONDITION", "BAD_FIELD", "BAD_JSON", "BAD_KEY"),
        *("BAD_PATH", "BAD_VERSION", "COUNTS_DIFFER", "JOB_CHANGED"),
        *("MANIFEST_CHANGED", "NAME_NOT_UNIQUE", "NOT_CONTAINED"),
        *("REQUEST_CHANGED", "TOO_LARGE", "TRUNCATED", "WRONG_JOB"),
    }
)


class S3CommitError(Exception):
    """Base of all errors of this package; ``code`` is stable, ``message`` is for people."""

    code = "ERROR"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self._guaranteed = ""
        if code is not None:
            self.code = code

    def guarantee(self, sentence: str) -> None:
        """End the message with what is true after the error, unless it says so already."""
        if not self._guaranteed:
            self._guaranteed = sentence
            self.message = f"{self.message.rstrip('.')}. {sentence}"
            self.args = (self.message,)


class UnchangedError(S3CommitError):
    """The request did not happen: nothing was changed."""


class InvalidInputError(UnchangedError):
    """A document, option or name is not acceptable; a retry fails again."""

    code = "INVALID_INPUT"


class JobRefusedError(S3CommitError):
    """The job cannot be committed, for a reason of its own. No file of it is or gets visible."""

    code = "REFUSED"


class NotFoundError(UnchangedError):
    """The object, upload, bucket or record is not there."""

    code = "NOT_FOUND"


class UploadGoneError(NotFoundError):
    """The multipart upload is neither open nor known; it can never be completed (again)."""

    code = "UPLOAD_GONE"


class PreconditionError(UnchangedError):
    """A conditional write found another state than expected."""

    code = "PRECONDITION_FAILED"


class NeedsOperatorError(UnchangedError):
    """No repetition helps: a person has to act, as the message says."""

    code = "NEEDS_OPERATOR"


class AccessError(UnchangedError):
    """The credentials are missing or don't permit the call."""

    code = "ACCESS_DENIED"


class TransientError(S3CommitError):
    """Throttled, timed out or unreachable. It may have happened; a retry is harmless."""

    code = "TRANSIENT"


class OutcomeUnknownError(S3CommitError):
    """The commit was requested and no result was seen. It may be committed, now or later."""

    code = "OUTCOME_UNKNOWN"


class JobFailedError(S3CommitError):
    """The job has ended and is not committed: none of its files are visible.

    But for the code ``LISTS_LOST``: then the message names those that are.
    """

    code = "JOB_FAILED"


# Errors of reading one object that others can put: a listing shows it, and HEAD and GET are
# refused (400 of SSE-C, 403 of a foreign key, an archive), or its bytes are not as they should be.
# No retry helps. The error names that object, and ends nothing else (I12).
NOT_READABLE: Final = (InvalidInputError, JobRefusedError, NotFoundError, AccessError)
