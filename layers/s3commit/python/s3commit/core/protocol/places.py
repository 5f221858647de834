"""The places of a job: its destination, and the locations of partitions outside it (ADR 13).

A location counts as the job's if the main ``job.json`` names the location and the location's own
names the main one; where one of the two is missing, the pipeline does nothing there. What
VerifyManifests has seen to be so the ledger keeps, and later steps go by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from s3commit.core.documents import MAX_JOB_BYTES, decode_main
from s3commit.core.errors import InvalidInputError, JobRefusedError, NotFoundError
from s3commit.core.jsontext import TOO_LARGE
from s3commit.core.layout import JobDirectory
from s3commit.core.locations import BAD_LOCATION
from s3commit.core.manifest import MAX_MANIFEST_BYTES, SMALL_MANIFEST_BYTES
from s3commit.core.model import JobRecord, JobSpec, PendingFile, PendingSet
from s3commit.core.plan import Slice, Unit
from s3commit.core.protocol.pipeline import Pipeline, read_manifest, read_plan, read_spec

LOCATION_NOT_AGREED = "LOCATION_NOT_AGREED"

MANIFESTS_AT_ONCE = 128  # of a plan that are read side by side, and held until their turn
FILES_AT_ONCE = 4_096


def main_of(pipeline: Pipeline, place: JobDirectory) -> JobDirectory | None:
    """The main directory that the ``job.json`` here names; None if this is no location.

    Raises `InvalidInputError` if it can't be read.
    """
    try:
        stored = pipeline.store.get(place.bucket, place.job, max_bytes=MAX_JOB_BYTES)
    except NotFoundError:
        return None
    return decode_main(stored.body, place)


def is_location(pipeline: Pipeline, place: JobDirectory) -> bool:
    """Whether the ``job.json`` here is of a location, whosever."""
    try:
        return main_of(pipeline, place) is not None
    except InvalidInputError:
        return False


def says_elsewhere(pipeline: Pipeline, place: JobDirectory) -> bool:
    """Whether the ``job.json`` that lies here is not acceptable here: nothing was ever decided.

    So it is in a copy of a table, which brings along the job directories of the original.
    """
    try:
        read_spec(pipeline, place)
    except InvalidInputError:
        return True
    return False


def is_agreed(pipeline: Pipeline, main: JobDirectory, prefix: str) -> bool:
    """Whether the location's own ``job.json`` says that it is the job's."""
    try:
        return main_of(pipeline, main.at(prefix)) == main
    except InvalidInputError:
        return False


def verified_locations(pipeline: Pipeline, main: JobDirectory, spec: JobSpec) -> dict[str, str]:
    """The job's locations, if each of them agrees.

    Raises `JobRefusedError` (``LOCATION_NOT_AGREED``) if one does not.
    """
    agreed = _agreed(pipeline, main, spec)
    for name, prefix in spec.locations.items():
        if name not in agreed:
            raise JobRefusedError(
                f"{main.at(prefix).job} does not say that the job at {main.destination.uri} may"
                f" write partition {name!r} there",
                code=LOCATION_NOT_AGREED,
            )
    return agreed


def _agreed(pipeline: Pipeline, main: JobDirectory, spec: JobSpec) -> dict[str, str]:
    def ask(item: tuple[str, str]) -> tuple[tuple[str, str], bool]:
        return item, is_agreed(pipeline, main, item[1])

    answers = pipeline.parallel(ask, sorted(spec.locations.items()))
    return dict(sorted(item for item, agreed in answers if agreed))


def known_locations(
    pipeline: Pipeline, main: JobDirectory, record: JobRecord | None
) -> dict[str, str]:
    """The job's locations: by its plan in the ledger, else those which agree by now."""
    if record is not None and record.plan is not None and record.plan.sha256:
        return record.plan.locations
    try:
        return _agreed(pipeline, main, read_spec(pipeline, main))
    except InvalidInputError:
        return {}  # nobody can tell them


def places_of(
    pipeline: Pipeline, main: JobDirectory, record: JobRecord | None
) -> tuple[JobDirectory, ...]:
    """The job's directories: the main one, then those of its locations."""
    locations = known_locations(pipeline, main, record)
    return (main, *(main.at(prefix) for prefix in locations.values()))


def slice_of(
    pipeline: Pipeline,
    main: JobDirectory,
    record: JobRecord,
    part: Slice,
    *,
    max_bytes: int = MAX_MANIFEST_BYTES,
) -> tuple[PendingFile, ...]:
    """The files of a slice of the decided plan, from the manifest in its own place (I7).

    Raises as `read_manifest`, and `JobRefusedError` (``BAD_LOCATION``) for a place that is not
    among those that the ledger names.
    """
    place = main.at(part.location) if part.location else main
    known = record.plan.locations.values() if record.plan else ()
    if part.location and part.location not in known:
        raise JobRefusedError(
            f"the plan names {part.location[:200]!r}, which is no location of the job",
            code=BAD_LOCATION,
        )
    pending: PendingSet = read_manifest(
        pipeline, place, part.manifest, part.sha256, names=record.names, max_bytes=max_bytes
    )
    return pending.files[part.start : part.stop]


def planned_files(
    pipeline: Pipeline, main: JobDirectory, record: JobRecord
) -> Iterator[PendingFile]:
    """Every file of the plan, in its order. Raises as `read_plan` and `slice_of`."""
    for _, files in by_manifest(pipeline, main, record, read_plan(pipeline, main, record)):
        if isinstance(files, JobRefusedError):
            raise files
        yield from files


def by_manifest(
    pipeline: Pipeline, main: JobDirectory, record: JobRecord, units: Iterable[Unit]
) -> Iterator[tuple[Slice, tuple[PendingFile, ...] | JobRefusedError]]:
    """The files of each manifest in the plan's order, or why `slice_of` refuses it.

    Each is read once, and many side by side: a hundred thousand of them one after the other take
    longer than a call has time for. A large one is read alone, when its turn has come. Memory: that
    of `MANIFESTS_AT_ONCE` small manifests and a large one.
    """

    def read(part: Slice, max_bytes: int) -> tuple[PendingFile, ...] | JobRefusedError:
        try:
            return slice_of(pipeline, main, record, part, max_bytes=max_bytes)
        except JobRefusedError as error:
            return error

    def read_small(
        item: tuple[int, Slice],
    ) -> tuple[int, tuple[PendingFile, ...] | JobRefusedError]:
        number, part = item
        return number, read(part, SMALL_MANIFEST_BYTES)

    for some in _at_once(_manifests(part for unit in units for part in unit.slices)):
        found = dict(pipeline.parallel(read_small, enumerate(some)))
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
