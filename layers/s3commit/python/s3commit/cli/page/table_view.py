"""One table on the page: its jobs, its partitions, and what is wrong there."""

from collections.abc import Iterable, Mapping
from typing import Any

from s3commit.cli.fsck import fsck_document
from s3commit.cli.log import log_document, visible_at
from s3commit.cli.render import rows
from s3commit.cli.session import Session
from s3commit.core.documents.commit_manifest import CommittedFile
from s3commit.core.formats.layout import JobDirectory, parse_destination, partition_of
from s3commit.core.model.destination import Destination
from s3commit.core.ports.objects import ListedObject

LISTED = 5_000  # objects of a table: five requests
COMMITS = 50  # jobs of a table


def table_view(session: Session, asked: Mapping[str, str]) -> dict[str, Any]:
    """One table; with ``fsck`` also what is wrong there, which takes a listing of it all.

    Requests: as `log`, for 50 jobs, and two for each 1,000 objects, ten at most.
    """
    place = place_in(asked)
    listed = visible_at(session, place, LISTED)
    document = log_document(session, place, listed, limit=COMMITS)
    jobs = [
        {**job, "directory": JobDirectory(place, job["jobId"]).uri}
        for job in reversed(document["jobs"])
    ]
    return {
        **{"title": f"Table {place.uri}", "place": place.uri},
        **{"jobs": jobs, "complete": document["complete"]},
        "partitions": None if listed is None else partitions_of(place, listed),
        "fsck": rows(fsck_document(session, place)) if asked.get("fsck") else None,
        "ended": bool(asked.get("fsck")),  # it is asked once
    }


def partitions_of(
    place: Destination, listed: Iterable[ListedObject | CommittedFile]
) -> list[tuple[str, int, int]]:
    """Each partition's files and bytes; the root's name is empty."""
    found: dict[str, tuple[int, int]] = {}
    for one in listed:
        name = partition_of(one.key[len(place.prefix) :])
        files, size = found.get(name, (0, 0))
        found[name] = files + 1, size + one.length
    return [(name, *counts) for name, counts in sorted(found.items())]


def place_in(asked: Mapping[str, str]) -> Destination:
    """With a scheme or without one, as the page's tables show it."""
    typed = asked.get("table", "").strip()
    return parse_destination(typed if "://" in typed else f"s3://{typed}")
