"""A job's id and the place that it writes to, and how it treats what is there."""

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Final

from s3commit.core.model.fields import Text

# An id becomes a part of keys, of an execution's name and of ledger keys: 80 characters is Step
# Functions' limit for a name, and a recovery appends a suffix to it.
ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
JobId = Annotated[str, Text(80)]


class Conflict(StrEnum):
    """The policy for files that are at the destination already."""

    APPEND = "append"
    FAIL = "fail"
    REPLACE = "replace"


class Scope(StrEnum):
    """How far a conflict policy reaches."""

    DIRECTORY = "directory"
    PARTITION = "partition"


@dataclass(frozen=True, slots=True)
class Destination:
    """``s3://bucket/prefix/``; ``prefix`` is not empty and ends with ``/``."""

    bucket: str
    prefix: str

    @property
    def uri(self) -> str:
        """The destination as people write it."""
        return f"s3://{self.bucket}/{self.prefix}"


def job_ref(job_id: str, destination: Destination) -> str:
    """The ledger's name of a job: its id, and 128 bits that say where it is (docs/adr/0004).

    Everyone with the right to list the bucket sees ids. The same id at another destination is
    another job, so it can't take this job's record, execution or lock. 69 of the 80 characters that
    Step Functions gives a name.
    """
    return f"{job_id}-{_digits(destination)}"


@lru_cache(maxsize=1024)
def _digits(destination: Destination) -> str:
    return hashlib.sha256(destination.uri.encode()).hexdigest()[:32]
