"""How much of the code a stranger has to read to follow one document: these figures only fall.

The records of documents count: they are beside their codecs.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

from s3commit.core.commit.note_arrivals import note_job
from s3commit.core.documents.request_json import CountedAttempt
from s3commit.core.formats.layout import JobDirectory
from tests.core.world import World, job_directory

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "layers" / "s3commit" / "python"
# Values and protocols: a reader takes them as given.
TAKEN_AS_GIVEN = ("core/model", "core/ports")


def passed_through(act: Callable[[], object]) -> int:
    """How many functions of the product ``act`` runs through."""
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
    return len(functions)


def written(*tasks: str) -> tuple[World, JobDirectory, list[CountedAttempt]]:
    """A job whose tasks have written, and whose `_job.json` the ledger has been told of."""
    world, directory = World(), job_directory()
    counted = [world.attempt(directory, task) for task in tasks]
    note_job(world.ports, directory.bucket, directory.job)
    return world, directory, counted


def test_a_manifest_passes_few_functions_on_its_way_to_the_ledger() -> None:
    world, directory, (counted,) = written("t0")

    functions = passed_through(lambda: world.announce(directory, counted))

    assert 0 < functions <= 28


def test_a_request_passes_few_functions_on_its_way_to_the_result() -> None:
    for _ in range(2):  # what is made once in a process is made by the first
        world, directory, counted = written("t0", "t1", "t2")
        world.request(directory, *counted)
        functions = passed_through(partial(world.run, directory))

    assert world.result(directory).files == 3
    assert functions <= 143
