"""The S3 servers of the tests. Run as a script it is the moto server: it prints its URL."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from s3commit.local.moto_patches import Patcher

START_SECONDS = 180  # of a machine that has much else to do
REGION = "eu-central-1"
# Test credentials, and an endpoint where nobody listens.
NO_NETWORK = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
}

Answer = Callable[[BaseHTTPRequestHandler, bytes], tuple[int, bytes]]


def read_line(process: subprocess.Popen[str]) -> str:
    """The first line that the process prints."""
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert line, f"the server ended with {process.wait(10)}"
    return line


def until(
    look: Callable[[], Any], what: str = "", seconds: float = START_SECONDS, pause: float = 0.1
) -> Any:
    """What ``look`` finds, as soon as it finds something."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(pause)
    return found


def ended(machines: Any, arn: str, seconds: float, pause: float) -> Any:
    """The execution, when it has ended."""

    def look() -> Any:
        found = machines.describe_execution(executionArn=arn)
        # moto has the output a moment after the status.
        is_over = found["status"] not in {"RUNNING", "SUCCEEDED"} or "output" in found
        return found if is_over else None

    return until(look, f"the end of {arn}", seconds, pause)


def ran(*command: str | Path, **how: Any) -> subprocess.CompletedProcess[str]:
    """A program that has run to its end: how it ended, and what it said."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **how)


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses, nor the ones 10,000 above (SeaweedFS takes those for gRPC)."""
    found: list[int] = []
    while len(found) < count:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1] % 30_000 + 20_000
        with socket.socket() as probe, socket.socket() as grpc:
            try:
                probe.bind(("127.0.0.1", port))
                grpc.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """A server in this process, while the block runs; its URL.

    ``answer`` gets each request and its body, and gives a status and a body.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            status, body = answer(self, self.rfile.read(length))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 - so the server calls them

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class Weed:
    """A SeaweedFS server with everything below ``directory``, while it is entered."""

    def __init__(self, directory: Path, ports: list[int]) -> None:
        self._directory = directory
        self._ports = ports
        self.endpoint = f"http://127.0.0.1:{ports[3]}"

    def __enter__(self) -> Self:
        program = shutil.which("weed", path=str(Path(sys.executable).parent))
        assert program, "weed is not installed: pip install -r requirements.txt"
        with (self._directory / "log").open("w") as log:
            self._process = subprocess.Popen(
                [program, *self._arguments()], stdout=log, stderr=log, cwd=self._directory
            )
        self._wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # a gentle stop takes ten seconds
        self._process.wait()

    def _arguments(self) -> list[str]:
        config = self._directory / "s3.json"
        keys = [{"accessKey": "testing", "secretKey": "testing"}]
        actions = ["Admin", "Read", "Write", "List", "Tagging"]
        identity = {"name": "testing", "credentials": keys, "actions": actions}
        config.write_text(json.dumps({"identities": [identity]}))
        data = self._directory / "data"
        data.mkdir()
        master, volume, filer, s3 = self._ports
        flags: dict[str, Any] = {
            "dir": data,
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            "master.port": master,
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": 64,
            "volume.port": volume,
            "volume.max": 0,
            "filer": "true",
            "filer.port": filer,
            "filer.localSocket": self._directory / "filer.sock",
            "s3": "true",
            "s3.port": s3,
            "s3.localSocket": self._directory / "s3.sock",
            "s3.config": config,
            "s3.iam": "false",
            "s3.autoCreateBucket": "false",
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
        }
        return [
            "-logtostderr=true",
            "server",
            *(f"-{name}={value}" for name, value in flags.items()),
        ]

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            assert self._process.poll() is None, (self._directory / "log").read_text()[-2000:]
            try:
                urllib.request.urlopen(self.endpoint, timeout=1).close()
            except urllib.error.HTTPError as answer:  # 403: it is there and asks who we are
                answer.close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError((self._directory / "log").read_text()[-2000:])


def patch_moto(*prefixes: str) -> Patcher:
    """Apply the embedded runtime's patches to moto's S3 or DynamoDB in this process.

    The names of the patches begin with one of ``prefixes``. `Patcher.undo` takes them back.
    """
    from s3commit.local.moto_patches import PATCHES, Patcher

    patcher = Patcher(None)  # neither S3's patches nor DynamoDB's ask the host
    for name, patch in PATCHES.items():
        if name.startswith(prefixes):
            patch(patcher)
    return patcher


@contextmanager
def moto_server() -> Iterator[str]:
    """The URL of a moto server with the S3 and DynamoDB patches, in a process of its own.

    Its own, so that the patches don't meet those of a test that runs the embedded runtime.
    """
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield read_line(process)
        finally:
            process.kill()


def _serve_moto() -> None:
    os.environ.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing")
    from s3commit.local.serving import Endpoint

    patch_moto("s3_", "dynamodb_")
    with closing(Endpoint()) as server:
        print(server.url, flush=True)
        sys.stdin.read()  # until the tests end, or die


if __name__ == "__main__":
    _serve_moto()
