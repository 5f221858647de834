"""Where a run deploys s3commit, and removes it: an account of AWS, or the embedded runtime.

Both take the same synthesized assembly, whose parameters are the run's alone: those that a person
keeps in `cdk.json` name buckets and keys that a run must not touch.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError, WaiterError

from acceptance import things
from s3commit.aws import env
from s3commit.cli.deployment import read_deployment
from s3commit.local.assembly import load_assembly
from s3commit.local.loader import load
from s3commit.local.resources import Context

ROOT: Final = Path(__file__).parents[1]
STACKS: Final = (env.PIPELINE_STACK, env.STORAGE_STACK)  # in the order in which they are removed
PARAMETERS: Final[dict[str, Any]] = {"versioned": True, "sweepMinutes": 720, "logRetentionDays": 1}
MINUTES_TO_DELETE: Final = 30
UPDATING: Final = re.compile(r"UPDATE_.*IN_PROGRESS")


class NotSeenError(Exception):
    """The place cannot run it; the message says why."""


class BrokenError(Exception):
    """A promise is broken, or the run itself failed; the message says what was seen."""


_SYNTHESIZE: Final = (
    "import sys, pathlib, s3commit.local.synth as synth\n"
    "synth.synthesize(*map(pathlib.Path, sys.argv[1:]))"
)
STANDS_IN: Final = "stands-in-for-cloudformation"  # in the user agent of its calls


@cache
def _client(service: str, agent: str = "") -> Any:
    config = Config(user_agent_extra=agent, retries={"mode": "standard", "total_max_attempts": 8})
    return boto3.client(service, config=config)  # type: ignore[call-overload]


_stands_in: things.Clients = partial(_client, agent=STANDS_IN)


def _assembly(name: str, parameters: dict[str, Any]) -> Path:
    given = {"name": name, "bucketName": f"s3commit-{name}-data", **PARAMETERS, **parameters}
    context = {f"s3commit:{key}": value for key, value in given.items()}
    os.environ["CDK_CONTEXT_JSON"] = json.dumps(context)  # as the CDK hands them over
    out = _Named(name).home / "assembly"
    # A program of its own, which ends with all that it has started: no file comes after a removal.
    with running([sys.executable, "-c", _SYNTHESIZE, str(ROOT), str(out)]) as process:
        if process.wait() != 0:
            raise BrokenError(f"the app failed (exit {process.returncode}): see above")
    return out


@dataclass
class _Named:
    name: str

    @property
    def home(self) -> Path:
        """A run's own directory: another run may be under way beside it."""
        return ROOT / ".s3commit" / "acceptance" / self.name


@dataclass
class Embedded(_Named):
    """The embedded runtime: what `s3commit local up` serves is the account.

    Its loader stands in for CloudFormation, on the same machine: functions are directories there.
    """

    clients: things.Clients = field(default=_client)
    is_aws: bool = False

    @property
    def _directory(self) -> Path:
        return Path(tempfile.gettempdir()) / f"s3commit-{self.name}"

    def create(self) -> dict[str, str]:
        """Deploy; the outputs of both stacks by name."""
        self._directory.mkdir()
        stacks = load_assembly(_assembly(self.name, {}))
        named = tuple(replace(stack, name=f"{stack.name}-{self.name}") for stack in stacks)
        return load(named, Context(_stands_in, self._directory))

    def update(self, **_parameters: Any) -> None:
        """Raise `NotSeenError`."""
        raise NotSeenError("the embedded runtime creates a deployment and does not update it")

    def remove(self) -> list[str]:
        """Remove all that has the name; the errors, each in a line."""
        errors: list[str] = []
        for kind in things.KINDS:
            clients = self.clients if kind in things.OWN else _stands_in
            errors += things.remove(clients, self.name, kind)
        for directory in (self._directory, self.home):
            shutil.rmtree(directory, ignore_errors=True)
        return errors

    def left(self) -> list[str]:
        """What has the name, each in a line."""
        files = [str(one) for one in (self._directory, self.home) if one.exists()]
        found = things.found(_stands_in, self.name)
        return [f"{kind} {thing}" for kind, thing, _ in found] + files


@dataclass
class Aws(_Named):
    """An account and region of AWS that are bootstrapped for the CDK."""

    clients: things.Clients = field(default=_client)
    is_aws: bool = True

    @property
    def _stacks(self) -> list[str]:
        return [f"{stack}-{self.name}" for stack in STACKS]

    def create(self) -> dict[str, str]:
        """Deploy; the outputs of both stacks by name."""
        self.update()
        around = read_deployment(self.name)
        return {**around.storage, **around.pipeline}

    def update(self, **parameters: Any) -> None:
        """Deploy, with other parameters than before."""
        assembly = _assembly(self.name, parameters)
        arguments = f"ARGS=--app {assembly} --require-approval never --progress events"
        plain = {key: each for key, each in os.environ.items() if "MAKE" not in key}
        command = ["make", "--silent", "deploy", arguments]
        with running(command, cwd=ROOT, env=plain) as process:
            if process.wait() != 0:
                raise BrokenError(f"cdk deploy failed (exit {process.returncode}): see above")

    def remove(self) -> list[str]:
        """Remove all of it; the errors. A stack's own role deletes what is in it.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-iam-servicerole.html
        """
        errors: list[str] = []
        shutil.rmtree(self.home, ignore_errors=True)
        for stack in self._stacks:
            try:
                self._delete(stack)
            except (ClientError, WaiterError) as error:
                errors.append(f"stack {stack}: {error}")
        return errors + things.remove(self.clients, self.name, *things.OWN)

    def _delete(self, stack: str) -> None:
        if not self._described(stack):
            return
        service, named = self.clients("cloudformation"), {"StackName": stack}
        for _ in range(6 * MINUTES_TO_DELETE):
            if not UPDATING.fullmatch(self._described(stack)):  # it can be deleted
                break
            time.sleep(10)
        if self._described(stack) not in {"", "DELETE_IN_PROGRESS"}:
            service.update_termination_protection(**named, EnableTerminationProtection=False)
            service.delete_stack(**named)
        patience = {"Delay": 10, "MaxAttempts": 6 * MINUTES_TO_DELETE}
        service.get_waiter("stack_delete_complete").wait(**named, WaiterConfig=patience)

    def _described(self, stack: str) -> str:
        """The stack's status; empty if it is not there."""
        try:
            (found,) = self.clients("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        except ClientError as error:
            if "does not exist" not in str(error):
                raise
            return ""
        return "" if found["StackStatus"] == "DELETE_COMPLETE" else str(found["StackStatus"])

    def left(self) -> list[str]:
        """What has the name, each in a line."""
        stacks = [f"stack {one}: {at}" for one in self._stacks if (at := self._described(one))]
        own = things.found(self.clients, self.name, *things.OWN)
        files = [str(self.home)] * self.home.exists()
        return stacks + [f"{kind} {thing}" for kind, thing, _ in own] + files


Place = Embedded | Aws
_PROGRAMS: Final[set[int]] = set()  # the process groups that `running` has started
_ENDED: Final = threading.Event()  # no other one is started


@contextmanager
def running(command: list[str], **how: Any) -> Iterator[subprocess.Popen[str]]:
    """A program in a session of its own, that ends with the block: Ctrl-C is the run's alone.

    A run that is killed ends its programs too: a shell waits for the end of a pipe that only the
    run holds. What a program prints goes to stderr, unless the caller takes it.
    """
    if _ENDED.is_set():
        raise BrokenError("the run was interrupted")
    told: dict[str, Any] = {"stdout": sys.stderr, **how, "start_new_session": True}
    with subprocess.Popen(command, text=True, **told) as process:
        kill = ["sh", "-c", 'read -r _; kill -9 -"$0"', str(process.pid)]
        with subprocess.Popen(kill, stdin=subprocess.PIPE, start_new_session=True) as guard:
            _PROGRAMS.add(process.pid)
            try:
                yield process
            finally:
                guard.kill()
                _PROGRAMS.discard(process.pid)
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


def end_programs() -> None:
    """Kill those that other threads have started and still wait for, and start no other."""
    _ENDED.set()
    for group in tuple(_PROGRAMS):
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
