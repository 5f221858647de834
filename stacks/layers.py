"""Builds the functions' code and the layer of what it needs, each with byte code.

Handlers and package are one zip: an upgrade changes both with one call, and no call meets half of
it. A function can't write there, so without byte code it compiles each module at each cold start:
three quarters of its init (docs/adr/0002). Byte code is platform-independent, and by the name of
its file for one Python alone: another, as the embedded runtime's may be, ignores it. A module whose
byte code the runtime does not accept is compiled as if there were none:
https://docs.python.org/3/reference/import.html#cached-bytecode-invalidation

The dependencies come from pip, without Docker, the same modules on every machine.
`.build/dependencies-<digest>` is keyed by the pins, by this recipe and by whether there is a Python
that compiles, so a synth installs once and later ones need no network.
"""

import hashlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parent.parent
REQUIREMENTS = ROOT / "layers" / "dependencies" / "requirements.txt"
BUILD = ROOT / ".build"

# botocore ships the models of about 400 services, 95 % of the layer. The functions call these.
SERVICES = frozenset({"s3", "dynamodb", "stepfunctions", "glue", "sqs", "events"})

NOT_DEPLOYED = ("__main__.py", "arrow", "cli", "local", "spark", "writer")

PYTHON_VERSION: Final = "3.13"  # the functions' runtime


class LayerBuildError(Exception):
    """A layer could not be built; the message carries the last words of pip or of the compiler."""


@cache
def runtime_python() -> str | None:
    """The Python that compiles for the functions: this process, `python3.13` on the PATH, or None.

    Releases of one minor version share their byte code, so any of them will do.
    """
    if sysconfig.get_python_version() == PYTHON_VERSION:
        return sys.executable
    found = shutil.which(f"python{PYTHON_VERSION}")
    if found is None:
        return None
    # pyenv's is a script that calls the Python, or fails if another version is chosen.
    command = [found, "-I", "-S", "-c", "import sys; print(sys.executable)"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return None if done.returncode else done.stdout.strip()


def compile_modules(python: Path, compiler: str, mounted: str) -> None:
    """Compile all modules below ``python``; the same compiler gives the same bytes.

    ``mounted`` is where a function sees that directory: a layer's `python/`, or its own code.

    By the hash of the source and not by its time, which differs from a zip to the next, and
    unchecked, since nothing there changes:
    https://peps.python.org/pep-0552/
    Raises `LayerBuildError`.
    """
    command = [compiler, "-s", "-S", "-m", "compileall", "-q", "-f"]
    command += ["--invalidation-mode", "unchecked-hash", "-s", str(python), "-p", mounted]
    _run([*command, str(python)], "could not compile", env={"PYTHONHASHSEED": "0"})


def _run(command: list[str], failure: str, env: dict[str, str] | None = None) -> None:
    """Run a command to its end. Raises `LayerBuildError`."""
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise LayerBuildError(f"{failure}: {(done.stdout + done.stderr)[-2000:]}")


def function_code(into: Path) -> Path:
    """Fill ``into``, which is not there, with the handlers and the package; return it.

    Raises `LayerBuildError`.
    """
    leave_out = shutil.ignore_patterns("__pycache__", "*.pyc", *NOT_DEPLOYED)
    shutil.copytree(ROOT / "lambdas", into, ignore=leave_out)
    package = ROOT / "layers" / "s3commit" / "python" / "s3commit"
    shutil.copytree(package, into / "s3commit", ignore=leave_out)
    compiler = runtime_python()
    if compiler:
        compile_modules(into, compiler, "/var/task")
    return into


def dependencies_layer(requirements: Path = REQUIREMENTS, build: Path = BUILD) -> Path:
    """The directory with ``python/`` in it, installed unless it is there. Raises `LayerBuildError`.

    Two processes may build at the same time: each works in a directory of its own, and a rename is
    atomic.
    """
    compiler = runtime_python()
    recipe = hashlib.sha256(b"compiled" if compiler else b"")
    for part in (requirements, Path(__file__)):
        recipe.update(part.read_bytes())
    target = build / f"dependencies-{recipe.hexdigest()[:16]}"
    if target.is_dir():
        return target
    build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as scratch:
        content = Path(scratch) / "layer"
        _install(requirements, content / "python")
        _trim(content / "python")
        if compiler:
            compile_modules(content / "python", compiler, "/opt/python")
        try:
            content.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    return target


def _install(requirements: Path, into: Path) -> None:
    """Universal wheels only (`none-any`): pip itself refuses a package with a binary in it."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    command += ["--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none"]
    command += [f"--python-version={PYTHON_VERSION}", "--require-hashes"]
    command += ["--disable-pip-version-check", f"--target={into}", f"--requirement={requirements}"]
    _run(command, f"pip could not install {requirements.name} for the layer")


def _trim(python: Path) -> None:
    """Drop what no function reads, and what differs from machine to machine."""
    shutil.rmtree(python / "bin", ignore_errors=True)
    for name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
        for path in python.glob(f"*.dist-info/{name}"):
            path.unlink()
    for data in (python / "botocore" / "data", python / "boto3" / "data"):
        for service in data.iterdir():
            if service.is_dir() and service.name not in SERVICES:
                shutil.rmtree(service)
