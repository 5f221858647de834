"""Byte code of the functions' own Python for the layers, where this machine has that Python.

A function can't write to its layers, so without byte code it compiles each module at each cold
start: three quarters of its init (docs/adr/0026). What is compiled is platform-independent, and by
the name of its file for one Python alone: another, as the embedded runtime's may be, passes it by.
A module whose byte code the runtime does not take is compiled as if there were none:
https://docs.python.org/3/reference/import.html#cached-bytecode-invalidation
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

PYTHON_VERSION: Final = "3.13"  # the functions' runtime
MOUNTED: Final = "/opt/python"  # where a function sees a layer's `python/`

_WHO: Final = """
import json, platform, sys
final = sys.version_info.releaselevel == "final"
print(json.dumps([sys.implementation.cache_tag, final, sys.executable, platform.python_version()]))
"""


class LayerBuildError(Exception):
    """A layer could not be built; the message carries the last words of pip or of the compiler."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """An interpreter that compiles for the functions, and its version."""

    path: str
    version: str


@cache
def runtime_python() -> Compiler | None:
    """Who compiles for the functions: this process, or `python3.13` on the PATH; None: nobody.

    Final releases of one minor version share their byte code, so any of them will do.
    """
    tag = f"cpython-{PYTHON_VERSION.replace('.', '')}"
    for name in (sys.executable, shutil.which(f"python{PYTHON_VERSION}")):
        if name is None:
            continue
        done = subprocess.run(  # noqa: S603
            [name, "-I", "-S", "-c", _WHO], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:  # pyenv's `python3.13` fails if another version is chosen
            found, final, path, version = json.loads(done.stdout)
            if found == tag and final:
                return Compiler(path, version)
    return None


def compile_modules(python: Path, compiler: Compiler) -> None:
    """Compile all modules below ``python``, a layer's; the same compiler gives the same bytes.

    By the hash of the source and not by its time, which differs from a zip to the next, and
    unchecked, since nothing in a layer changes:
    https://peps.python.org/pep-0552/
    Raises `LayerBuildError`.
    """
    command = [compiler.path, "-s", "-S", "-m", "compileall", "-q", "-f"]
    command += ["--invalidation-mode", "unchecked-hash", "-s", str(python), "-p", MOUNTED]
    done = subprocess.run(  # noqa: S603
        [*command, str(python)],
        env={"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LayerBuildError(f"could not compile the layer: {(done.stdout + done.stderr)[-2000:]}")
