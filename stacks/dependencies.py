"""Builds the content of the dependencies layer: pip, no Docker, the same modules on every machine.

`.build/dependencies-<digest>` is keyed by the pins, by this recipe and by the Python that compiles,
so a synth installs once and later ones need no network.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from stacks import bytecode
from stacks.bytecode import PYTHON_VERSION, LayerBuildError, compile_modules, runtime_python

ROOT = Path(__file__).parent.parent
REQUIREMENTS = ROOT / "layers" / "dependencies" / "requirements.txt"
BUILD = ROOT / ".build"

# botocore ships the models of some 400 services, 95 % of the layer. The functions call these.
SERVICES = frozenset({"s3", "dynamodb", "stepfunctions"})


def dependencies_layer(requirements: Path = REQUIREMENTS, build: Path = BUILD) -> Path:
    """The directory with ``python/`` in it, installed unless it is there. Raises `LayerBuildError`.

    Two processes may build at once: each works in a directory of its own, and a rename is atomic.
    """
    compiler = runtime_python()
    recipe = hashlib.sha256(compiler.version.encode() if compiler else b"")
    for part in (requirements, Path(__file__), Path(bytecode.__file__)):
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
            compile_modules(content / "python", compiler)
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
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise LayerBuildError(
            f"pip could not install {requirements.name} for the layer: {done.stderr[-2000:]}"
        )


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


def describe(layer: Path) -> str:
    """One line of JSON for `make layer`: where it is and how big."""
    files = [path for path in layer.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return json.dumps({"layer": layer.name, "files": len(files), "bytes": size})


if __name__ == "__main__":
    sys.stdout.write(describe(dependencies_layer()) + "\n")
