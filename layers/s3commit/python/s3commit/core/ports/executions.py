"""The executions of the pipeline's state machine."""

from __future__ import annotations

from typing import Protocol

from s3commit.core.formats.layout import JobDirectory


class Executions(Protocol):
    """The executions of the pipeline's state machine."""

    def is_running(self, execution: str) -> bool:
        """Whether the execution, an ARN or a name of the machine's, still does something."""
        ...

    def start(self, name: str, directory: JobDirectory) -> bool:
        """Start one for the job; False if one of that name was started before."""
        ...
