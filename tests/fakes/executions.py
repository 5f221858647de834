"""Executions that a test may run."""

from collections.abc import Callable

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.ports.executions import FORGOTTEN, NO_REASON, Execution, Reason


class MemoryExecutions:
    """Implements `s3commit.core.ports.executions.Executions`: starts each name once, by ``run``.

    ``running`` are those that a test says are at work.
    """

    def __init__(self, run: Callable[[JobDirectory, str], object] = lambda *_: None) -> None:
        self._run = run
        self.running: set[str] = set()
        self.started: dict[str, JobDirectory] = {}
        self.requested_by = ""

    def describe(self, execution: str) -> Execution:
        return Execution("RUNNING" if execution in self.running else FORGOTTEN)

    def start(self, name: str, directory: JobDirectory, reason: Reason = NO_REASON) -> str | None:
        """See `Executions.start`; the name is the ARN."""
        if name in self.started:
            return None
        self.started[name], self.requested_by = directory, reason.requested_by
        self._run(directory, name)
        return name
