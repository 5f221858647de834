"""Benchmark 6: the memory that the worst documents take, which anybody may write.

Each is as large as its limits allow, in bytes and in values, and filled with what costs Python
most. It is read in a fresh process that has imported the function which reads it. The figure is the
peak RSS; the baseline is the memory of that function.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.cold import LAMBDAS, environment
from bench.figures import Figure, Sample
from bench.reading import DIRECTORY, JOB
from s3commit.core.documents import job_json, pendingset, request_json, result_json
from s3commit.core.documents.success_marker import MAX_SUCCESS_BYTES
from s3commit.core.formats.strict_json import MAX_VALUES
from s3commit.writer.transfer import MIB
from stacks.functions import FUNCTIONS
from stacks.layers import ROOT

# One such character, and Python takes 4 bytes for each of the text that it stands in.
_WIDE: Final = "\U0001f600"

# What fills an ignored key: the elements of an array, or the members of an object.
SHAPES: Final[dict[str, Callable[[int], str]]] = {
    "text": lambda number: "0",
    "empty lists": lambda number: "[]",
    "objects in objects": lambda number: '{"":{"":[[]]}}',
    "names": lambda number: f'{{"{number:x}\u0100":0}}',
    "texts": lambda number: f'"{number:x}\u0100"',
    "members": lambda number: f'"{number:x}\u0100":0',
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A document with its limits, and the smallest function that reads it.

    ``sound`` is one that is taken but for its size, without its last brace.
    """

    sound: str
    function: str
    max_bytes: int
    most: int = MAX_VALUES


_JOB_ID: Final = f'{{"version":1,"jobId":"{JOB}"'
_SET: Final = f'{{"version":3,"jobId":"{JOB}","commits":[]'

KINDS: Final[dict[str, Kind]] = {
    "pendingset": Kind(
        _SET, "ingest", pendingset.MAX_MANIFEST_BYTES, pendingset.MAX_MANIFEST_VALUES
    ),
    "side by side": Kind(
        _SET, "end", pendingset.SMALL_MANIFEST_BYTES, pendingset.MAX_MANIFEST_VALUES
    ),
    "job": Kind(
        f'{_JOB_ID},"destination":"{DIRECTORY.destination.uri}"', "ingest", job_json.MAX_JOB_BYTES
    ),
    "request": Kind(
        f'{_JOB_ID},"action":"commit"',
        "end",
        request_json.MAX_REQUEST_BYTES,
        request_json.MAX_REQUEST_VALUES,
    ),
    "result": Kind(_JOB_ID, "ingest", result_json.MAX_RESULT_BYTES),
    "success": Kind(_JOB_ID, "end", MAX_SUCCESS_BYTES),
}


def documents(say: Callable[[str], None]) -> list[Figure]:
    """Read each kind in each shape, then the largest job."""
    figures = []
    for name in KINDS:
        for shape in SHAPES:
            figures.append(measured(name, shape))
        say(f"documents: {name}")
    figures.append(_figure("whole job", "1,000,000 files of 100,000 tasks", "decide", b""))
    return figures


def measured(name: str, shape: str) -> Figure:
    """The peak RSS of a function that reads the worst document of that kind and shape."""
    kind = KINDS[name]
    return _figure(name, shape, kind.function, worst(kind, shape))


def worst(kind: Kind, shape: str) -> bytes:
    """As many values as the limits allow, then a text up to the last byte that they do."""
    room = kind.max_bytes - len(kind.sound) - 100
    left = kind.most - kind.sound.count(",") - 10
    filling = []
    number = 0
    while shape != "text":
        one = SHAPES[shape](number)
        room -= len(one.encode()) + 1
        left -= sum(map(one.count, ",[{")) + 1
        if room < 0 or left < 0:
            break
        filling.append(one)
        number += 1
    opened, closed = "{}" if shape == "members" else "[]"
    filled = opened + ",".join(filling) + closed
    text = f'{kind.sound},"x":{filled},"y":"{_WIDE}"}}'.encode()
    return text.replace(b'"y":"', b'"y":"' + b"y" * (kind.max_bytes - len(text)))


def _figure(name: str, shape: str, function: str, body: bytes) -> Figure:
    used = read_alone(function, name, body)
    return Figure(
        "documents",
        f"{name}, {shape}",
        "MB",
        Sample((used / MIB,)),
        "memory of the function that reads it",
        Sample((float(FUNCTIONS[function].memory),)),
        goal=1.0,
    )


def read_alone(function: str, reader: str, body: bytes) -> int:
    """The peak RSS in bytes of a process that reads the document, which has to be taken."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        done = subprocess.run(
            [sys.executable, "-m", "bench.reading", function, reader, file.name],
            env=environment() | {"PYTHONPATH": os.pathsep.join([str(LAMBDAS), *sys.path])},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    _, used, taken = map(int, done.stdout.split()[-3:])
    if not taken:
        raise AssertionError(f"{reader}: the document was refused, so nothing was measured")
    return used
