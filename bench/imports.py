"""Benchmark 5: how long the import of each Lambda handler takes, its cold start's own part."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from bench.figures import Figure, Sample
from s3commit.aws import env
from stacks.dependencies import ROOT, dependencies_layer

LAMBDAS: Final = ROOT / "lambdas"
LAYER: Final = ROOT / "layers" / "s3commit" / "python"
GOAL: Final = 1.3
ROUNDS: Final = 15
BARE: Final = "boto3 S3 client"

# -I -S: the standard library and the given directories, as in a function; nothing of this machine.
_TIMED: Final = """
import sys, time
sys.path[:0] = sys.argv[2:]
wall, cpu = time.perf_counter(), time.process_time()
exec(sys.argv[1])
print(time.perf_counter() - wall, time.process_time() - cpu)
"""
_CREATE_CLIENT: Final = "import boto3\nboto3.client('s3')"


def imports(say: Callable[[str], None], rounds: int = ROUNDS) -> list[Figure]:
    """Import each handler in a fresh process, in turn with a bare client's creation.

    The goal is for CPU time with compiled modules: an import consists of it, and other work on the
    machine disturbs it less. For the slowest handler the wall time is told too, and the CPU time
    without compiled modules.
    """
    programs = {BARE: _CREATE_CLIENT} | {name: f"import {name}" for name in handlers()}
    with tempfile.TemporaryDirectory(prefix="s3commit-bench-") as compiled:
        taken = _in_turn(programs, compiled, rounds)
        slowest = max(handlers(), key=lambda name: _sample(taken[name], "cpu").median)
        both = {name: programs[name] for name in (BARE, slowest)}
        source = _in_turn(both, "", rounds)
    say(f"imports: {rounds} rounds of {len(programs)} processes, and of 2 from source")
    return [
        *(_figure(name, name, "cpu", taken, GOAL) for name in handlers()),
        _figure(f"{slowest}, wall", slowest, "wall", taken),
        _figure(f"{slowest}, modules not compiled", slowest, "cpu", source),
    ]


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one import."""

    wall: float
    cpu: float


def _figure(
    what: str, name: str, kind: str, taken: dict[str, list[Times]], goal: float | None = None
) -> Figure:
    unit = "s" if kind == "wall" else "CPU s"
    return Figure(
        "import of a handler",
        what,
        unit,
        _sample(taken[name], kind),
        BARE,
        _sample(taken[BARE], kind),
        goal=goal,
    )


def _sample(times: list[Times], kind: str) -> Sample:
    return Sample(tuple(getattr(one, kind) for one in times))


def handlers() -> list[str]:
    """The names of the functions' modules."""
    return sorted(path.stem for path in LAMBDAS.glob("*.py") if path.stem != "__init__")


def _in_turn(programs: Mapping[str, str], compiled: str, rounds: int) -> dict[str, list[Times]]:
    """Times of each program in each round, after one round that compiles and warms the cache.

    ``compiled`` is the directory for compiled modules; empty: they are compiled each time.
    """
    taken: dict[str, list[Times]] = {name: [] for name in programs}
    for turn in range(rounds + 1):
        for name, program in programs.items():
            times = _times(program, compiled)
            if turn:
                taken[name].append(times)
    return taken


def _times(program: str, compiled: str) -> Times:
    # A prefix where nothing is makes Python find no compiled module, and -B write none.
    cache = ["-X", f"pycache_prefix={compiled}"] if compiled else ["-X", "pycache_prefix=/x", "-B"]
    paths = [str(path) for path in (LAMBDAS, LAYER, dependencies_layer() / "python")]
    done = subprocess.run(
        [sys.executable, "-I", "-S", *cache, "-c", _TIMED, program, *paths],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    wall, cpu = done.stdout.split()[-2:]
    return Times(float(wall), float(cpu))


def environment() -> dict[str, str]:
    """What the handlers read of their environment."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_EC2_METADATA_DISABLED": "true",
        env.TABLE: "bench",
        env.LEDGER_TTL_DAYS: "90",
        env.REPLACE_BELOW: '[""]',
        env.STATE_MACHINE: "arn:aws:states:us-east-1:123456789012:stateMachine:bench",
        env.POWERTOOLS_SERVICE_NAME: env.SERVICE,
        env.POWERTOOLS_METRICS_NAMESPACE: env.METRICS_NAMESPACE,
    }
