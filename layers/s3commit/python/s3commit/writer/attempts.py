"""Which attempts a commit is to count: what the program says, compared with what it has made."""

from __future__ import annotations

from collections.abc import Iterable

from s3commit.core.documents.request_json import CountedAttempt, refuse_two_attempts
from s3commit.core.model.errors import InvalidInputError
from s3commit.writer.task import Task


def chosen(attempts: Iterable[CountedAttempt | None]) -> tuple[CountedAttempt, ...]:
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


def refuse_left_out(tasks: Iterable[Task], counted: Iterable[CountedAttempt]) -> None:
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
