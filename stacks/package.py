"""Builds the content of the package layer: our own modules that functions import, and byte code."""

from __future__ import annotations

import shutil
from pathlib import Path

from stacks.bytecode import compile_modules, runtime_python
from stacks.dependencies import ROOT

PACKAGE = ROOT / "layers" / "s3commit"
NOT_IN_LAYER = ("__main__.py", "cli", "local", "spark", "writer")


def package_layer(into: Path) -> Path:
    """Fill ``into``, which is empty, with the layer's ``python/``; return it.

    Raises `LayerBuildError`.
    """
    leave_out = shutil.ignore_patterns("__pycache__", "*.pyc")
    package = into / "python" / "s3commit"
    shutil.copytree(PACKAGE / "python" / "s3commit", package, ignore=leave_out)
    for name in NOT_IN_LAYER:
        path = package / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    compiler = runtime_python()
    if compiler:
        compile_modules(into / "python", compiler)
    return into
