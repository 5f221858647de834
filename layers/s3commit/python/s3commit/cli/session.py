"""What the verbs reach the world by, connected when it is first needed."""

# ruff: noqa: PLC0415 - boto3 takes 300 ms: `--help` and a usage error do not pay for it
from __future__ import annotations

from collections.abc import Iterable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, cast

from s3commit.aws.arns import machine_of
from s3commit.core.model.errors import S3CommitError
from s3commit.writer.environment import Environment, SystemEnvironment, timestamp

if TYPE_CHECKING:
    from s3commit.cli.doctor import Surroundings
    from s3commit.core.ports.bundle import ParallelMap, Ports, Sweeper
    from s3commit.core.ports.executions import Execution, Executions
    from s3commit.core.ports.ledger import Ledger
    from s3commit.core.ports.objects import ObjectStore

WORKERS = 16


class _Clock:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def now(self) -> str:
        """See `Clock.now`."""
        return timestamp(self._environment)

    def sleep(self, seconds: float) -> None:
        """See `Clock.sleep`."""
        self._environment.sleep(seconds)


class Session:
    """What one command works on, by the standard AWS configuration.

    Tests set `store`, `parallel` and `environment`, and put a ledger into `ledgers` and
    executions into `machines`.
    """

    def __init__(self) -> None:
        self.environment: Environment = SystemEnvironment()
        self.ledgers: dict[str, Ledger] = {}
        self.machines: dict[str, Executions] = {}

    @cached_property
    def store(self) -> ObjectStore:
        """The object store; of all verbs only `rescue` completes uploads."""
        from s3commit.aws.failures import translated
        from s3commit.aws.s3 import S3ObjectStore
        from s3commit.aws.s3_client import make_client

        with translated("connecting to S3"):
            return S3ObjectStore(make_client(connections=WORKERS))

    def executions(self, machine: str) -> Executions:
        """The executions of the state machine with that ARN."""
        from s3commit.aws.executions import StateMachine
        from s3commit.aws.failures import translated

        if machine not in self.machines:
            with translated("connecting to Step Functions"):
                self.machines[machine] = StateMachine(machine)
        return self.machines[machine]

    def describe(self, arn: str) -> Execution:
        """What is known of an execution."""
        return self.executions(machine_of(arn) or "").describe(arn)

    def read_executions(
        self, executions: Iterable[str]
    ) -> tuple[dict[str, Execution], tuple[str, ...]]:
        """Each execution that has an ARN, by it, and what went wrong with asking.

        Who may not look at executions still sees all the rest.
        """
        found: dict[str, Execution] = {}
        for arn in sorted({one for one in executions if machine_of(one)}):
            try:
                found[arn] = self.describe(arn)
            except S3CommitError as error:
                return found, (f"executions can not be looked at: {error.message}",)
        return found, ()

    @cached_property
    def parallel(self) -> ParallelMap:
        """The map for many small requests; results in any order."""
        from s3commit.aws.parallel import ThreadMap

        return ThreadMap(WORKERS)

    def ledger(self, table: str) -> Ledger:
        """The ledger in the table."""
        from s3commit.aws.failures import translated
        from s3commit.aws.ledger import DynamoLedger

        if table not in self.ledgers:
            with translated(f"connecting to table {table}"):
                self.ledgers[table] = DynamoLedger(table)
        return self.ledgers[table]

    def ports(self, store: ObjectStore, ledger: Ledger | None) -> Ports:
        """What the protocol's reading rules work on; without a ledger none may be asked."""
        from s3commit.core.ports.bundle import Ports

        return Ports(store, cast("Ledger", ledger), _Clock(self.environment), self.parallel)

    def sweeper(self, table: str, machine: str) -> Sweeper:
        """What a sweep works on; ``machine`` is the state machine's ARN."""
        from s3commit.core.ports.bundle import Sweeper

        return Sweeper(self.ports(self.store, self.ledger(table)), self.executions(machine))

    def surroundings(self, **options: Any) -> Surroundings:
        """What `doctor` looks at, with the options of `Surroundings`."""
        import os

        import boto3.session

        from s3commit.aws.failures import translated
        from s3commit.aws.session import make_session
        from s3commit.aws.settings import region
        from s3commit.cli.doctor import Surroundings

        with translated("reading the AWS configuration"):
            where = region(os.environ) or boto3.session.Session().region_name
        session = cache(lambda: make_session(where))
        connect = cache(lambda service: session().create_client(service))
        return Surroundings(where, connect, **options)
