"""Benchmark 9: what a step takes of a processor, for each file and each request of a large job.

``python -m bench.steps``; with ``--manifests 10000`` also beside a job of a million files, which
takes 3 GB and some minutes. `bench.model` computes from these figures what a deployment does; its
constants are the medians of this command (bench/README.md). Requests are the deployed adapters', to
a moto server that is a process of its own; what a step does between its requests is measured over
the fakes. The baseline of a request is the smallest one, that of a step `json.loads` of its
manifests. Latency is AWS's, and is none of it.
"""

import argparse
import json
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from rich.console import Console

import s3commit
from bench import reading
from bench.cold import BUCKET, on_moto
from bench.figures import Figure, Sample, show
from s3commit.aws.clients import make_client
from s3commit.aws.clock import SystemClock
from s3commit.aws.parallel import ThreadMap
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.commit.begin_publish import begin_publish
from s3commit.core.commit.note_arrivals import note_manifest
from s3commit.core.commit.publish_success import publish_success
from s3commit.core.commit.verify_manifests import verify_manifests
from s3commit.core.documents.pendingset import (
    PendingFile,
    PendingSet,
    decode_pendingset,
    encode_pendingset,
)
from s3commit.core.documents.ticket import Ticket, UnitResult
from s3commit.core.jobs.listings import PAGE
from s3commit.core.model.limits import COMPLETE_WORKERS
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.objects import OpenUpload
from tests.fakes.execution import STEPS
from tests.fakes.executions import MemoryExecutions
from tests.fakes.memory import MemoryLedger, MemoryObjectStore

ROUNDS: Final = 5
FILES: Final = 100  # of a manifest
MANIFESTS: Final = 100  # of the job over the fakes
INGEST_GOAL: Final = 2.0  # CPU ms of a manifest, beyond the requests to AWS
EXPONENT: Final = 1.05  # of the files, by which a step's time may grow
LISTED: Final = "listed/"


def steps(
    say: Callable[[str], None],
    *,
    rounds: int = ROUNDS,
    manifests: int = MANIFESTS,
    page: int = PAGE,
    more: int = 0,
) -> list[Figure]:
    """CPU milliseconds, each with its baseline of the same round; also of ``more`` manifests."""
    say(f"steps: {rounds} jobs on moto, and {rounds} of {manifests * FILES:,} files on the fakes")
    with on_moto():
        _open_uploads(page)
        requests = [_requests() for _ in range(rounds + 1)][1:]  # the first one is warm-up
    pure = [_steps(manifests) for _ in range(rounds)]
    completion, manifest, listing, head = zip(*requests, strict=True)
    ingest, verify, publish, loads = zip(*pure, strict=True)
    figures = [
        Figure(
            "CPU of a step",
            f"ingest a manifest of {FILES} files",
            "CPU ms",
            Sample(ingest),
            "json.loads of it",
            Sample(tuple(one * FILES / 1000 for one in loads)),
            limit=INGEST_GOAL,
        ),
        _figure("a completion", completion, "HEAD of an object", head),
        _figure(f"read a manifest of {FILES} files", manifest, "HEAD of an object", head),
        _figure(f"list a page of {page:,} uploads", listing, "HEAD of an object", head),
        _figure("VerifyManifests, 1,000 files", verify, "json.loads of their manifests", loads),
        _figure("publishing 1,000 files", publish, "json.loads of their manifests", loads),
    ]
    if more:
        say(f"steps: one job of {more * FILES:,} files on the fakes")
        larger = _steps(more)
        goal = (more / manifests) ** (EXPONENT - 1)
        for name, step, mine, others in (
            ("ingest a manifest", "", larger[0], ingest),
            ("VerifyManifests", ", 1,000 files", larger[1], verify),
            ("publishing 1,000 files", "", larger[2], publish),
        ):
            figures.append(
                Figure(
                    f"CPU of a step, {more * FILES:,} files",
                    name + step,
                    "CPU ms",
                    Sample((mine,)),
                    f"of a job of {manifests * FILES:,}",
                    Sample(others),
                    goal=goal,
                )
            )
    return figures


def _figure(
    what: str, values: tuple[float, ...], baseline: str, against: tuple[float, ...]
) -> Figure:
    return Figure("CPU of a step", what, "CPU ms", Sample(values), baseline, Sample(against))


def _cpu(work: Callable[[], object], count: int) -> float:
    """CPU milliseconds of this process for each of ``count``."""
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start) / count


def _open_uploads(count: int) -> None:
    """So many that nobody completes."""
    store, parallel = S3ObjectStore(make_client()), ThreadMap(COMPLETE_WORKERS)

    def open_upload(number: int) -> None:
        key = f"{LISTED}part-{number:05}-{reading.JOB}.c000.snappy.parquet"
        store.create_upload(BUCKET, key, metadata={}, content_type="application/octet-stream")

    for _ in parallel(open_upload, range(count)):
        pass


def _requests() -> tuple[float, float, float, float]:
    """A completion, a manifest, a page of uploads and a HEAD, as `complete_unit` makes them."""
    job = s3commit.open_job(f"s3://{BUCKET}/{time.monotonic_ns():x}/")
    with job.task("0") as task:
        for number in range(FILES):
            with task.open(f"part-{number:05}.bin") as file:
                file.write(b"step" * 1000)
    counted = task.counted
    assert counted is not None
    store = S3ObjectStore(make_client(connections=COMPLETE_WORKERS, slows_down=True))
    parallel = ThreadMap(COMPLETE_WORKERS)
    directory = job.directory
    key = directory.prefix + counted.manifest

    def read() -> PendingSet:
        body = store.get(BUCKET, key, max_bytes=1 << 30).body
        return decode_pendingset(body, directory, counted.manifest)

    def complete(file: PendingFile) -> object:
        return store.complete_upload(
            file.bucket, file.key, file.upload_id, file.etags, length=file.length
        )

    files = read().files
    manifest = _cpu(lambda: [read() for _ in range(FILES)], FILES)
    listing = _cpu(lambda: list(store.list_uploads(BUCKET, LISTED)), 1)
    completion = _cpu(lambda: list(parallel(complete, files)), FILES)
    head = _cpu(lambda: list(parallel(lambda one: store.head(BUCKET, one.key), files)), FILES)
    return completion, manifest, listing, head


class _Store(MemoryObjectStore):
    """The fake, with uploads that nobody has to make."""

    uploads: tuple[OpenUpload, ...] = ()

    def list_uploads(self, bucket: str, prefix: str, *, after: str = "") -> Iterator[OpenUpload]:
        first = bisect_right(self.uploads, after, key=lambda one: one.key)
        return iter(self.uploads[first:])


def _steps(manifests: int) -> tuple[float, float, float, float]:
    """What follows a request, of 1,000 files each, and before it the arrival of a manifest.

    VerifyManifests; BeginPublish with PublishSuccess; and `json.loads`.
    """
    store, files = _Store(reading.BUCKET), manifests * FILES / 1000
    ports = Ports(store, MemoryLedger(), SystemClock())
    tasks = [reading.task_of(number, FILES) for number in range(manifests)]
    bodies = {one.task_id: encode_pendingset(one) for one in tasks}
    for task_id, body in bodies.items():
        store.put(reading.BUCKET, reading.DIRECTORY.manifest(task_id, "a"), body)
    ticket = reading.sealed(ports, tasks)
    store.uploads = tuple(
        OpenUpload(file.key, file.upload_id, reading.AFTER_THE_JOB)
        for one in tasks
        for file in one.files
    )

    executions = MemoryExecutions()

    def ingest() -> None:
        for task_id in bodies:
            key = reading.DIRECTORY.manifest(task_id, "a")
            note_manifest(ports, executions, reading.BUCKET, key)

    arrival = _cpu(ingest, manifests)
    if sum(1 for _ in ports.ledger.attempts(ticket.directory.ref)) != manifests:
        raise AssertionError("a manifest was lost")
    loads = _cpu(lambda: [len(json.loads(body)) for body in bodies.values()], 1) / files
    after: list[Ticket] = []
    verify = _cpu(lambda: after.append(verify_manifests(ports, ticket)), 1) / files
    ticket = after.pop()
    for step in ("AcquireDestination", "CheckConditions", "DecideCommit"):
        ticket = STEPS[step](ports, ticket)
    plan = json.loads(store.get(ticket.bucket, ticket.plan, max_bytes=1 << 30).body)
    done = tuple(UnitResult(unit["unit"], files=unit["to"] - unit["from"], lost=0) for unit in plan)
    ticket = replace(ticket, completed=done)

    def publish() -> None:
        publish_success(ports, begin_publish(ports, ticket))

    return arrival, verify, _cpu(publish, 1) / files, loads


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m bench.steps", description=__doc__)
    parser.add_argument("--manifests", type=int, default=0, help=f"of {FILES} files; default: none")
    found = steps(
        lambda line: print(f"bench: {line}", file=sys.stderr), more=parser.parse_args().manifests
    )
    show(found, Console(width=120))
