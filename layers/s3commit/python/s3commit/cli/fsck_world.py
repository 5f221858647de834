"""What a check reaches the world by: versions in S3, and the executions of Step Functions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from s3commit.aws import env
from s3commit.aws.failures import answered, translated
from s3commit.cli.executions import is_arn, is_dead, machine_of
from s3commit.cli.peek import S3Peek
from s3commit.cli.session import Session
from s3commit.core.errors import InvalidInputError
from s3commit.core.fsck.ports import Fsck, SeenVersion
from s3commit.core.layout import JobDirectory
from s3commit.core.model import JobRecord
from s3commit.core.ports import ObjectStore
from s3commit.core.protocol.pipeline import Pipeline

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

NO_STATE_MACHINE = "NO_STATE_MACHINE"


class S3Looks(S3Peek):
    """Implements `Looks`."""

    def __init__(self, client: S3Client) -> None:
        super().__init__(client)
        self._s3 = client

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

    def is_running(self, place: JobDirectory, record: JobRecord | None) -> bool:
        """See `Hands.is_running`."""
        execution = record.execution if record else ""
        if not is_arn(execution):
            if self._machine is None:
                return False
            # As the pipeline names the first one, which may not have come to the ledger yet.
            execution = f"{self._machine.replace(':stateMachine:', ':execution:')}:{place.job_id}"
        return not is_dead(self._session.executions.status(execution))

    def start(self, place: JobDirectory, record: JobRecord | None) -> bool:
        """See `Hands.start`.

        The name carries the generation: two checks that see the same start one execution. It
        carries the hour, so that one which failed before it took the job over is tried again.
        """
        machine = self._machine or (machine_of(record.execution) if record else None)
        generation = record.generation if record else 0
        if machine is None:
            raise InvalidInputError(
                f"to go on with job {place.job_id} name the state machine with --state-machine or"
                f" {env.STATE_MACHINE}, or: s3commit commit {place.uri}",
                code=NO_STATE_MACHINE,
            )
        now = datetime.fromtimestamp(self._session.environment.epoch(), UTC)
        name = f"{place.job_id}-fsck-{generation}-{now:%Y%m%d%H}"
        try:
            self._session.executions.start(machine, name, place)
        except InvalidInputError as error:
            if answered(error) != "ExecutionAlreadyExists":
                raise
            return False
        return True


class _Clock:
    def __init__(self, session: Session) -> None:
        self._session = session

    def now(self) -> str:
        """See `Clock.now`."""
        now = datetime.fromtimestamp(self._session.environment.epoch(), UTC)
        return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def connect(session: Session, table: str, machine: str | None) -> Fsck:
    """The check's ports."""
    # The session's store is a writer's, so that no verb completes an upload; neither does a check.
    store = cast("ObjectStore", session.store)
    pipeline = Pipeline(store, session.ledger(table), _Clock(session), session.parallel)
    return Fsck(pipeline, session.looks, SessionHands(session, machine))
