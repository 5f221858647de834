"""What the verbs reach the world by, connected when it is first needed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from typing import Any, cast

from s3commit.aws import env
from s3commit.aws.clock import SystemClock
from s3commit.aws.executions import StateMachine, machine_of
from s3commit.aws.failures import translated
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.parallel import ThreadMap
from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.session import make_client, make_session, own_encryption
from s3commit.aws.settings import region
from s3commit.cli.render import Output, epoch_of
from s3commit.core.model.errors import InvalidInputError, NotFoundError, S3CommitError
from s3commit.core.ports.bundle import Clock, Execution, Executions, ParallelMap, Ports
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import ObjectStore
from s3commit.writer.connect import has_pipeline
from s3commit.writer.environment import Environment

WORKERS = 16


class Session:
    """What one command works on, by the standard AWS configuration, and where it prints.

    Tests set `store`, `has_pipeline`, `parallel`, `clock` and `environment`, and put a ledger into
    `ledgers` and executions into `machines`.
    """

    def __init__(self) -> None:
        self.out = Output()
        self.clock: Clock = SystemClock()
        self.environment = Environment()
        self.parallel: ParallelMap = ThreadMap(WORKERS)  # results in any order
        self.ledgers: dict[str, Ledger] = {}
        self.machines: dict[str, Executions] = {}

    @cached_property
    def store(self) -> ObjectStore:
        """The object store; of all verbs only `rescue` completes uploads."""
        with translated("connecting to S3"):
            return S3ObjectStore(make_client(connections=WORKERS), encryption=own_encryption())

    def has_pipeline(self, bucket: str) -> bool | None:
        """See `s3commit.writer.connect.has_pipeline`."""
        with translated("connecting to S3"):
            return has_pipeline(make_client(), bucket)

    def ledger(self, table: str) -> Ledger:
        """The ledger in the table."""
        if table not in self.ledgers:
            with translated(f"connecting to table {table}"):
                self.ledgers[table] = DynamoLedger(table)
        return self.ledgers[table]

    def table_of(self, name: str | None) -> str:
        """The ledger's table of the deployment with that name, as its stack says.

        Raises `NotFoundError` (``NO_STACK``).
        """
        stack = f"{env.STORAGE_STACK}-{name}" if name else env.STORAGE_STACK
        with translated("connecting to CloudFormation"):
            client = make_session(region(os.environ)).create_client("cloudformation")
        outputs = stack_outputs(client, stack)
        if outputs is not None and env.TABLE_OUTPUT in outputs:
            return outputs[env.TABLE_OUTPUT]
        lacking = (
            f"there is no stack {stack} in this account and region"
            if outputs is None
            else f"stack {stack} names no table, as while it is created, or if that failed"
        )
        raise NotFoundError(
            f"{lacking}: name the deployment with --name, or the ledger's table with --table or"
            f" {env.TABLE}",
            code="NO_STACK",
        )

    def executions(self, machine: str) -> Executions:
        """The executions of the state machine with that ARN."""
        if machine not in self.machines:
            with translated("connecting to Step Functions"):
                self.machines[machine] = StateMachine(machine)
        return self.machines[machine]

    def ports(self, table: str | None) -> Ports:
        """What the protocol's rules work on; without a table none may be asked of the ledger."""
        ledger = cast("Ledger", self.ledger(table) if table else None)
        return Ports(self.store, ledger, self.clock, self.parallel)

    def epoch(self) -> float:
        """The present in seconds since 1970."""
        return epoch_of(self.clock.now())

    def describe(self, arn: str) -> Execution | None:
        """What is known of an execution; None for what is no ARN of one."""
        machine = machine_of(arn)
        return self.executions(machine).describe(arn) if machine else None

    def read_executions(self, arns: Iterable[str]) -> tuple[dict[str, Execution], list[str]]:
        """Each execution that has an ARN, by it, and what went wrong with asking.

        Who may not look at executions still sees all the rest.
        """
        found: dict[str, Execution] = {}
        for arn in sorted(set(arns)):
            try:
                if execution := self.describe(arn):
                    found[arn] = execution
            except S3CommitError as error:
                return found, [f"executions can not be looked at: {error.message}"]
        return found, []


def stack_outputs(client: Any, stack: str) -> dict[str, str] | None:
    """The outputs of a stack by name, from a client of CloudFormation; None if there is no stack.

    Raises `AccessError` if the caller may not read it.
    """
    try:
        with translated(f"reading stack {stack}"):
            (found,) = client.describe_stacks(StackName=stack)["Stacks"]
    except NotFoundError:
        return None
    except InvalidInputError as error:
        # CloudFormation says ValidationError of a stack that is not there.
        if "does not exist" not in error.message:
            raise
        return None
    return {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}
