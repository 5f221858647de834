"""Benchmark 10: the processor and the memory that each call takes, by the size of the job.

``python -m bench.sizes`` makes the table and the plot of docs/scale.md. The steps are the deployed
ones, over the fakes, of which each size has a process of its own. The memory of a call is its peak
above what the process had before; what the step itself writes is kept on disk, as in S3. The calls
that complete files are left out: a unit of the largest job is not larger than one of the smallest.
"""

import argparse
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from bench import reading
from bench.processes import peak, reset_peak
from bench.steps import FILES
from s3commit.aws.clients import MAX_POOL_CONNECTIONS
from s3commit.aws.clock import SystemClock
from s3commit.aws.parallel import ThreadMap
from s3commit.core.calls import routes
from s3commit.core.documents.pendingset import encode_pendingset
from s3commit.core.documents.ticket import Ticket, UnitResult
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import ObjectFacts, OpenUpload, StoredObject
from s3commit.writer.transfer import MIB
from tests.fakes.bucket import etag_of
from tests.fakes.execution import COMPLETING, call
from tests.fakes.memory import MemoryLedger, MemoryObjectStore

TASKS: Final = (10, 100, 1_000, 10_000)
PLOT: Final = Path(__file__).parents[1] / "docs" / "pictures" / "sizes.svg"
_LONG: Final = 4096  # bytes; a longer body goes to disk
_ON_DISK: Final = b"on disk"

Taken = Mapping[str, tuple[float, float]]  # CPU seconds and MiB, by call


class Store(MemoryObjectStore):
    """The fake, with its documents on disk, and uploads that nobody has to make."""

    def __init__(self, tasks: int, folder: Path) -> None:
        super().__init__(reading.BUCKET)
        self._folder = folder
        self.uploads: list[OpenUpload] = []
        for task in range(tasks):
            pending = reading.task_of(task, FILES)
            key = reading.DIRECTORY.manifest(pending.task_id, "a")
            self.put(reading.BUCKET, key, encode_pendingset(pending))
            self.uploads += [
                OpenUpload(one.key, one.upload_id, reading.AFTER_THE_JOB) for one in pending.files
            ]

    def put(self, bucket: str, key: str, body: bytes, **how: Any) -> str:
        """Keep a short body; a long one goes to disk."""
        if len(body) > _LONG:
            self._file(key).write_bytes(body)
            body = _ON_DISK
        return super().put(bucket, key, body, **how)

    def upload_part(
        self, bucket: str, key: str, upload_id: str, number: int, body: bytes | memoryview
    ) -> str:
        """Keep nothing: no step reads the commit manifest again."""
        return etag_of(bytes(body))

    def complete_upload(self, bucket: str, key: str, *_: object, **how: object) -> ObjectFacts:
        """Leave an object without a body."""
        return ObjectFacts(key, self.put(bucket, key, b""), 0)

    def get(self, bucket: str, key: str, *, max_bytes: int) -> StoredObject:
        """The body from where it is."""
        stored = super().get(bucket, key, max_bytes=max_bytes)
        if stored.body != _ON_DISK:
            return stored
        body = self._file(key).read_bytes()
        return StoredObject(ObjectFacts(key, stored.facts.etag, len(body)), body)

    def list_uploads(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[OpenUpload]:
        """All of the job; none when it is completed."""
        first = bisect_right(self.uploads, after, key=attrgetter("key"))
        return iter(self.uploads[first:])

    def _file(self, key: str) -> Path:
        return self._folder / key.replace("/", ":")


def measured(tasks: int) -> Taken:
    """One job, step by step, in this process."""
    found: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(prefix="s3commit-sizes-") as folder:
        store = Store(tasks, Path(folder))
        parallel = ThreadMap(MAX_POOL_CONNECTIONS)
        ports = Ports(store, MemoryLedger(), SystemClock(), parallel=parallel)
        ticket = reading.asked(store, (reading.task_of(task, FILES) for task in range(tasks)))

        name = routes.FIRST
        while name not in routes.ENDS.values():
            if name in COMPLETING:
                store.uploads, name = [], routes.COUNTED
                ticket = _completed(store, ticket)
            _give_back()
            held, began = reset_peak(os.getpid()), time.process_time()
            ticket, following = call(ports, name, ticket, goes_on=False)
            used = (peak(os.getpid()) - held) / MIB
            found[name], name = (time.process_time() - began, used), following
    if ticket.outcome != "COMMITTED" or ticket.files != tasks * FILES:
        raise AssertionError(f"the job ended {ticket.outcome or ticket.state}")
    return found


def _give_back() -> None:
    """What earlier calls have freed: the next one is a process of its own in AWS."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def _completed(store: Store, ticket: Ticket) -> Ticket:
    """As the Map leaves it."""
    plan = json.loads(store.get(ticket.bucket, ticket.plan, max_bytes=1 << 30).body)
    done = (UnitResult(unit["unit"], unit["to"] - unit["from"], lost=0) for unit in plan)
    return replace(ticket, completed=tuple(done))


def table(taken: Mapping[int, Taken]) -> str:
    """CPU seconds and MiB of each call, one column a size."""
    heads = ["call", *(f"{tasks * FILES:,} files" for tasks in taken)]
    rows = [heads, ["---"] * len(heads)]
    for name in next(iter(taken.values())):
        cells = (found[name] for found in taken.values())
        rows.append([name, *(f"{cpu:.2f} s, {max(used, 0):.0f} MB" for cpu, used in cells)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def plot(taken: Mapping[int, Taken], path: Path) -> None:
    """Both by the size of the job, on logarithmic axes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "s3commit"  # the same figures give the same file
    mpl.rcParams["svg.fonttype"] = "none"  # texts, not outlines
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    sizes = [tasks * FILES for tasks in taken]
    for place, (axes, title) in enumerate(
        zip(figure.subplots(1, 2), ("CPU seconds", "MB"), strict=True)
    ):
        for name in next(iter(taken.values())):
            values = [max(found[name][place], 0.01) for found in taken.values()]
            axes.loglog(sizes, values, marker="o", label=name if place == 0 else None)
        axes.set_title(f"{title} of a call")
        axes.set_xlabel("files of the job")
        axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Measure each size in a process of its own, print the table, and keep the plot."""
    parser = argparse.ArgumentParser("python -m bench.sizes", description=__doc__)
    parser.add_argument("--tasks", type=int, help=f"of {FILES} files: this size alone, as JSON")
    parser.add_argument("--plot", type=Path, default=PLOT)
    chosen = parser.parse_args()
    if chosen.tasks:
        print(json.dumps(measured(chosen.tasks)))
        return
    taken = {}
    for tasks in TASKS:
        alone = [sys.executable, "-m", "bench.sizes", "--tasks", str(tasks)]
        taken[tasks] = json.loads(subprocess.run(alone, capture_output=True, check=True).stdout)
    print(table(taken), end="")
    plot(taken, chosen.plot)


if __name__ == "__main__":
    main()
