"""Each function under AWS's runtime interface client and emulator, with asset and layer alone.

Two jobs are played by them, so each step that these have is found, imported and answers.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from s3commit.aws import env
from s3commit.aws.notifications import SUFFIXES
from s3commit.core.model.errors import TransientError
from stacks.layers import PYTHON_VERSION, runtime_python
from stacks.retries import FINAL
from tests.contract.conftest import create_table
from tests.contract.given import make_bucket
from tests.core.world import BUCKET, job_directory
from tests.engines.judges.tools import HERE, MissingError, go, pip, wait_for
from tests.engines.judges.variants import Variant
from tests.lake import QUEUE, notify
from tests.servers import REGION, START_SECONDS, free_ports, moto_server
from tests.stacks.fates import Server, aborted, committed, refused
from tests.stacks.recorder import Recorder
from tests.stacks.synthesized import TELLING

CLIENT = ("awslambdaric==4.2.2", "simplejson==4.3.0", "snapshot-restore-py==1.0.0")
EMULATOR = "github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie"
VERSION = "v0.0.0-20261030222936-bef5c4ba774d"
MOST_BYTES = 250 * 2**20  # https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
INVOKE = "/2015-03-31/functions/function/invocations"
EMPTY: dict[str, Any] = {"batchItemFailures": []}
LIMITS = {"stuckMinutes": 15, "abandonedHours": 24, "retentionDays": 30}
# What is called beside the jobs: the function, the event, and the answer, or the error's type.
ALONE: tuple[tuple[str, dict[str, Any], Any], ...] = (
    ("dispatch", {"Records": []}, EMPTY),
    ("catalog", {"Records": []}, None),
    ("complete", {"unit": {}, "ticket": {}}, "InvalidInputError"),
)
# What is broken, with how, and the type of the error that Lambda would report.
BROKEN: tuple[tuple[dict[str, str], str], ...] = (
    ({env.TABLE: ""}, "SettingsError"),
    ({"_HANDLER": "decide.nothing"}, "Runtime.HandlerNotFound"),
    ({"_HANDLER": "nothing.handler"}, "Runtime.ImportModuleError"),
)


class Functions:
    """The functions of a variant, each in an emulator of its own, while it is entered."""

    def __init__(self, variant: Variant, program: Path, python: str, directory: Path) -> None:
        self._program, self._python, self.directory = program, python, directory
        resources = list(variant.of_type("AWS::Lambda::Function"))
        (content,) = variant.of_type("AWS::Lambda::LayerVersion")
        self.layer = variant.assembly.asset_of(content)
        self.client = pip(python, *CLIENT)
        self.deployed: dict[str, dict[str, str]] = {}
        for one in resources:
            handler = one["Properties"]["Handler"]
            values = one["Properties"]["Environment"]["Variables"]
            self.deployed[handler.removesuffix(".handler")] = {"_HANDLER": handler, **values}
        (self.task,) = {variant.assembly.asset_of(one) for one in resources}
        self.errors: dict[str, set[str]] = defaultdict(set)
        self.addresses: dict[str, str] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Functions:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def call(self, name: str, event: dict[str, Any]) -> Any:
        """What the function answers; an error of its is noted, and raised as the project's."""
        if name not in self.addresses:
            self.addresses[name] = self.start(name, self.deployed[name])
        answer = invoke(self.addresses[name], event)
        if isinstance(answer, dict) and "errorType" in answer:
            self.errors[name].add(answer["errorType"])
            kind = TransientError if answer["errorType"] == "TransientError" else RuntimeError
            raise kind(f"{answer['errorType']}: {answer['errorMessage']}")
        return answer

    def start(self, name: str, environment: dict[str, str]) -> str:
        """The address of a new emulator, which has a process group of its own."""
        port, api = free_ports(2)
        paths = [str(self.task), str(self.layer / "python"), str(self.client)]
        given = {
            **{name: value for name, value in os.environ.items() if name.startswith("AWS_")},
            "AWS_LAMBDA_FUNCTION_HANDLER": environment["_HANDLER"],
            "AWS_LAMBDA_FUNCTION_NAME": name,
            "JUDGE_PATH": json.dumps(paths),
            "JUDGE_NOTES": str(self.directory / f"{name}.notes"),
            **environment,
        }
        command = [str(self._program), f"--runtime-interface-emulator-address=127.0.0.1:{port}"]
        command += [f"--runtime-api-address=127.0.0.1:{api}", "--log-level=error", self._python]
        log = self._stack.enter_context((self.directory / f"{name}.log").open("ab"))
        process = subprocess.Popen(
            [*command, "-I", "-S", str(HERE / "audited.py")],
            env=given,
            cwd=self.task,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self._stack.callback(os.killpg, process.pid, signal.SIGKILL)
        wait_for(port)
        return f"http://127.0.0.1:{port}"

    def opened(self) -> list[str]:
        """Files that a function has no business with: it wrote them, or no directory has them."""
        library = Path(self._python).parents[1] / "lib"
        theirs = (self.task, self.layer, self.client, library, "/dev/", "/proc/", "/etc/")
        wrong = []
        for notes in sorted(self.directory.glob("*.notes")):
            for path, writes in map(json.loads, set(notes.read_text().splitlines())):
                if not path.startswith(tuple(map(str, theirs))):
                    wrong.append(f"{notes.stem} opens {path}")
                elif writes and not path.startswith("/dev/"):
                    wrong.append(f"{notes.stem} writes {path}")
        return wrong


def invoke(address: str, event: dict[str, Any]) -> Any:
    """One call, and its answer or error as JSON."""
    request = urllib.request.Request(address + INVOKE, json.dumps(event).encode())
    try:
        with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as answer:  # 502: the function did not start
        return json.load(answer)


class Emulated(Server):
    """The world of the jobs' fates, whose functions are these."""

    def __init__(self, functions: Functions, table: str) -> None:
        super().__init__(Recorder(), table)
        self._functions = functions

    def call(self, name: str, event: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._functions.call(name, event)
        return answer


def judge() -> tuple[str, list[str]]:
    """What was called, and each that answered otherwise than it should."""
    python = runtime_python()
    if python is None:
        raise MissingError(f"the functions run on python{PYTHON_VERSION}: have it on the PATH")
    program = go(EMULATOR, VERSION)
    variant = Variant({"bucketName": BUCKET, **TELLING})
    wrong: list[str] = []
    with (
        moto_server() as endpoint,
        tempfile.TemporaryDirectory() as directory,
        Functions(variant, program, python, Path(directory)) as functions,
    ):
        os.environ |= functions.deployed["sweep"] | {"AWS_ENDPOINT_URL": endpoint}
        create_table(os.environ[env.TABLE], endpoint, REGION)
        world = Emulated(functions, os.environ[env.TABLE])
        make_bucket(world.client, BUCKET)
        expect("sweep", partial(world.call, "sweep", LIMITS), "NeedsOperatorError", wrong)
        notify(world.client, BUCKET, QUEUE, *SUFFIXES)
        fates = (aborted, refused, committed)
        for fate in fates:
            fate(world, job_directory(str(uuid.uuid4())))
        for name, event, answer in ALONE:
            expect(name, partial(world.call, name, event), answer, wrong)
        silent = set(functions.deployed) - set(functions.addresses)
        wrong += [f"{name} was not called" for name in sorted(silent)]
        for broken, error in BROKEN:
            address = functions.start("broken", functions.deployed["decide"] | broken)
            told = invoke(address, {})["errorType"]
            wrong += [f"{broken}: {told}, not {error}"] if told != error else []
            functions.errors["broken"].add(told)
        reported = set().union(*functions.errors.values())
        # What the state machine tries again: what is broken, and what another call was faster in.
        again = {error for _, error in BROKEN} | {"TransientError"}
        wrong += [f"{one} is tried again" for one in reported - again - set(FINAL)]
        wrong += [f"{one} is final" for one in again & set(FINAL)]
        wrong += functions.opened()
        size = sum(
            path.stat().st_size
            for root in (functions.task, functions.layer)
            for path in root.rglob("*")
        )
        wrong += [f"{size} bytes are more than Lambda takes"] if size > MOST_BYTES else []
        said = (
            f"{CLIENT[0]} and the emulator of {VERSION[7:15]}, Python {PYTHON_VERSION}:"
            f" {len(functions.deployed)} functions, {len(fates)} jobs, errors"
            f" {', '.join(sorted(reported))}; {size / 2**20:.1f} of 250 MB"
        )
    return said, wrong


def expect(name: str, call: Callable[[], Any], answer: Any, wrong: list[str]) -> None:
    """Note if the call answers otherwise; a text is an error's type."""
    try:
        said = call()
    except (RuntimeError, TransientError) as error:
        said = str(error).partition(":")[0]
    if said != answer:
        wrong.append(f"{name} answered {said}, not {answer}")
