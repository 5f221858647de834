"""What is read at once after a write: A1, a read shows every write that was answered before."""

from __future__ import annotations

from collections.abc import Iterator

from s3commit.cli.probe.model import Cost, probe, sees
from s3commit.cli.probe.place import Place, Upload
from s3commit.cli.probe.rounds import Told, rounds
from s3commit.cli.probe.uploads import GONE
from s3commit.cli.probe.world import World

CONSISTENCY = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel"
UPLOADS = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html"


@probe(
    "objects-seen",
    "reads and listings show objects at once",
    "A1",
    CONSISTENCY,
    each_round=Cost(requests=12),
)
@sees("listed after a put", "always")
@sees("read after a put", "always")
@sees("the newer read after an overwrite", "always")
@sees("not listed after a delete", "always")
@sees("not read after a delete", "always")
@rounds()
def _objects(world: World, place: Place, number: int) -> Iterator[Told]:
    key = f"seen-{number}"
    place.head(key)  # S3 must not remember that there was nothing
    place.put(key)
    yield place.listed(key) == [key]
    yield place.body(key) == "first"
    place.put(key, b"second")
    yield place.body(key) == "second"
    place.delete(key)
    yield place.listed(key) == []
    yield place.head(key) == "404"


@probe(
    "uploads-seen",
    "listings show open uploads at once",
    "A1",
    UPLOADS,
    each_round=Cost(requests=14),
)
@sees("upload listed after its start", "always")
@sees("list parts after an abort", GONE)
# an upload counts as aborted when ListParts does not know it, whatever a listing shows
@sees("upload not listed after an abort", "always", matters=False)
@sees("object listed and read after completion", "always")
@sees("upload not listed after completion", "always", matters=False)
@rounds()
def _uploads(world: World, place: Place, number: int) -> Iterator[Told]:
    first, second = place.start(f"open-{number}"), place.start(f"completed-{number}")
    yield _is_listed(place, first) and _is_listed(place, second)
    place.abort(first)
    yield place.parts_of(first)
    yield not _is_listed(place, first)
    place.complete(second)
    yield place.listed(second.key) == [second.key] and place.head(second.key) == "200"
    yield not _is_listed(place, second)


def _is_listed(place: Place, upload: Upload) -> bool:
    found = place.listed_uploads(upload.key)
    return upload.upload_id in [one["UploadId"] for one in found]


PROBES = (_objects, _uploads)
