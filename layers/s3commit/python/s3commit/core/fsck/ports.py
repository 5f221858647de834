"""What a check needs beyond the protocol's ports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports


class JobExecutions(Protocol):
    """The executions that work on jobs."""

    def is_running(self, directory: JobDirectory, record: JobRecord | None) -> bool:
        """Whether an execution works on the job: the one that the record names, or its first."""
        ...

    def start(self, directory: JobDirectory, record: JobRecord | None) -> bool:
        """Start one to go on with the job as its record is; False if that was done before.

        Raises `InvalidInputError` if nobody has said where.
        """
        ...


@dataclass(frozen=True, slots=True)
class Fsck:
    """What a check works on. Of the pipeline's store it never completes an upload."""

    ports: Ports
    executions: JobExecutions
