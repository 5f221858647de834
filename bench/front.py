"""The server that stands between the clients and S3: it delays responses and counts requests."""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from tests.servers import START_SECONDS, free_ports

SOURCE: Final = Path(__file__).with_name("server")
CLUSTER, PIPELINE = "cluster", "pipeline"

Counts = Mapping[str, int]  # requests by S3 operation


class Front:
    """``bench/server`` before the server ``to``, or with memory of its own, while it is entered.

    Spark and the pipeline come to addresses of their own, so that their requests are told apart.
    """

    def __init__(self, to: str | None = None) -> None:
        self._to = to
        cluster, pipeline = free_ports(2)
        self.cluster = f"http://127.0.0.1:{cluster}"
        self.pipeline = f"http://127.0.0.1:{pipeline}"

    def __enter__(self) -> Self:
        arguments = [str(_program())] + (["-to", self._to] if self._to else [])
        for name, url in ((CLUSTER, self.cluster), (PIPELINE, self.pipeline)):
            arguments += ["-listen", f"{name}={url.removeprefix('http://')}"]
        self._process = subprocess.Popen(arguments)
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("bench/server does not answer")
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def delay(self, milliseconds: int) -> None:
        """Let every response wait from now on."""
        self._ask("PUT", f"delay?ms={milliseconds}")

    def reset(self) -> None:
        """Count from zero."""
        self._ask("DELETE", "counts")

    def counts(self) -> dict[str, Counts]:
        """The requests since `reset`, by who sent them."""
        found: dict[str, Counts] = json.loads(self._ask("GET", "counts"))
        return {name: found.get(name, {}) for name in (CLUSTER, PIPELINE)}

    def _answers(self) -> bool:
        try:
            self._ask("GET", "counts")
        except urllib.error.URLError:
            return False
        return True

    def _ask(self, method: str, what: str) -> bytes:
        request = urllib.request.Request(f"{self.pipeline}/-/{what}", method=method)
        with urllib.request.urlopen(request) as response:
            body: bytes = response.read()
        return body


def _program() -> Path:
    """The program, built by Go, which builds it again only if its source has changed."""
    program = SOURCE.parents[1] / ".build" / "bench-server"
    if shutil.which("go") is None:
        raise SystemExit("bench: the server of this benchmark is built with Go 1.24: install it")
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=SOURCE, check=True)
    return program
