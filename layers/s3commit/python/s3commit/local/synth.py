"""The assembly to run: a checkout's own, synthesized once for each state, else the wheel's."""

import atexit
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from s3commit.aws import env
from s3commit.local import LocalRuntimeError

SHIPPED = Path(__file__).with_name("app.zip")  # `make wheel` puts it here
SOURCES = ("app.py", "cdk.json", "constraints.txt", "stacks", "lambdas", "layers")
_STAMP = ".s3commit-sources"


def assembly_for(project: Path) -> Path:
    """The cloud assembly of a checkout of s3commit, or the one that this package brings.

    Raises `LocalRuntimeError` in one line if there is neither.
    """
    if (project / "layers" / "s3commit").is_dir():
        return synthesize(project, project / ".s3commit" / "assembly")
    if not SHIPPED.is_file():
        raise LocalRuntimeError(
            f"{project} is not a checkout of s3commit, and this package was built without `make"
            " wheel`: name a checkout with --project"
        )
    directory = tempfile.mkdtemp(prefix="s3commit-assembly-")
    atexit.register(shutil.rmtree, directory)
    with zipfile.ZipFile(SHIPPED) as packed:
        packed.extractall(directory)
    return Path(directory)


def synthesize(project: Path, out: Path) -> Path:
    """The cloud assembly of ``project`` in ``out``, made again only if the sources have changed.

    Of several processes one makes it, and the others wait.

    Raises `LocalRuntimeError` in one line if the app fails (its own output has gone to stderr
    then).
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.with_name(f"{out.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        digest, stamp = source_digest(project), out / _STAMP
        if not stamp.is_file() or stamp.read_text() != digest:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            _run(project, out)
            stamp.write_text(digest)
    return out


def source_digest(project: Path) -> str:
    """A digest of all that the assembly is made from: names and bytes, the CDK among the pins.

    Parameters too, where `cdk` would hand them over.
    """
    parameters = os.environ.get("CDK_CONTEXT_JSON", "{}")
    digest = hashlib.sha256(f"{sys.version}{parameters}".encode())
    for root in SOURCES:
        path = project / root
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(str(file.relative_to(project)).encode() + b"\0")
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _run(project: Path, out: Path) -> None:
    environment = os.environ | {
        "CDK_OUTDIR": str(out.resolve()),
        env.LOCAL: "1",
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
        "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
    }
    done = subprocess.run(
        [sys.executable, "app.py"],
        cwd=project,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(done.stdout)
        last = done.stdout.strip().rsplit("\n", 1)[-1]
        raise LocalRuntimeError(f"{project / 'app.py'} failed (exit {done.returncode}): {last}")
