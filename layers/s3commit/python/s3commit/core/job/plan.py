"""The decided plan, and the files that it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.manifest import MAX_MANIFEST_BYTES, SMALL_MANIFEST_BYTES, digest
from s3commit.core.formats.plan import MAX_PLAN_BYTES, Slice, Unit, decode_plan
from s3commit.core.formats.strict_json import TOO_LARGE
from s3commit.core.job.manifests import read_manifest
from s3commit.core.model.errors import InvalidInputError, JobRefusedError
from s3commit.core.model.pending import PendingFile
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports

PLAN_CHANGED = "PLAN_CHANGED"


def read_plan(ports: Ports, directory: JobDirectory, record: JobRecord) -> list[Unit]:
    """The plan that the ledger names; another one is not acted on.

    Raises `NotFoundError`, and `JobRefusedError` (``PLAN_CHANGED``).
    """
    decided = record.plan.sha256 if record.plan else ""
    try:
        stored = ports.store.get(
            directory.bucket, directory.plan(decided), max_bytes=MAX_PLAN_BYTES
        )
    except InvalidInputError as error:
        raise JobRefusedError(error.message, code=PLAN_CHANGED) from error
    if digest(stored.body) != decided:
        raise JobRefusedError("the plan is not the one that was decided", code=PLAN_CHANGED)
    return decode_plan(stored.body)


MANIFESTS_AT_ONCE = 128  # of a plan that are read side by side, and held until their turn
FILES_AT_ONCE = 4_096


def planned_files(
    ports: Ports, directory: JobDirectory, record: JobRecord
) -> Iterator[PendingFile]:
    """Every file of the plan, in its order. Raises as `read_plan`, and what refuses a manifest."""
    for _, files in by_manifest(ports, directory, record, read_plan(ports, directory, record)):
        if isinstance(files, JobRefusedError):
            raise files
        yield from files


def readable_files(
    ports: Ports, directory: JobDirectory, record: JobRecord, units: Iterable[Unit]
) -> Iterator[PendingFile]:
    """The files of these units, without those of a manifest that is gone or changed."""
    for _, files in by_manifest(ports, directory, record, units):
        if not isinstance(files, JobRefusedError):
            yield from files


def by_manifest(
    ports: Ports, directory: JobDirectory, record: JobRecord, units: Iterable[Unit]
) -> Iterator[tuple[Slice, tuple[PendingFile, ...] | JobRefusedError]]:
    """The files of each manifest in the plan's order, or why it is refused (I7).

    Each is read once, and many side by side: a hundred thousand of them one after the other take
    longer than a call has time for. A large one is read alone, when its turn has come. Memory: that
    of `MANIFESTS_AT_ONCE` small manifests and a large one.
    """

    def read(part: Slice, max_bytes: int) -> tuple[PendingFile, ...] | JobRefusedError:
        try:
            pending = read_manifest(ports, directory, part, max_bytes)
        except JobRefusedError as error:
            return error
        return pending.files[part.start : part.stop]

    def read_small(
        item: tuple[int, Slice],
    ) -> tuple[int, tuple[PendingFile, ...] | JobRefusedError]:
        number, part = item
        return number, read(part, SMALL_MANIFEST_BYTES)

    for some in _at_once(_manifests(part for unit in units for part in unit.slices)):
        found = dict(ports.parallel(read_small, enumerate(some)))
        for number, part in enumerate(some):
            files = found.pop(number)
            if isinstance(files, JobRefusedError) and files.code == TOO_LARGE:
                files = read(part, MAX_MANIFEST_BYTES)
            yield part, files


def _manifests(parts: Iterable[Slice]) -> Iterator[Slice]:
    """The slices with those put together that the plan has cut out of one manifest."""
    whole: Slice | None = None
    for part in parts:
        if whole and part == replace(whole, start=whole.stop, stop=part.stop):
            whole = replace(whole, stop=part.stop)
            continue
        if whole:
            yield whole
        whole = part
    if whole:
        yield whole


def _at_once(parts: Iterable[Slice]) -> Iterator[list[Slice]]:
    some: list[Slice] = []
    files = 0
    for part in parts:
        size = part.stop - part.start
        if some and (len(some) >= MANIFESTS_AT_ONCE or files + size > FILES_AT_ONCE):
            yield some
            some, files = [], 0
        some.append(part)
        files += size
    if some:
        yield some
