"""How much of the code a stranger has to read to follow one document: these figures only fall."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from s3commit.core.commit.ingest_pendingsets import note_job
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.job import CountedAttempt
from tests.core.world import World, job_directory

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "s3commit" / "python"
# Values and protocols: a reader takes them as given.
TAKEN_AS_GIVEN = ("core/model", "core/ports")
MODULES = {"complete": 33, "decide": 43, "dispatch": 21, "end": 44, "ingest": 36, "sweep": 40}


def passed_through(act: Callable[[], object]) -> tuple[int, int]:
    """The functions of the product that ``act`` runs through, and their modules."""
    functions: set[tuple[str, str]] = set()
    base = str(PACKAGE / "s3commit") + "/"

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        module = code.co_filename.removeprefix(base)
        if event == "call" and module != code.co_filename and not module.startswith(TAKEN_AS_GIVEN):
            functions.add((module, code.co_qualname))

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return len(functions), len({module for module, *_ in functions})


def written(*tasks: str) -> tuple[World, JobDirectory, list[CountedAttempt]]:
    """A job whose tasks have written, and whose `job.json` the ledger has been told of."""
    world, directory = World(), job_directory()
    counted = [world.attempt(directory, task) for task in tasks]
    note_job(world.ports, directory.bucket, directory.job)
    return world, directory, counted


def test_a_manifest_passes_few_functions_on_its_way_to_the_ledger() -> None:
    world, directory, (counted,) = written("t0")

    functions, modules = passed_through(lambda: world.announce(directory, counted))

    assert 0 < functions <= 25
    assert modules <= 5


def test_a_request_passes_few_functions_on_its_way_to_the_result() -> None:
    world, directory, counted = written("t0", "t1", "t2")
    world.request(directory, *counted)

    functions, modules = passed_through(lambda: world.run(directory))

    assert world.result(directory).files == 3
    assert functions <= 143
    assert modules <= 20


@pytest.mark.parametrize(
    "handler", sorted((ROOT / "lambdas").glob("[!_]*.py")), ids=lambda p: p.stem
)
def test_a_handler_imports_few_modules(handler: Path) -> None:
    assert len(_closure(handler)) <= MODULES[handler.stem]


def _closure(handler: Path) -> set[Path]:
    found: set[Path] = set()
    left = [handler]
    while left:
        for path in _imported(left.pop()) - found:
            found.add(path)
            left.append(path)
    return found


def _imported(module: Path) -> set[Path]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    paths = {PACKAGE / (name.replace(".", "/") + ".py") for name in names}
    return {path for path in paths if path.is_relative_to(PACKAGE) and path.exists()}
