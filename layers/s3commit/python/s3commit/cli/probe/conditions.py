"""Conditional requests: A2, a conditional put, completion or delete is atomic at its key."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from s3commit.cli.probe.model import Answers, Cost, needs, probe, sees, with_versions
from s3commit.cli.probe.place import Place
from s3commit.cli.probe.rounds import RACERS, RACES, Told, at_once, race_of, rounds
from s3commit.cli.probe.world import World

GUIDE = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
WRITES = GUIDE + "conditional-writes.html"
DELETES = GUIDE + "conditional-deletes.html"
COMPLETES = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html"

REFUSED = "412 PreconditionFailed"
MISSING = "404 NoSuchKey"
CONFLICT = "409 ConditionalRequestConflict"
OTHER_ETAG = '"00000000000000000000000000000000"'


@probe("conditional-put", "a put keeps its condition", "A2, ADR 9", WRITES, Cost(requests=12))
@sees("put if none, nothing there", "200")
@sees("put if none, an object there", REFUSED)
@sees("put if match, changed", REFUSED)
@sees("the object after both refusals", "first")
@sees("put if match, unchanged", "200")
@sees("put if match, nothing there", MISSING, REFUSED)
@sees("nothing there after that", "404")
@sees("put if none, deleted before", "200")
def _puts(world: World, place: Place) -> Answers:
    yield place.put("put", IfNoneMatch="*")
    yield place.put("put", b"second", IfNoneMatch="*")
    etag = place.etag("put")
    yield place.put("put", b"second", IfMatch=OTHER_ETAG)
    yield place.body("put")
    yield place.put("put", b"second", IfMatch=etag)
    yield place.put("none", IfMatch=etag)
    yield place.head("none")
    place.delete("put")
    yield place.put("put", IfNoneMatch="*")


@probe("conditional-delete", "a delete keeps its condition", "A2", DELETES, Cost(requests=16))
@sees("delete if match, changed", REFUSED)
@sees("one of many, changed", "PreconditionFailed")
@sees("the object after both refusals", "first")
@sees("delete if match, unchanged", "204")
@sees("nothing there after that", "404")
# `S3ObjectStore.delete` takes each of these for gone
@sees("delete if match, nothing there", REFUSED, MISSING, matters=False)
@sees("one of many, nothing there", "PreconditionFailed", "NoSuchKey", matters=False)
@sees("one of many, unchanged", "Deleted")
@sees("nothing there after that too", "404")
def _deletes(world: World, place: Place) -> Answers:
    place.put("delete")
    etag = place.etag("delete")
    yield place.delete("delete", IfMatch=OTHER_ETAG)
    yield place.delete_seen("delete", OTHER_ETAG)
    yield place.body("delete")
    yield place.delete("delete", IfMatch=etag)
    yield place.head("delete")
    yield place.delete("delete", IfMatch=etag)
    yield place.delete_seen("delete", etag)
    place.put("delete")
    yield place.delete_seen("delete", etag)
    yield place.head("delete")


@probe(
    "conditional-complete",
    "a completion keeps its condition, size and etags",
    "A2, ADR 5",
    COMPLETES,
    Cost(requests=20),
)
@sees("complete if none, nothing there", "200")
@sees("complete if none, an object there", REFUSED)
@sees("the object after that refusal", "first")
# whoever is refused looks at the object, and never completes that upload again
@sees("the upload after that refusal", "200", matters=False)
@sees("complete with another size", "400 InvalidRequest")
@sees("nothing there after that", "404")
@sees("the upload after that", "200", matters=False)
@sees("complete with the size of the parts", "200")
@sees("complete with another etag", "400 InvalidPart")
def _completions(world: World, place: Place) -> Answers:
    first, second = place.start("whole"), place.start("whole", b"second")
    yield place.complete(first, IfNoneMatch="*")
    yield place.complete(second, IfNoneMatch="*")
    yield place.body("whole")
    yield place.parts_of(second)
    third = place.start("sized")
    yield place.complete(third, MpuObjectSize=4)
    yield place.head("sized")
    yield place.parts_of(third)
    yield place.complete(third, MpuObjectSize=5)
    wrong = place.start("wrong")
    wrong.parts[0]["ETag"] = OTHER_ETAG
    yield place.complete(wrong)


@probe(
    "delete-version",
    "the delete of a version brings back what it covered",
    "A2, docs/protocol.md",
    GUIDE + "DeletingObjectVersions.html",
    Cost(requests=15),
    lacks=needs("versioned-bucket"),
    versioned=True,
)
@sees("what a completion covers stays a version", "yes")
@sees("delete of that completion's version", "204")
@sees("the object after that", "first")
@sees("the same delete again", "204", "404 NoSuchVersion")
@sees("the object after that too", "first")
def _delete_version(world: World, place: Place) -> Answers:
    place.put("covered")
    place.complete(place.start("covered", b"second"))
    yield "yes" if len(place.versions("covered")) > 1 else "no"
    ours = place.facts("covered")["VersionId"]
    for _ in range(2):
        yield place.delete("covered", VersionId=ours)
        yield place.body("covered")


@probe(
    "put-race",
    "of puts at once, if nothing is there, one wins",
    "A2",
    WRITES,
    each_round=Cost(requests=8),
)
@sees("winners of each race", "1")
@sees("what the others are told", REFUSED, CONFLICT)
@sees("the object is a winner's", "yes")
@rounds(RACES)
def _put_race(world: World, place: Place, number: int) -> Iterator[Told]:
    put = partial(place.put, f"race-{number}", IfNoneMatch="*")
    calls = [partial(put, body=str(racer).encode()) for racer in range(RACERS)]
    return race_of(calls, partial(place.body, f"race-{number}"))


@probe(
    "complete-race",
    "of completions at once, if nothing is there, one wins",
    "A2",
    WRITES,
    each_round=Cost(requests=16),
)
@sees("winners of each race", "1")
@sees("what the others are told", REFUSED, CONFLICT)
@sees("the object is a winner's", "yes")
@rounds(RACES)
def _complete_race(world: World, place: Place, number: int) -> Iterator[Told]:
    key = f"complete-race-{number}"
    uploads = [place.start(key, str(racer).encode()) for racer in range(RACERS)]
    calls = [partial(place.complete, upload, IfNoneMatch="*") for upload in uploads]
    return race_of(calls, partial(place.body, key))


@probe(
    "delete-race",
    "a conditional delete never takes what was put meanwhile",
    "A2",
    DELETES,
    each_round=Cost(requests=7),
)
@sees("the delete of the old object", "204", REFUSED, CONFLICT, MISSING, matters=False)
@sees("the object after each race", "second")
@rounds("{rounds} races")
def _delete_race(world: World, place: Place, number: int) -> Iterator[Told]:
    """A conditional delete of the old object meets a put of the new one."""
    key = f"delete-race-{number}"
    place.put(key)
    delete = partial(place.delete, key, IfMatch=place.etag(key))
    deleted, put = at_once([delete, partial(place.put, key, b"second")])
    yield deleted
    yield place.body(key) if put == "200" else f"put: {put}"


PROBES = (
    *with_versions(_puts),
    *with_versions(_deletes),
    *with_versions(_completions),
    _delete_version,
    _put_race,
    _complete_race,
    _delete_race,
)
