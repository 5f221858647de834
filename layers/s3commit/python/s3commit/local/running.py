"""The runtime as a program in the foreground; a file in the project says how it is reached.

The file is locked for as long as the runtime runs, so what a runtime that was killed has left
behind is known for what it is.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from s3commit.local import LocalRuntimeError

FILE: Final = Path(".s3commit", "running.json")
# Variables of a shell that was used with AWS, which would lead past the runtime.
UNSET: Final = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_DYNAMODB",
    "AWS_ENDPOINT_URL_SFN",
)


_NOT_FOUND: Final = (
    "s3commit: `s3commit local env` does not find this runtime: another one is up here, or the"
    " directory can not be written\n"
)


@contextmanager
def announced(project: Path, environment: Mapping[str, str]) -> Iterator[bool]:
    """Announce for the length of the block that a runtime with this environment is up.

    Yields False if it can not: another runtime of the project is announced already, or the file
    can not be written.
    """
    path = project / FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = path.open("a+")
    except OSError:
        yield False
        return
    with opened as file:
        if not _locked(file):
            yield False
            return
        file.truncate(0)
        file.write(json.dumps(dict(environment)))
        file.flush()
        yield True
        file.truncate(0)


def _locked(file: TextIO) -> bool:
    for pause in (0.01, 0.1, None):  # a reader that looks holds the lock for a moment
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if pause:
                time.sleep(pause)
    return False


def read_running(project: Path) -> dict[str, str]:
    """The environment of the project's runtime. Raises `LocalRuntimeError` if none is up."""
    try:
        with (project / FILE).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return {str(name): str(value) for name, value in json.load(file).items()}
    except (OSError, ValueError):
        pass
    raise LocalRuntimeError(
        f"no runtime of {project.absolute()} is up: start one with `s3commit local up` in another"
        " terminal, and wait for its line of JSON (--project names the directory where it was"
        " started, if that is another one)"
    )


def exports(environment: Mapping[str, str]) -> str:
    """Lines for a POSIX shell's ``eval``; whatever the values are, they stay values."""
    lines = [f"unset {' '.join(UNSET)}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    return "\n".join(lines)


def greeting(endpoint: str, bucket: str, project: Path) -> str:
    """The line for people; its command works in any directory, on the PATH or not."""
    on_path = shutil.which("s3commit") is not None
    command = "s3commit" if on_path else f"{shlex.quote(sys.executable)} -m s3commit"
    env = f"{command} local env --project {shlex.quote(str(project.absolute()))}"
    return (
        f"s3commit: up at {endpoint}, its bucket is s3://{bucket}/. In another terminal:"
        f' eval "$({env})". Ctrl-C ends it, and what it holds.\n'
    )


def run_foreground(
    assembly: Path,
    port: int = 0,
    bucket: str | None = None,
    *,
    project: Path,
    verbose: bool = False,
) -> None:
    """Run until SIGINT or SIGTERM; stdout gets the ready line and nothing else.

    `announced` says below ``project`` that it is up, and so does stderr, for people.

    Raises `LocalRuntimeError` if it cannot start. To be called in the main thread.
    """
    from s3commit.local.server import LocalRuntime  # noqa: PLC0415 - `env` needs none

    # A signal writes a byte here, whichever thread the kernel gave it to; a main thread that waits
    # for a lock may not hear of it.
    woken, waking = socket.socketpair()
    waking.setblocking(False)
    before_fd = signal.set_wakeup_fd(waking.fileno())
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: None) for number in numbers}
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever a library prints goes to stderr
    sys.stderr.write("s3commit: starting the pipeline on this machine, some 10 s ...\n")
    try:
        with (
            LocalRuntime(assembly, port=port, bucket=bucket, verbose=verbose) as runtime,
            announced(project, runtime.names()) as found,
        ):
            told = greeting(runtime.endpoint, runtime.bucket, project)
            sys.stderr.write(told if found else _NOT_FOUND)
            print(runtime.ready_line(), file=out, flush=True)
            woken.recv(1)
    finally:
        os.dup2(out.fileno(), sys.stdout.fileno())
        out.close()
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_fd)
        woken.close()
        waking.close()
