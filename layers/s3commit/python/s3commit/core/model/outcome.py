"""How a job ended."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from s3commit.core.model.fields import Text

MAX_TEXT: Final = 1024  # characters of the client's name, and of the reason of an abort
ALREADY_COMMITTED = "ALREADY_COMMITTED"  # code of a job whose idempotency key another job has

LISTS_LOST = "LISTS_LOST"  # code of a decided job that was abandoned, since its lists were lost


class Outcome(StrEnum):
    """How a job ended, as its client reads it."""

    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"
    ROLLED_BACK = "ROLLED_BACK"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job was not committed; ``code`` is stable."""

    code: str
    message: Annotated[str, Text(16 * MAX_TEXT)]
