"""The runtime as a program in the foreground; a file in the project says how it is reached.

The file is locked for as long as the runtime runs, so what a runtime that was killed has left
behind is known for what it is.
"""

import fcntl
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from typing import Final

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


@contextmanager
def announced(project: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Announce for the length of the block that a runtime with this environment is up.

    Yields why it cannot, or an empty text.
    """
    path = project / FILE
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(path.open("a+"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield "another runtime is up in this directory; to use both, give --project"
            return
        except OSError as error:
            yield f"{path.parent} is not writable ({error.strerror}); give --project"
            return
        file.truncate(0)
        file.write(json.dumps(dict(environment)))
        file.flush()
        yield ""


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
        f"no runtime of {project.absolute()} is running: start one with `s3commit local up` in"
        " another terminal, and wait for its line of JSON (if it was started in another"
        " directory, name that with --project)"
    )


def enter(environment: Mapping[str, str]) -> None:
    """Lead this process to the runtime of the environment."""
    for name in UNSET:
        os.environ.pop(name, None)
    os.environ.update(environment)


def exports(environment: Mapping[str, str]) -> str:
    """Lines for a POSIX shell's ``eval``; whatever the values are, they stay values.

    A shell without the command finds this one.
    """
    lines = [f"unset {' '.join(UNSET)}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    if shutil.which("s3commit") is None:
        lines.append(f'export PATH="$PATH":{shlex.quote(str(Path(sys.executable).parent))}')
    return "\n".join(lines)


def greeting(endpoint: str, bucket: str, project: Path, hidden: str = "") -> str:
    """The line for people; its command works in any directory, on the PATH or not.

    ``hidden`` is why the command does not find this runtime.
    """
    on_path = shutil.which("s3commit") is not None
    command = "s3commit" if on_path else f"{shlex.quote(sys.executable)} -m s3commit"
    env = f"{command} local env --project {shlex.quote(str(project.absolute()))}"
    lead = f'In another terminal: eval "$({env})"'
    if hidden:
        lead = f"`s3commit local env` does not find it: {hidden}"
    return (
        f"s3commit: running at {endpoint}, bucket s3://{bucket}/. {lead}."
        " Ctrl-C stops it and deletes its data.\n"
    )


def run_foreground(
    assembly: Path,
    port: int = 0,
    bucket: str | None = None,
    *,
    versioned: bool = False,
    project: Path,
    verbose: bool = False,
    beside: Callable[[], AbstractContextManager[str]],
) -> None:
    """Run until SIGINT or SIGTERM; stdout gets the ready line and nothing else.

    ``versioned`` has the data bucket keep versions. `announced` says below ``project`` that it is
    up, and so does stderr, for people. ``beside`` opens what runs with it in this process, whose
    environment leads to the runtime, and yields its address.

    Raises `LocalRuntimeError` if it cannot start. To be called in the main thread of a program that
    ends then: the signals stay blocked, in this thread and in those that it starts.
    """
    from s3commit.local.runtime import LocalRuntime  # `env` needs none

    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    out = sys.stdout
    sys.stderr.write("s3commit: starting the pipeline on this machine, about 5 s ...\n")
    with (
        redirect_stdout(sys.stderr),  # for libraries that print
        LocalRuntime(assembly, port=port, bucket=bucket, verbose=verbose) as runtime,
    ):
        if versioned:
            runtime.client("s3").put_bucket_versioning(
                Bucket=runtime.bucket, VersioningConfiguration={"Status": "Enabled"}
            )
        enter(runtime.names())
        with announced(project, runtime.names()) as hidden, beside() as address:
            sys.stderr.write(greeting(runtime.endpoint, runtime.bucket, project, hidden))
            sys.stderr.write(f"s3commit: in a browser: {address}\n")
            print(runtime.ready_line(), file=out, flush=True)
            signal.sigwait(signals)
