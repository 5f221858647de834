"""The embedded runtime as one object."""

import fcntl
import functools
import json
import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

import boto3
from botocore.config import Config
from moto.awslambda.models import lambda_backends
from moto.moto_server.werkzeug_app import create_backend_app
from moto.sqs.models import sqs_backends

from s3commit.aws import env
from s3commit.local import ACCOUNT, BUCKET, REGION, LocalRuntimeError, moto_patches
from s3commit.local.assembly import load_assembly
from s3commit.local.lambda_executor import Executor, spec_of
from s3commit.local.loader import check, load, rename_data_bucket
from s3commit.local.metrics import LAMBDA, Metrics
from s3commit.local.resources import Context
from s3commit.local.serving import Endpoint, Middleware, forget_everything
from s3commit.local.triggers import Now, Poller, Ticker
from s3commit.local.worker import THROTTLED, CallOutcome

ACCESS_KEY = "local"
SECRET_KEY = "local"
KEPT_CALLS = 2_000  # of each function; their logs are kept in memory
_RUNNING = threading.Lock()
_POOL: Any = {"max_pool_connections": 128}
_PREFIX = "s3commit-local-"  # of a runtime's directory
_ALIVE = "alive"  # a file in it, which the runtime has locked


class LocalRuntime:
    """Runs the template of ``assembly`` on ``127.0.0.1``; all state is in memory.

    A context manager. ``port`` 0 takes a free one; ``bucket`` renames the data bucket. One runtime
    a process at a time: moto's state is the process's. ``middleware`` sees each request before
    AWS's APIs do. To make or enter it raises `LocalRuntimeError` and `UnsupportedTemplateError`.
    Then it has ``endpoint``, the URL of every AWS API; ``outputs``, those of all stacks by name;
    and of these ``bucket``, ``table`` and ``state_machine_arn``, empty where a template has none.
    """

    def __init__(
        self,
        assembly: Path,
        *,
        port: int = 0,
        bucket: str | None = None,
        verbose: bool = False,
        now: Now = partial(datetime.now, UTC),  # noqa: B008 - a function, called later
        middleware: Middleware | None = None,
    ) -> None:
        self._assembly = load_assembly(assembly)
        check(self._assembly)
        if bucket:
            rename_data_bucket(self._assembly, bucket)
        self._serve = partial(Endpoint, port, verbose=verbose, middleware=middleware)
        self._now = now
        self._session, self._connecting = functools.cache(boto3.session.Session), threading.Lock()
        self._pollers: list[Poller] = []
        self.metrics = Metrics(now)
        self.outputs: dict[str, str] = {}

    def __enter__(self) -> Self:
        """Serve, create every resource, and begin to poll and to tick."""
        if not _RUNNING.acquire(blocking=False):
            raise LocalRuntimeError("an embedded runtime is running in this process already")
        with ExitStack() as started:
            started.callback(_RUNNING.release)
            self._start(started)
            self._running = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything, last first; no thread of ours and no process is left."""
        self._running.close()

    def _start(self, started: ExitStack) -> None:
        forget_everything()
        started.callback(forget_everything)
        _remove_dead()
        temporary = tempfile.TemporaryDirectory(prefix=_PREFIX)
        directory = Path(started.enter_context(temporary))
        lock = started.enter_context((directory / "new").open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        (directory / "new").rename(directory / _ALIVE)
        served = self._serve()
        started.callback(served.close)
        self.endpoint, served.moto.create_app = served.url, self._application
        self.executor = Executor(directory, self.environment())
        started.callback(moto_patches.apply_patches(self).undo)
        # The workers end before the threads that wait for them: a long call must not delay the end.
        started.callback(self._each_poller, Poller.join)
        started.callback(self.executor.close)
        started.callback(_stop_executions)
        started.callback(self._each_poller, Poller.stop)
        self._context = Context(functools.cache(self.client), directory)
        self.outputs = load(self._assembly, self._context)
        named = (env.BUCKET_OUTPUT, env.TABLE_OUTPUT, env.STATE_MACHINE_OUTPUT)
        said = (self.outputs.get(name, "") for name in named)
        self.bucket, self.table, self.state_machine_arn = said
        ticker = Ticker(self._now)
        ticker.start()
        started.callback(ticker.stop)

    def environment(self) -> dict[str, str]:
        """The standard AWS variables that lead any SDK here."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def names(self) -> dict[str, str]:
        """The `environment`, and what the command and a program name: table, machine, bucket."""
        return {
            **self.environment(),
            env.TABLE: self.table,
            env.STATE_MACHINE: self.state_machine_arn,
            BUCKET: self.bucket,
        }

    def client(self, service: str, **config: Any) -> Any:
        """A boto3 client of this runtime; the process's AWS configuration is not looked at.

        ``config`` are settings of botocore's besides.
        """
        with self._connecting:  # a session is not thread-safe, and one of each client's own is slow
            return self._session().client(
                cast("Any", service),
                region_name=REGION,
                endpoint_url=self.endpoint,
                aws_access_key_id=ACCESS_KEY,
                aws_secret_access_key=SECRET_KEY,
                config=Config(retries={"total_max_attempts": 1}, **_POOL, **config),
            )

    def ready_line(self) -> str:
        """The one line of JSON that says where everything is."""
        return json.dumps(
            {
                "endpoint": self.endpoint,
                "bucket": self.bucket,
                "region": REGION,
                "table": self.table,
                "stateMachine": self.state_machine_arn,
                "accessKey": ACCESS_KEY,
                "secretKey": SECRET_KEY,
            }
        )

    def invoke(self, function: Any, payload: bytes) -> CallOutcome:
        """Call moto's function (for the patches); one whose concurrency is 0 is throttled."""
        name = function.function_name
        if function.reserved_concurrency == 0:
            self.metrics.count(LAMBDA, "Throttles", FunctionName=name)
            return THROTTLED
        outcome = self.executor.invoke(spec_of(function), payload)
        self.metrics.called(name, outcome)
        if outcome.logs.strip():
            _keep_logs(function, outcome.logs)
        return outcome

    def add_mapping(self, mapping: Any) -> None:
        """Poll for moto's event source mapping (for the patches)."""

        def call(payload: bytes) -> CallOutcome:
            function = lambda_backends[ACCOUNT][REGION].get_function(mapping.function_arn)
            return self.invoke(function, payload)

        self._pollers.append(Poller(mapping, sqs_backends[ACCOUNT][REGION], call))

    def remove_mapping(self, mapping: Any) -> None:
        """Poll for a mapping no longer, which was deleted (for the patches)."""
        for poller in [one for one in self._pollers if one.mapping is mapping]:
            self._pollers.remove(poller)
            poller.stop()
            poller.join()

    def _application(self, service: Any) -> Any:
        """Moto's; CloudFormation, which takes 0.9 s to load, gets the stacks when it is asked."""
        if service == "cloudformation":
            from moto.cloudformation.models import cloudformation_backends

            for name, template in self._context.stacks.items():
                cloudformation_backends[ACCOUNT][REGION].create_stack(name, template, {})
        return create_backend_app(service)

    def _each_poller(self, act: Callable[[Poller], None]) -> None:
        for poller in self._pollers:
            act(poller)


def _remove_dead() -> None:
    """Remove the directories of runtimes that were killed: nothing else would."""
    for alive in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_ALIVE}"):
        with suppress(OSError), alive.open("w") as lock:  # another user's, or it is alive
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(alive.parent, ignore_errors=True)


def _keep_logs(function: Any, logs: str) -> None:
    """Have CloudWatch Logs keep them, in a group with the function's name."""
    group = function.logs_group_name = function.function_name
    function.logs_backend.ensure_log_group(group)
    function.save_logs(logs)
    streams = function.logs_backend.groups[group].streams  # one for each call
    while len(streams) > KEPT_CALLS:
        streams.pop(next(iter(streams)), None)


def _stop_executions() -> None:
    from moto.stepfunctions.parser.models import stepfunctions_parser_backends

    for machine in stepfunctions_parser_backends[ACCOUNT][REGION].state_machines:
        for execution in machine.executions:
            if execution.status == "RUNNING":
                execution.stop(stop_date=None, error=None, cause="the runtime stops")
