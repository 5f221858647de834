"""What is read at once after a write: A1, a read shows every write that was answered before."""

from __future__ import annotations

from collections.abc import Iterator

from s3commit.cli.probe.model import Case, Cost, Probe, Seen
from s3commit.cli.probe.place import Place, Upload
from s3commit.cli.probe.uploads import GONE
from s3commit.cli.probe.world import World, count_of, distinct

CONSISTENCY = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel"
UPLOADS = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html"


def _always(case: str, found: list[bool]) -> Seen:
    return Seen(case, (count_of(sum(found), len(found)),), f"{len(found)} times")


def _objects(world: World) -> Iterator[Seen]:
    place = world.place
    listed, read, changed, unlisted, gone = [], [], [], [], []
    for number in range(world.rounds):
        key = f"seen-{number}"
        place.head(key)  # S3 must not remember that there was nothing
        place.put(key)
        listed.append(place.listed(key) == [key])
        read.append(place.body(key) == "first")
        place.put(key, b"second")
        changed.append(place.body(key) == "second")
        place.delete(key)
        unlisted.append(place.listed(key) == [])
        gone.append(place.head(key) == "404")
    yield _always("listed after a put", listed)
    yield _always("read after a put", read)
    yield _always("the newer read after an overwrite", changed)
    yield _always("not listed after a delete", unlisted)
    yield _always("not read after a delete", gone)


_ALWAYS = Case(("always",))
_OBJECTS = {
    "listed after a put": _ALWAYS,
    "read after a put": _ALWAYS,
    "the newer read after an overwrite": _ALWAYS,
    "not listed after a delete": _ALWAYS,
    "not read after a delete": _ALWAYS,
}


def _uploads(world: World) -> Iterator[Seen]:
    place = world.place
    created, aborted, parts, visible, completed = [], [], [], [], []
    for number in range(world.rounds):
        first, second = place.start(f"open-{number}"), place.start(f"completed-{number}")
        created.append(_is_listed(place, first) and _is_listed(place, second))
        place.abort(first)
        parts.append(place.parts_of(first))
        aborted.append(not _is_listed(place, first))
        place.complete(second)
        visible.append(place.listed(second.key) == [second.key] and place.head(second.key) == "200")
        completed.append(not _is_listed(place, second))
    yield _always("upload listed after its start", created)
    yield Seen("list parts after an abort", distinct(parts))
    yield _always("upload not listed after an abort", aborted)
    yield _always("object listed and read after completion", visible)
    yield _always("upload not listed after completion", completed)


_UPLOADS = {
    "upload listed after its start": _ALWAYS,
    "list parts after an abort": Case((GONE,)),
    # an upload counts as aborted when ListParts does not know it, whatever a listing shows
    "upload not listed after an abort": Case(("always",), matters=False),
    "object listed and read after completion": _ALWAYS,
    "upload not listed after completion": Case(("always",), matters=False),
}


def _is_listed(place: Place, upload: Upload) -> bool:
    found = place.listed_uploads(upload.key)
    return upload.upload_id in [one["UploadId"] for one in found]


PROBES: tuple[Probe[World], ...] = (
    Probe(
        "objects-seen",
        "reads and listings show objects at once",
        ("A1",),
        CONSISTENCY,
        _OBJECTS,
        _objects,
        each_round=Cost(requests=12),
    ),
    Probe(
        "uploads-seen",
        "listings show open uploads at once",
        ("A1",),
        UPLOADS,
        _UPLOADS,
        _uploads,
        each_round=Cost(requests=14),
    ),
)
