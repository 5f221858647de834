"""Each function under AWS's runtime interface client and emulator, with asset and layer alone.

Three jobs are played by them, so each step that these have is found, imported and answers.
"""

import json
import os
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from s3commit.aws import env
from s3commit.aws.notifications import SUFFIXES
from s3commit.core.model.errors import TransientError
from stacks.layers import PYTHON_VERSION
from stacks.retries import FINAL
from tests.contract.conftest import create_table
from tests.contract.given import make_bucket
from tests.core.world import BUCKET, job_directory
from tests.engines.judges.tools import HERE, functions_python, go, pip, wait_for
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
LIMITS = {"stuckMinutes": 15, "abandonedHours": 24, "retentionDays": 30}
# How `decide` is broken, one way after the other.
BROKEN = ({env.TABLE: ""}, {"_HANDLER": "decide.nothing"}, {"_HANDLER": "nothing.handler"})
# The types of the errors that Lambda reports, by function, and those that are to be tried again.
ERRORS = {
    "sweep": {"NeedsOperatorError"},
    "decide": {"JobRefusedError", "TransientError"},
    "complete": {"InvalidInputError"},
    "broken": {"SettingsError", "Runtime.HandlerNotFound", "Runtime.ImportModuleError"},
}
AGAIN = {"TransientError", *ERRORS["broken"]}


class Functions:
    """The functions of a variant, each in an emulator of its own, until the stack ends."""

    def __init__(
        self, variant: Variant, program: Path, python: str, directory: Path, stack: ExitStack
    ) -> None:
        self._program, self._python = program, python
        self.directory, self._stack = directory, stack
        self.client = pip(*CLIENT)
        (self.layer,) = map(variant.assembly.asset_of, variant.of_type("AWS::Lambda::LayerVersion"))
        self.deployed: dict[str, dict[str, str]] = {}
        for one in variant.of_type("AWS::Lambda::Function"):
            handler = one["Properties"]["Handler"]
            values = one["Properties"]["Environment"]["Variables"]
            self.deployed[handler.removesuffix(".handler")] = {"_HANDLER": handler, **values}
            self.task = variant.assembly.asset_of(one)
        self.errors: dict[str, set[str]] = defaultdict(set)
        self.addresses: dict[str, str] = {}

    def call(self, name: str, event: dict[str, Any]) -> Any:
        """What the function answers; its errors are noted, and raised as the project's."""
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
        paths = map(str, (self.task, self.layer / "python", self.client))
        given = {
            **{name: value for name, value in os.environ.items() if name.startswith("AWS_")},
            "AWS_LAMBDA_FUNCTION_HANDLER": environment["_HANDLER"],
            "AWS_LAMBDA_FUNCTION_NAME": name,
            "JUDGE_PATH": json.dumps([*paths]),
            "JUDGE_NOTES": str(self.directory / f"{name}.notes"),
            **environment,
        }
        command = [str(self._program), f"--runtime-interface-emulator-address=127.0.0.1:{port}"]
        command += [f"--runtime-api-address=127.0.0.1:{api}", "--log-level=error", self._python]
        log = self._stack.enter_context((self.directory / f"{name}.log").open("ab"))
        process = subprocess.Popen(
            [*command, "-I", "-S", "-B", str(HERE / "audited.py")],
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
        return [
            f"{notes.stem} {'writes' if writes else 'opens'} {path}"
            for notes in sorted(self.directory.glob("*.notes"))
            for path, writes in map(json.loads, set(notes.read_text().splitlines()))
            if not path.startswith(("/dev/",) if writes else tuple(map(str, theirs)))
        ]


def invoke(address: str, event: dict[str, Any]) -> Any:
    """One call, and its answer or error as JSON."""
    request = urllib.request.Request(address + INVOKE, json.dumps(event).encode())
    try:
        with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as answer:  # 502: the function did not start
        return json.load(answer)


def judge() -> tuple[str, list[str]]:
    """What was called, and each that answered otherwise than it should."""
    python = functions_python()
    program = go(EMULATOR, VERSION)
    variant = Variant({"bucketName": BUCKET, **TELLING})
    with (
        moto_server() as endpoint,
        tempfile.TemporaryDirectory() as directory,
        ExitStack() as stack,
    ):
        functions = Functions(variant, program, python, Path(directory), stack)
        os.environ |= functions.deployed["sweep"] | {"AWS_ENDPOINT_URL": endpoint}
        wrong = [*play(functions, endpoint), *functions.opened()]
    reported: set[str] = set().union(*functions.errors.values())
    if functions.errors != ERRORS or reported - set(FINAL) != AGAIN:
        wrong.append(f"the errors are {dict(functions.errors)}, not {ERRORS}")
    roots = (functions.task, functions.layer)
    size = sum(path.stat().st_size for root in roots for path in root.rglob("*"))
    if size > MOST_BYTES:
        wrong.append(f"{size} bytes are more than Lambda takes")
    return (
        f"{CLIENT[0]} and the emulator of {VERSION[7:15]}, Python {PYTHON_VERSION}:"
        f" {len(functions.deployed)} functions, {len(reported)} types of errors,"
        f" {size / 2**20:.1f} of 250 MB"
    ), wrong


def play(functions: Functions, endpoint: str) -> Iterator[str]:
    """Call each function, and most of them in jobs; what answers otherwise than it should."""
    table = os.environ[env.TABLE]
    create_table(table, endpoint, REGION)
    world = Server(Recorder(), table)
    world.call = functions.call  # type: ignore[method-assign]
    make_bucket(world.client, BUCKET)
    with suppress(RuntimeError):  # the bucket sends no notifications yet
        world.call("sweep", LIMITS)
    notify(world.client, BUCKET, QUEUE, *SUFFIXES)
    for fate in (aborted, refused, committed):
        fate(world, job_directory(str(uuid.uuid4())))
    with suppress(RuntimeError):
        world.call("complete", {"unit": {}, "ticket": {}})
    for name, answer in (("dispatch", {"batchItemFailures": []}), ("catalog", None)):
        if (found := functions.call(name, {"Records": []})) != answer:
            yield f"{name} answers {found}"
    for broken in BROKEN:
        address = functions.start("broken", functions.deployed["decide"] | broken)
        functions.errors["broken"].add(invoke(address, {})["errorType"])
    yield from (
        f"{name} was not called" for name in set(functions.deployed) - {*functions.addresses}
    )
