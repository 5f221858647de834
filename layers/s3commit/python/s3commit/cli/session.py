"""The connections of the verbs, each made when it is first needed."""

import os
import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, cached_property, partial
from typing import Any

import click

from s3commit.aws import env
from s3commit.aws.clients import is_aws, make_client
from s3commit.aws.clock import SystemClock
from s3commit.aws.executions import StateMachine, check_machine, machine_of
from s3commit.aws.failures import answered, translated
from s3commit.aws.ledger import DynamoLedger
from s3commit.aws.parallel import ThreadMap
from s3commit.aws.s3 import S3ObjectStore
from s3commit.aws.settings import own_encryption
from s3commit.cli.deployment import Deployment, read_deployment
from s3commit.cli.render import Output, epoch_of
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.jobs.healing import doubt_about, is_untouched
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    NeedsOperatorError,
    NotFoundError,
    S3CommitError,
)
from s3commit.core.ports.bundle import Ports, S3Ports
from s3commit.core.ports.clock import Clock
from s3commit.core.ports.executions import Execution, Executions
from s3commit.core.ports.ledger import Ledger
from s3commit.core.ports.objects import ObjectStore
from s3commit.core.ports.parallel import ParallelMap
from s3commit.writer.connect import has_pipeline
from s3commit.writer.system import Environment

WORKERS = 16
# The verbs that change something: what they did, or did not, their errors say.
CHANGES = {"abort", "commit", "undo", "rescue", "sweep", "pause", "resume", "redrive"}


class Session:
    """The context of one command: connections, by the standard AWS configuration, and output.

    Tests set `store`, `has_pipeline`, `deployments`, `parallel`, `clock` and `environment`, and put
    a ledger into `ledgers` and executions into `machines`.

    Which table: what is typed wins over the environment, and so does the deployment that is typed.
    If neither says one, the stack of the deployment without a name does. Which state machine: that
    of the deployment with this table, or of the environment if the table is the environment's.
    """

    def __init__(self) -> None:
        self.out = Output()
        self.clock: Clock = SystemClock()
        self.environment = Environment()
        self.parallel: ParallelMap = ThreadMap(WORKERS)  # results in any order
        self.ledgers: dict[str, Ledger] = {}
        self.machines: dict[str, Executions] = {}
        self.deployments: Callable[[str | None], Deployment] = cache(read_deployment)  # by name
        self.trusted: dict[str, bool] = {}  # each table that was looked at; False: it was restored
        self.begun = ""  # once something is changed: what an error says then
        self.unread = False  # a stack, once: a network that lets no request through costs seconds
        self.typed: dict[str, Any] = {}  # "table", "name", "destination", "dry_run"

    @cached_property
    def store(self) -> ObjectStore:
        """The object store; of all verbs only `rescue` completes uploads."""
        with translated("connecting to S3"):
            return S3ObjectStore(make_client(connections=WORKERS), encryption=own_encryption())

    def has_pipeline(self, bucket: str) -> bool | None:
        """See `s3commit.writer.connect.has_pipeline`; None also if that can't be asked."""
        with suppress(S3CommitError), translated("connecting to S3"):
            return has_pipeline(make_client(), bucket)
        return None

    def ledger(self, table: str) -> Ledger:
        """The ledger in the table; a warning that it lacks jobs comes before all else.

        Raises `NeedsOperatorError` (``LEDGER_RESTORED``) for a verb of `CHANGES`.
        """
        if table not in self.ledgers:
            with translated(f"connecting to table {table}"):
                self.ledgers[table] = DynamoLedger(table)
        if table not in self.trusted:
            self._look_at(table)
        return self.ledgers[table]

    def trusted_ledger(self, table: str | None) -> Ledger | None:
        """The same; None without a table, and for a restored one: S3 alone knows its jobs."""
        found = self.ledger(table) if table else None
        return found if table and self.trusted[table] else None

    def _look_at(self, table: str) -> None:
        """Find out if the table knows what was decided; without the right to, say nothing."""
        doubt, context = "", click.get_current_context(silent=True)
        trusted = True
        try:
            doubt = doubt_about(self.ledgers[table], first=partial(self._is_first, table))
        except NeedsOperatorError as error:
            if context and context.info_name in CHANGES:
                raise
            doubt, trusted = f"{error.message} [{error.code}]", False
        except S3CommitError:  # the verb's own request says it, if it fails too
            pass
        self.trusted[table] = trusted
        self.out.warn(doubt)

    def _is_first(self, table: str) -> bool:
        """True if the deployment of the table is known never to have decided a job."""
        with suppress(S3CommitError):
            around = self.deployment_of(table)
            bucket = around.storage.get(env.BUCKET_OUTPUT) if around else None
            return bucket is not None and is_untouched(self.store, bucket)
        return False

    @property
    def deployment(self) -> Deployment:
        """The deployment that is typed, or the one without a name."""
        return self.deployments(self.typed.get("name"))

    @property
    def where(self) -> str:
        """The options that a next command needs to work on the same table."""
        said = [(name, self.typed.get(name)) for name in ("table", "name")]
        return "".join(f" --{name} {shlex.quote(text)}" for name, text in said if text is not None)

    def named_table(self) -> str | None:
        """The ledger's table, if it is typed, or its deployment, or else by the environment.

        Empty if there is to be none. Raises as `table`.
        """
        if (typed := self.typed.get("table")) is not None:
            return str(typed)
        return self._stacks_table() if self.typed.get("name") else os.environ.get(env.TABLE) or None

    def table(self, otherwise: str = "") -> str:
        """The ledger's table as `named_table`, or that of the deployment without a name.

        ``otherwise`` ends the error's list of what can be named instead. Raises `NotFoundError`
        (``NO_STACK``), and `AccessError` if the caller has no right to read the stack.
        """
        named = self.named_table()
        return self._stacks_table(otherwise) if named is None else named

    def table_of(self, job: JobDirectory) -> str | None:
        """The ledger's table as `named_table`, or the deployment's if the job's bucket is its own.

        S3 alone shows a job whose place is known, so a stack or table that can't be read is not an
        error.
        """
        named = self.named_table()
        if named is not None:
            return named or None
        try:
            if self.deployment.storage.get(env.BUCKET_OUTPUT) == job.bucket:
                table = self._stacks_table()
                self.ledger(table).job(job.ref)
                return table
        except NeedsOperatorError:
            raise
        except S3CommitError:
            pass
        return None

    def machine(self, table: str | None) -> str | None:
        """The state machine beside the table; one of another ledger would decide a job again."""
        with suppress(S3CommitError, KeyError):
            if around := self.deployment_of(table):
                return around.pipeline[env.STATE_MACHINE_OUTPUT]
        beside = table is not None and table == os.environ.get(env.TABLE)
        found = os.environ.get(env.STATE_MACHINE) if beside else None
        try:
            return check_machine(found) if found else None
        except InvalidInputError as error:
            raise click.UsageError(f"{env.STATE_MACHINE}: {error.message}") from error

    def parameters(self, table: str) -> dict[str, Any] | None:
        """The deployment's parameters, if that table is its own and its stack says so."""
        around = self.deployment_of(table)
        return around.parameters if around else None

    def deployment_of(self, table: str | None) -> Deployment | None:
        """The deployment, if its stack can be read and says that the table is its own."""
        if table is None or self.unread:
            return None
        try:
            own = self.deployment.storage.get(env.TABLE_OUTPUT)
        except S3CommitError:
            self.unread = True
            return None
        return self.deployment if own == table else None

    def _stacks_table(self, otherwise: str = "") -> str:
        around = self.deployment
        instead = (
            f"name the deployment with --name, or the ledger's table with --table or {env.TABLE}"
        )
        try:
            table = around.storage.get(env.TABLE_OUTPUT)
        except AccessError as error:
            if not answered(error):  # there are no credentials
                raise
            raise AccessError(f"{error.message}; {instead}{otherwise}") from error
        if table is None:
            stack = around.stack(env.STORAGE_STACK)
            raise NotFoundError(
                f"no stack {stack} in this account and region names the ledger's table:"
                f" {instead}{otherwise}",
                code="NO_STACK",
            )
        return table

    def has_console(self) -> bool:
        """True if executions are on AWS itself, whose console shows them: no emulator has one."""
        try:
            return is_aws(self.deployment.connect("stepfunctions"))
        except S3CommitError:
            return False

    def executions(self, machine: str) -> Executions:
        """The executions of the state machine with that ARN."""
        if machine not in self.machines:
            with translated("connecting to Step Functions"):
                self.machines[machine] = StateMachine(machine)
        return self.machines[machine]

    @property
    def s3(self) -> S3Ports:
        """The ports of the rules that ask S3 alone."""
        return S3Ports(self.store, parallel=self.parallel)

    def ports(self, table: str) -> Ports:
        """The ports of all of the protocol's rules."""
        return Ports(self.store, self.ledger(table), self.clock, parallel=self.parallel)

    def epoch(self) -> float:
        """The present in seconds since 1970."""
        return epoch_of(self.clock.now())

    def describe(self, arn: str) -> Execution | None:
        """The facts of an execution; None for another ARN."""
        machine = machine_of(arn)
        return self.executions(machine).describe(arn) if machine else None

    def read_executions(self, arns: Iterable[str]) -> tuple[dict[str, Execution], list[str]]:
        """Each execution that has an ARN, by it, and the error of looking.

        A caller without the right to executions still sees all the rest.
        """
        found: dict[str, Execution] = {}
        for arn in sorted(set(arns)):
            try:
                if execution := self.describe(arn):
                    found[arn] = execution
            except S3CommitError as error:
                return found, [f"executions cannot be read: {error.message}"]
        return found, []
