"""What a check reaches the world by: S3, the ledger, and the executions of Step Functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Any, TypeVar, cast

from s3commit.aws import env
from s3commit.aws.arns import machine_of
from s3commit.cli.session import Session
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.fsck.ports import Fsck
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.objects import ObjectStore

NO_STATE_MACHINE = "NO_STATE_MACHINE"
TELL_EVERY = 100_000  # keys
LISTINGS = frozenset({"list", "list_uploads"})

Listed = TypeVar("Listed")


class SessionHands:
    """Implements `JobExecutions` on the session's executions.

    ``machine`` is where to start one for a job whose record names no execution.
    """

    def __init__(self, session: Session, machine: str | None) -> None:
        self._session = session
        self._machine = machine

    def is_running(self, directory: JobDirectory, record: JobRecord | None) -> bool:
        """See `JobExecutions.is_running`."""
        execution = record.execution if record else ""
        machine = machine_of(execution)
        if machine is None:
            # As the pipeline names the first one, which may not have come to the ledger yet.
            machine, execution = self._machine, directory.ref
        if machine is None:
            return False
        return self._session.executions(machine).describe(execution).is_running

    def start(self, directory: JobDirectory, record: JobRecord | None) -> bool:
        """See `JobExecutions.start`.

        The name carries the generation: two checks that see the same start one execution. It
        carries the hour, so that one which failed before it took the job over is tried again.
        """
        machine = self._machine or (machine_of(record.execution) if record else None)
        generation = record.generation if record else 0
        if machine is None:
            raise InvalidInputError(
                f"to go on with job {directory.job_id} name the state machine with --state-machine"
                f" or {env.STATE_MACHINE}, or: s3commit commit {directory.uri}",
                code=NO_STATE_MACHINE,
            )
        now = datetime.fromtimestamp(self._session.environment.epoch(), UTC)
        name = f"{directory.ref}-fsck-{generation}-{now:%Y%m%d%H}"
        return self._session.executions(machine).start(name, directory) is not None


class _Telling:
    """Counts what a port lists: whoever waits for a million keys wants to know how far it is."""

    def __init__(self, port: object, counter: Iterator[int], tell: Callable[[str], None]) -> None:
        self._port = port
        self._counter = counter
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._port, name)
        if name not in LISTINGS:
            return attribute
        return lambda *where, **how: self._counted(attribute(*where, **how))

    def _counted(self, listing: Iterator[Listed]) -> Iterator[Listed]:
        for one in listing:
            listed = next(self._counter)
            if listed % TELL_EVERY == 0:
                self._tell(f"... {listed:,} keys listed")
            yield one


def connect(session: Session, table: str, machine: str | None, tell: Callable[[str], None]) -> Fsck:
    """The check's ports; ``tell`` is told how far it is."""
    counter = count(1)
    # The session's store is a writer's, so that no verb completes an upload; neither does a check.
    store = cast("ObjectStore", _Telling(session.store, counter, tell))
    ports = session.ports(store, session.ledger(table))
    return Fsck(ports, SessionHands(session, machine))
