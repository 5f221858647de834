"""Errors as Spark's user should see them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from s3commit.core.model.errors import S3CommitError

P = ParamSpec("P")
R = TypeVar("R")


def short_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Let our own errors out of ``function`` without the way they came.

    Spark puts the traceback of a Python error into the message that its user sees; what happened
    and what to do would stand at the end of it.
    """

    @functools.wraps(function)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except S3CommitError as error:
            raise error.with_traceback(None) from None

    return told
