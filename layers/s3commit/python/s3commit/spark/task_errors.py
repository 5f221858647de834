"""How an `S3CommitError` gets from a task to the driver, which sees a traceback's text alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from s3commit.core.formats.strict_json import one_line
from s3commit.core.model.errors import S3CommitError

_SHOWN: Final = re.compile(
    rf"^{re.escape(S3CommitError.__module__)}\.S3CommitError: \[(\w+) (\w+)\] (.*)$", re.MULTILINE
)


def for_the_driver(error: S3CommitError) -> S3CommitError:
    """The error that a task raises for ``error``: class and code are in the text.

    Without a traceback: Spark Connect hands on the first 2 KB of that alone.
    """
    return S3CommitError(f"[{type(error).__name__} {error.code}] {one_line(error.message)}")


def of_a_task(error: Exception) -> S3CommitError | None:
    """The error that a task raised, if Spark's ``error`` shows one; of several tries the last.

    A class that this process does not know is an `S3CommitError` here.
    """
    found = _SHOWN.findall(str(error))
    if not found:
        return None
    name, code, message = found[-1]
    kind = next((one for one in _kinds(S3CommitError) if one.__name__ == name), S3CommitError)
    return kind(message, code=code)


def _kinds(kind: type[S3CommitError]) -> Iterator[type[S3CommitError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
