"""Where a project's runtime says how it is reached, and the exports that lead a shell to it.

The file is locked for as long as the runtime runs, so what a runtime that was killed has left
behind is known for what it is.
"""

from __future__ import annotations

import fcntl
import json
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from s3commit.local.errors import LocalRuntimeError

FILE: Final = Path(".s3commit", "running.json")
BUCKET: Final = "BUCKET"  # the data bucket, for the person: nothing of ours reads it
# What would lead away from the runtime again, in a shell that has been used with AWS.
UNSET: Final = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_DYNAMODB",
    "AWS_ENDPOINT_URL_SFN",
)


@contextmanager
def announced(project: Path, environment: Mapping[str, str]) -> Iterator[bool]:
    """Say for the length of the block that a runtime with this environment is up.

    False if it can not be said: another one of the project says so already, and stays the one that
    is found, or nothing can be written there.
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
        " terminal, and wait for its line of JSON (--project names another checkout)"
    )


def exports(environment: Mapping[str, str]) -> str:
    """Lines for a POSIX shell's ``eval``; whatever the values are, they stay values."""
    lines = [f"unset {' '.join(UNSET)}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    return "\n".join(lines)
