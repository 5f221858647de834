"""Programs in processes of their own: moto's state is the process's, and so is its runtime."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# What every program begins with; its argument is the assembly.
RUNTIME = """
import json, os, sys, threading, time
from pathlib import Path
from s3commit.local.server import LocalRuntime

def refuse(start_response, status, code):
    start_response(status, [("Content-Type", "application/xml")])
    return [f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()]
"""


def environment() -> dict[str, str]:
    """With this package, and what the tests have set by now."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "layers/s3commit/python")}


def run(program: str, assembly: Path) -> str:
    """What the program prints."""
    done = subprocess.run(
        [sys.executable, "-c", RUNTIME + program, str(assembly)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
