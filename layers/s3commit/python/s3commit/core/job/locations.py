"""The places of a job: its destination, and the locations of partitions outside it (ADR 13).

A location counts as the job's if the main ``job.json`` names the location and the location's own
names the main one; where one of the two is missing, the pipeline does nothing there. What
VerifyManifests has seen to be so the ledger keeps, and later steps go by that.
"""

from __future__ import annotations

from s3commit.core.formats.documents import MAX_JOB_BYTES, decode_main
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.job.documents import read_spec
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, NotFoundError
from s3commit.core.model.job import JobSpec
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports

LOCATION_NOT_AGREED = "LOCATION_NOT_AGREED"


def main_of(ports: Ports, directory: JobDirectory) -> JobDirectory | None:
    """The main directory that the ``job.json`` here names; None if this is no location.

    Raises `InvalidInputError` if it can't be read.
    """
    try:
        stored = ports.store.get(directory.bucket, directory.job, max_bytes=MAX_JOB_BYTES)
    except NotFoundError:
        return None
    return decode_main(stored.body, directory)


def is_location(ports: Ports, directory: JobDirectory) -> bool:
    """Whether the ``job.json`` here is of a location, whosever."""
    try:
        return main_of(ports, directory) is not None
    except InvalidInputError:
        return False


def says_elsewhere(ports: Ports, directory: JobDirectory) -> bool:
    """Whether the ``job.json`` that lies here is not acceptable here: nothing was ever decided.

    So it is in a copy of a table, which brings along the job directories of the original.
    """
    try:
        read_spec(ports, directory)
    except InvalidInputError:
        return True
    return False


def is_agreed(ports: Ports, main: JobDirectory, prefix: str) -> bool:
    """Whether the location's own ``job.json`` says that it is the job's."""
    try:
        return main_of(ports, main.at(prefix)) == main
    except InvalidInputError:
        return False


def verified_locations(ports: Ports, main: JobDirectory, spec: JobSpec) -> dict[str, str]:
    """The job's locations, if each of them agrees.

    Raises `JobRefusedError` (``LOCATION_NOT_AGREED``) if one does not.
    """
    agreed = _agreed(ports, main, spec)
    for name, prefix in spec.locations.items():
        if name not in agreed:
            raise JobRefusedError(
                f"{main.at(prefix).job} does not say that the job at {main.destination.uri} may"
                f" write partition {name!r} there",
                code=LOCATION_NOT_AGREED,
            )
    return agreed


def _agreed(ports: Ports, main: JobDirectory, spec: JobSpec) -> dict[str, str]:
    def ask(item: tuple[str, str]) -> tuple[tuple[str, str], bool]:
        return item, is_agreed(ports, main, item[1])

    answers = ports.parallel(ask, sorted(spec.locations.items()))
    return dict(sorted(item for item, agreed in answers if agreed))


def known_locations(ports: Ports, main: JobDirectory, record: JobRecord | None) -> dict[str, str]:
    """The job's locations: by its plan in the ledger, else those which agree by now."""
    if record is not None and record.plan is not None and record.plan.sha256:
        return record.plan.locations
    try:
        return _agreed(ports, main, read_spec(ports, main))
    except InvalidInputError:
        return {}  # nobody can tell them


def job_directories(
    ports: Ports, main: JobDirectory, record: JobRecord | None
) -> tuple[JobDirectory, ...]:
    """The job's directories: the main one, then those of its locations."""
    locations = known_locations(ports, main, record)
    return (main, *(main.at(prefix) for prefix in locations.values()))
