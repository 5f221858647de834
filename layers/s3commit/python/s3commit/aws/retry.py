"""Repeating what another request for the same object stood in the way of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from s3commit.core.model.errors import CONFLICT, TransientError

T = TypeVar("T")


def settle(
    attempt: Callable[[], T], *, tries: int, pause: float, sleep: Callable[[float], None]
) -> T:
    """What ``attempt`` returns; repeated while AWS answers that another request was under way.

    Such an answer, a 409 of S3, says that nothing has happened. ``pause`` is in seconds and doubles
    each time.
    """
    for number in range(tries - 1):
        try:
            return attempt()
        except TransientError as error:
            if error.code != CONFLICT:
                raise
        sleep(pause * 2**number)
    return attempt()
