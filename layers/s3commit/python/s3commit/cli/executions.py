"""Executions of the state machine, as a person on call needs them."""

from __future__ import annotations

from collections.abc import Iterable

from s3commit.aws.arns import is_arn, machine_of
from s3commit.cli.session import Session
from s3commit.core.model.errors import S3CommitError
from s3commit.core.ports.executions import Execution


def describe(session: Session, arn: str) -> Execution:
    """What is known of the execution."""
    return session.executions(machine_of(arn) or "").describe(arn)


def read_executions(
    session: Session, executions: Iterable[str]
) -> tuple[dict[str, Execution], tuple[str, ...]]:
    """Each execution that has an ARN, by it, and what went wrong with asking.

    Who may not look at executions still sees all the rest.
    """
    found: dict[str, Execution] = {}
    for arn in sorted({one for one in executions if is_arn(one)}):
        try:
            found[arn] = describe(session, arn)
        except S3CommitError as error:
            return found, (f"executions can not be looked at: {error.message}",)
    return found, ()
