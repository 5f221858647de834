"""Programs in processes of their own: moto's state is the process's, and so is its runtime."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "layers/s3commit/python")}
# Every program but the shortest: the runtime on the assembly that is the first argument.
RUNTIME = """
import json, os, sys, threading, time
from pathlib import Path
from s3commit.local.server import LocalRuntime

def refuse(start_response, status, code):
    start_response(status, [("Content-Type", "application/xml")])
    return [f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()]
"""


def run(program: str, assembly: Path) -> str:
    """What the program prints."""
    done = subprocess.run(
        [sys.executable, "-c", RUNTIME + program, str(assembly)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
