"""Run the mutants: ``make mutants``, or some of them: ``make mutants ARGS="--only marker"``.

Each bug is put into a copy of the package and the tests in a temporary directory, and the
simulation, or the tests that the list names, are run on the copy. One that survives is a hole in
the simulation.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.engines.mutants.mutant import Mutant, mutants

LISTS = ("protocol", "policies", "keeping", "escalation", "undoing")
MUTANTS = [one for name in LISTS for one in mutants(Path(__file__).with_name(f"{name}.txt"))]
ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "layers/s3commit/python/s3commit"
OTHERS = ("tests", "stacks")
# What says that code or tests no longer fit together, and not that a promise is broken.
OUT_OF_DATE = ("NameError", "AttributeError", "TypeError", "ImportError", "ModuleNotFoundError")
LIMIT = 600.0  # seconds a mutant; one that loops is no survivor, but not caught either


def main() -> int:
    """Run them; 1 if one survives."""
    parser = argparse.ArgumentParser(prog="make mutants ARGS=…", description=__doc__)
    parser.add_argument("--only", default="", help="those whose name contains this")
    parser.add_argument("--schedules", type=int, default=3000, help="of each simulation (3000)")
    arguments = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if arguments.only in mutant.name]
    survived = []
    with tempfile.TemporaryDirectory() as temporary:
        for number, mutant in enumerate(chosen, 1):
            started = time.monotonic()
            verdict = kill(mutant, Path(temporary) / str(number), arguments.schedules)
            took = time.monotonic() - started
            print(f"{number:3} {took:6.1f} s  {mutant.name}: {verdict or 'SURVIVED'}", flush=True)
            if not verdict:
                survived.append(mutant)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} mutants killed")
    return 1 if survived else 0


def kill(mutant: Mutant, directory: Path, schedules: int) -> str:
    """What caught the mutant; empty if nothing did."""
    _copy(directory)
    for file, old, new in mutant.edits:
        target = directory / (file if file.split("/")[0] in OTHERS else f"s3commit/{file}")
        text = target.read_text()
        if text.count(old) != 1:
            print(f"{file} does not have this once:\n{old}", file=sys.stderr)
            return ""
        target.write_text(text.replace(old, new))
    simulated = ["-m", "tests.engines.sim", "--first", "1", "--schedules", str(schedules)]
    tested = ["-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider"]
    engines = {"sim": simulated, "adversary": [*simulated, "--adversary"]}
    command = engines.get(mutant.by) or [*tested, *mutant.by.split()]
    environment = {**os.environ, "PYTHONPATH": str(directory), "PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        print(f"gave up after {LIMIT:.0f} s", file=sys.stderr)
        return ""
    if done.returncode == 0:
        return ""
    told = [line for line in done.stdout.splitlines() if line.startswith(("seed ", "FAILED"))]
    said = told[-1] if told else done.stdout + done.stderr
    if not told or any(error in said for error in OUT_OF_DATE):
        print(f"the bug is out of date: {said}", file=sys.stderr)
        return ""
    return said


def _copy(directory: Path) -> None:
    """Copy what mutants change, the package, stacks and tests; everything else is a link."""
    without_caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, directory / "s3commit", ignore=without_caches)
    for name in OTHERS:
        shutil.copytree(ROOT / name, directory / name, ignore=without_caches)
    for each in ROOT.iterdir():
        if each.name not in OTHERS:
            (directory / each.name).symlink_to(each)


if __name__ == "__main__":
    sys.exit(main())
