"""The state machine under LocalStack's Step Functions, with the functions behind it.

The embedded runtime is an account whose Step Functions are LocalStack's; the acceptance run tries
there what it tries in an account.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from acceptance.run import BROKEN, NOT_SEEN, SEEN
from s3commit.local.runtime import LocalRuntime
from s3commit.local.synth import assembly_for
from stacks.layers import ROOT
from tests.engines.judges.tools import HERE, functions_python, pip_all, wait_for
from tests.servers import free_ports

VERSION = "4.12.0"
# Later ones lack what LocalStack calls.
PACKAGES = (
    f"localstack-core[runtime]=={VERSION}",
    "cbor2==5.7.1",
    "cryptography==44.0.3",
    "pyopenssl==24.3.0",
    "service_identity==24.2.0",
)
SETTINGS = {"SERVICES": "stepfunctions", "DISABLE_EVENTS": "1", "SKIP_SSL_CERT_DOWNLOAD": "1"}
# The checks that the state machine decides, and their verdicts. LocalStack's Map takes a failed
# child for a result like any other, so the check of that would wait in vain and is left out.
EXPECTED = {
    "a-job-by-open-job": SEEN,
    "a-table-by-write-table": SEEN,
    "a-large-job-by-the-map": NOT_SEEN,  # it is committed, by standard children
    "the-dataset-of-the-map-is-missing": BROKEN,  # LocalStack has another error than AWS documents
    "a-killed-driver": SEEN,
    "the-sweep-finds-a-job": SEEN,
    "a-job-that-replaces": SEEN,
    "an-undo": SEEN,
    "a-rollback": SEEN,
    "keys-by-notifications": SEEN,
}
ANSWERED_IN = 120.0  # seconds
_TARGET = "AWSStepFunctions."


def judge() -> tuple[str, list[str]]:
    """How many checks were made, and each that ended otherwise than it should."""
    python = functions_python()
    packages = pip_all(python, *PACKAGES)
    theirs, ours = free_ports(2)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = f"http://127.0.0.1:{ours}"
        command = [python, str(HERE / "machine_server.py"), str(theirs), address]
        log = stack.enter_context((directory / "localstack.log").open("wb"))
        own = {"PYTHONPATH": str(packages), "TMPDIR": str(directory), **SETTINGS}
        environment = {**os.environ, **own}
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        stack.callback(server.wait)
        stack.callback(server.kill)
        wait_for(theirs)
        stack.enter_context(
            LocalRuntime(assembly_for(ROOT), port=ours, middleware=elsewhere(theirs))
        )
        run = [sys.executable, "-m", "acceptance", "--endpoint", address]
        run += ["--yes", "--report", str(directory)]
        run += [word for name in EXPECTED for word in ("--only", name)]
        subprocess.run(run, cwd=ROOT, stdout=sys.stderr, check=False)
        report = json.loads((directory / "acceptance_report.json").read_text())
        if report["problem"]:
            print((directory / "localstack.log").read_text()[-5_000:], file=sys.stderr)
    wrong = [
        f"{one['check']} is {one['verdict']}: {one['detail']}"
        for one in report["results"]
        if one["verdict"] != EXPECTED[one["check"]]
    ]
    wrong += [report["problem"]] * bool(report["problem"]) + report["errors"] + report["left"]
    return f"LocalStack {VERSION}: {len(report['results'])} checks", wrong


def elsewhere(port: int) -> Callable[[Any], Any]:
    """Have the server at the port answer what is asked of Step Functions."""

    def wrap(application: Any) -> Any:
        def serve(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            target = environ.get("HTTP_X_AMZ_TARGET", "")
            if not target.startswith(_TARGET):
                answer: Iterable[bytes] = application(environ, start)
                return answer
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            headers = {
                "X-Amz-Target": target,
                "Content-Type": environ["CONTENT_TYPE"],
                "Authorization": environ["HTTP_AUTHORIZATION"],
            }
            connection = HTTPConnection("127.0.0.1", port, timeout=ANSWERED_IN)
            with closing(connection):
                connection.request("POST", "/", body, headers)
                theirs = connection.getresponse()
                kind = theirs.getheader("Content-Type", "application/x-amz-json-1.0")
                start(f"{theirs.status} {theirs.reason}", [("Content-Type", kind)])
                return [theirs.read()]

        return serve

    return wrap
