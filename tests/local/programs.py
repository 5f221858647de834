"""Programs in processes of their own: moto's state is the process's, and so is its runtime."""

import os
import sys
from pathlib import Path

from tests.servers import ran

# What every program begins with; its argument is the assembly.
RUNTIME = """
import json, os, sys, threading, time
from pathlib import Path
from s3commit.local.runtime import LocalRuntime

def refuse(start_response, status, code):
    start_response(status, [("Content-Type", "application/xml")])
    return [f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()]

def request(environ):
    return (environ[name] for name in ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING"))

def commit(runtime, table="t"):
    os.environ.update(runtime.environment())
    import s3commit
    with s3commit.open_job(f"s3://{runtime.bucket}/{table}/") as job:
        with job.task("0") as task:
            with task.open("part-0.csv") as file:
                file.write(b"1,2")
        job.commit_timeout = 120
        return job.commit([task.counted])
"""


def environment() -> dict[str, str]:
    """With this package, and what the tests have set by now."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "layers/s3commit/python")}


def run(program: str, assembly: Path) -> str:
    """What the program prints."""
    done = ran(sys.executable, "-c", RUNTIME + program, assembly, env=environment())
    assert done.returncode == 0, done.stderr
    return done.stdout
