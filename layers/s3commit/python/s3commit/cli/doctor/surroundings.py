"""What the checks look at. They change nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any

from s3commit.aws import env
from s3commit.aws.failures import translated
from s3commit.core.model.errors import InvalidInputError, NotFoundError
from s3commit.writer.bucket import queues_by_suffix


class Verdict(StrEnum):
    """``SKIPPED``: it could not be looked at, or nothing is there; that is no failure."""

    OK = "ok"
    DO = "do"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """A check's answer in one line: what is so, or what to do."""

    verdict: Verdict
    text: str


ok = partial(Finding, Verdict.OK)  # all is well
to_do = partial(Finding, Verdict.DO)  # something has to be done, and the text says what
skipped = partial(Finding, Verdict.SKIPPED)  # it was not looked at, and the text says why


class NoBucketError(NotFoundError):
    """Nobody has said which bucket is meant, so nothing of it is looked at."""


@dataclass
class Surroundings:
    """Account, region and deployment. ``connect`` gives a boto3 client; tests give their own.

    ``name`` is the deployment's parameter of that name, ``bucket`` the data bucket if no stack is
    to be asked for it; ``role`` is the ARN of a Spark role that writes below ``prefix``. With a
    prefix alone it is the caller who writes there.
    """

    region: str | None
    connect: Callable[[str], Any]
    name: str | None = None
    bucket: str | None = None
    role: str | None = None
    prefix: str = ""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _outputs: dict[str, dict[str, str] | None] = field(default_factory=dict)
    _notified: dict[str, list[str]] | None = None

    def stack(self, stack: str) -> str:
        """The stack's name in this deployment."""
        return f"{stack}-{self.name}" if self.name else stack

    def outputs(self, stack: str) -> dict[str, str] | None:
        """The stack's outputs by name; None if it is not deployed.

        Raises `AccessError` if the caller may not read it.
        """
        if stack not in self._outputs:
            self._outputs[stack] = self._read(self.stack(stack))
        return self._outputs[stack]

    def data_bucket(self) -> str:
        """The name that was given, or the one that the storage stack says.

        Raises `NoBucketError` if neither does.
        """
        found = self.bucket or (self.outputs(env.STORAGE_STACK) or {}).get(env.BUCKET_OUTPUT)
        if found is None:
            raise NoBucketError("no stack says which bucket: name it with --bucket")
        return found

    def notified(self) -> dict[str, list[str]]:
        """The ARNs of the queues that the bucket notifies, by the suffix of the keys."""
        if self._notified is None:
            bucket, what = self.data_bucket(), "get_bucket_notification_configuration"
            doing = f"reading the notifications of bucket {bucket}"
            self._notified = queues_by_suffix(self.ask(doing, "s3", what, Bucket=bucket))
        return self._notified

    def ask(self, doing: str, service: str, operation: str, **parameters: Any) -> Any:
        """What AWS answers; its errors are this package's, with what was being done."""
        with translated(doing):
            return getattr(self.connect(service), operation)(**parameters)

    def bucket_setting(self, name: str, operation: str) -> Any | None:
        """What S3 says of a setting of the data bucket; None if it has none."""
        bucket = self.data_bucket()
        try:
            return self.ask(
                f"reading the {name} of bucket {bucket}", "s3", operation, Bucket=bucket
            )
        except NotFoundError:
            return None

    def _read(self, name: str) -> dict[str, str] | None:
        doing = f"reading stack {name}"
        try:
            (stack,) = self.ask(doing, "cloudformation", "describe_stacks", StackName=name)[
                "Stacks"
            ]
        except NotFoundError:
            return None
        except InvalidInputError as error:
            # CloudFormation says ValidationError of a stack that is not there.
            if "does not exist" not in error.message:
                raise
            return None
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}
