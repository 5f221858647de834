"""Partitions that lie outside the destination, as tables of Hive may have them.

A location is a destination of its own: it has a job directory of its own, and what lies in that
acts inside the location alone (I7). Its ``job.json`` names the job's destination, the main one,
where the request, the decision and the outcome are; the main ``job.json`` names the locations. A
location is the job's only if both agree, so that nobody else's directory is taken in
(docs/adr/0013).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from s3commit.core.formats.layout import bad_element, is_hidden, parse_destination
from s3commit.core.formats.strict_json import check_text
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Destination
from s3commit.core.model.limits import MAX_LOCATIONS
from s3commit.core.model.locks import fits

BAD_LOCATION = "BAD_LOCATION"


def parse_locations(given: Mapping[str, object], destination: Destination) -> dict[str, str]:
    """Partition directories (``dt=1/``) and the prefixes of the ``s3://`` locations given for them.

    Raises `InvalidInputError` (``BAD_LOCATION``) for a partition that is no visible directory below
    the destination, a location in another bucket or in a job directory, and for ones that overlap
    each other or the destination; also for more than a job can lock at once.
    """
    if len(given) > MAX_LOCATIONS:
        raise _bad(f"a job has at most {MAX_LOCATIONS} of them, not {len(given)}: use several jobs")
    locations = {}
    for name, uri in given.items():
        partition = _partition(name)
        if partition in locations:
            raise _bad(f"partition {name[:200]!r} is given twice")
        locations[partition] = _prefix(partition, uri, destination)
    _refuse_overlaps(locations, "partitions")
    _refuse_overlaps([*locations.values(), destination.prefix], "locations or destinations")
    if not fits(destination, locations):
        raise _bad("a job locks all of them and what they lie in, and these are too many: use two")
    return dict(sorted(locations.items()))


def location_uris(locations: Mapping[str, str], bucket: str) -> dict[str, str]:
    """The locations as documents have them, the inverse of `parse_locations`."""
    return {name: f"s3://{bucket}/{prefix}" for name, prefix in locations.items()}


def location_of(locations: Mapping[str, str], relative_key: str) -> str:
    """The partition with a location in which a key relative to the destination lies, or empty."""
    return next((name for name in locations if relative_key.startswith(name)), "")


def relative_in_table(locations: Mapping[str, str], destination: Destination, key: str) -> str:
    """The key relative to the destination, as if its partition lay there.

    Raises `InvalidInputError` (``BAD_LOCATION``) for a key that lies in no place of the job.
    """
    if key.startswith(destination.prefix):
        return key[len(destination.prefix) :]
    for name, prefix in locations.items():
        if key.startswith(prefix):
            return name + key[len(prefix) :]
    raise _bad(f"{key[:200]!r} lies outside {destination.uri} and its locations")


def _partition(name: str) -> str:
    check_text(name, "locations: a partition", longest=1024)
    elements = name.removesuffix("/").split("/")
    if bad_element("/".join(elements)) is not None or not name.isprintable():
        raise _bad(f"{name[:200]!r} is no directory below the destination, such as dt=2026-11-21")
    if is_hidden(name):
        raise _bad(f"partition {name[:200]!r} is hidden to readers")
    return "/".join(elements) + "/"


def _prefix(partition: str, uri: object, destination: Destination) -> str:
    if not isinstance(uri, str):
        raise _bad(f"the location of {partition!r} must be a text such as s3://bucket/directory/")
    check_text(uri, f"locations.{partition}", longest=2048)
    try:
        location = parse_destination(uri)
    except InvalidInputError as error:
        raise _bad(error.message) from error
    if location.bucket != destination.bucket:
        raise _bad(
            f"{uri[:200]!r} is in another bucket than {destination.uri}, and one job writes to one"
            " bucket: write that partition with a job of its own"
        )
    return location.prefix


def _refuse_overlaps(directories: Iterable[str], what: str) -> None:
    for one, other in pairwise(sorted(directories)):
        if other.startswith(one):
            raise _bad(f"{one[:200]!r} and {other[:200]!r} are {what} that overlap")


def _bad(message: str) -> InvalidInputError:
    return InvalidInputError(f"locations: {message}", code=BAD_LOCATION)
