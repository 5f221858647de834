"""What a check reaches the world by: versions in S3, and the executions of Step Functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from s3commit.aws import env
from s3commit.aws.arns import is_arn, machine_of
from s3commit.aws.failures import translated
from s3commit.aws.s3_survey import S3Survey
from s3commit.cli.session import Session
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.fsck.ports import Fsck, SeenVersion
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.objects import ListedObject, ObjectStore, OpenUpload
from s3commit.core.ports.survey import SeenObject

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NO_STATE_MACHINE = "NO_STATE_MACHINE"
TELL_EVERY = 100_000  # keys

Listed = TypeVar("Listed")


class S3Looks:
    """Implements `Looks`."""

    def __init__(self, client: S3Client) -> None:
        self._s3 = client

    def objects(self, bucket: str, prefix: str) -> Iterator[SeenObject]:
        """See `Looks.objects`."""
        return S3Survey(self._s3).objects(bucket, prefix)

    def versions(self, bucket: str, key: str) -> Iterator[SeenVersion]:
        """See `Looks.versions`."""
        pages = self._s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=key)
        with translated(f"listing the versions of s3://{bucket}/{key}"):
            for page in pages:
                versions: list[Any] = [*page.get("Versions", ())]
                for one in versions:
                    if one["Key"] != key:
                        return  # in the order of keys, and this one's come first
                    yield SeenVersion(one["VersionId"], one["ETag"], one["Size"])


class SessionHands:
    """Implements `Hands` on the session's executions.

    ``machine`` is where to start one for a job whose record names no execution.
    """

    def __init__(self, session: Session, machine: str | None) -> None:
        self._session = session
        self._machine = machine

    def is_running(self, directory: JobDirectory, record: JobRecord | None) -> bool:
        """See `Hands.is_running`."""
        execution = record.execution if record else ""
        if not is_arn(execution):
            if self._machine is None:
                return False
            # As the pipeline names the first one, which may not have come to the ledger yet.
            execution = f"{self._machine.replace(':stateMachine:', ':execution:')}:{directory.ref}"
        machine = machine_of(execution) or ""
        return self._session.executions(machine).describe(execution).is_running

    def start(self, directory: JobDirectory, record: JobRecord | None) -> bool:
        """See `Hands.start`.

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
    """The store, which says how far it is: whoever waits for a million keys wants to know."""

    def __init__(self, store: ObjectStore, tell: Callable[[str], None]) -> None:
        self._store = store
        self._tell = tell
        self._listed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def list(self, bucket: str, prefix: str) -> Iterator[ListedObject]:
        """See `ObjectReader.list`."""
        return self._counted(self._store.list(bucket, prefix))

    def list_uploads(self, bucket: str, prefix: str) -> Iterator[OpenUpload]:
        """See `ObjectReader.list_uploads`."""
        return self._counted(self._store.list_uploads(bucket, prefix))

    def _counted(self, listing: Iterator[Listed]) -> Iterator[Listed]:
        for one in listing:
            self._listed += 1
            if self._listed % TELL_EVERY == 0:
                self._tell(f"... {self._listed:,} keys listed")
            yield one


def connect(session: Session, table: str, machine: str | None, tell: Callable[[str], None]) -> Fsck:
    """The check's ports; ``tell`` is told how far it is."""
    # The session's store is a writer's, so that no verb completes an upload; neither does a check.
    telling = _Telling(cast("ObjectStore", session.store), tell)
    ports = session.ports(telling, session.ledger(table))
    return Fsck(ports, session.looks, SessionHands(session, machine))
