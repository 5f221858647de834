"""Conditional requests: A2, a conditional put, completion or delete is atomic at its key."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from s3commit.cli.probe.model import Case, Cost, Seen, at_once, in_rounds, needs, probe, race
from s3commit.cli.probe.target import Target

GUIDE: Final = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
WRITES: Final = GUIDE + "conditional-writes.html"
DELETES: Final = GUIDE + "conditional-deletes.html"
COMPLETES: Final = (
    "https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html"
)

REFUSED: Final = "412 PreconditionFailed"
MISSING: Final = "404 NoSuchKey"
CONFLICT: Final = "409 ConditionalRequestConflict"
OTHER_ETAG: Final = '"00000000000000000000000000000000"'
RACERS: Final = 4


@probe(
    relies=("A2", "ADR 9"),
    source=WRITES,
    cost=Cost(requests=12),
    cases={
        "put if none, nothing there": Case(("200",)),
        "put if none, an object there": Case((REFUSED,)),
        "put if match, changed": Case((REFUSED,)),
        "the object after both refusals": Case(("first",)),
        "put if match, unchanged": Case(("200",)),
        "put if match, nothing there": Case((MISSING, REFUSED)),
        "nothing there after that": Case(("404",)),
        "put if none, deleted before": Case(("200",)),
    },
)
def conditional_put(target: Target) -> Iterator[Seen]:
    """A put keeps its condition."""
    at = target.prefix
    yield Seen("put if none, nothing there", at.put("put", IfNoneMatch="*"))
    yield Seen("put if none, an object there", at.put("put", b"second", IfNoneMatch="*"))
    etag = at.etag("put")
    yield Seen("put if match, changed", at.put("put", b"second", IfMatch=OTHER_ETAG))
    yield Seen("the object after both refusals", at.body("put"))
    yield Seen("put if match, unchanged", at.put("put", b"second", IfMatch=etag))
    yield Seen("put if match, nothing there", at.put("none", IfMatch=etag))
    yield Seen("nothing there after that", at.head("none"))
    at.delete("put")
    yield Seen("put if none, deleted before", at.put("put", IfNoneMatch="*"))


@probe(
    relies=("A2",),
    source=DELETES,
    cost=Cost(requests=16),
    cases={
        "delete if match, changed": Case((REFUSED,)),
        "one of many, changed": Case(("PreconditionFailed",)),
        "the object after both refusals": Case(("first",)),
        "delete if match, unchanged": Case(("204",)),
        "nothing there after that": Case(("404",)),
        # `S3ObjectStore.delete` takes each of these for gone
        "delete if match, nothing there": Case((REFUSED, MISSING), matters=False),
        "one of many, nothing there": Case(("PreconditionFailed", "NoSuchKey"), matters=False),
        "one of many, unchanged": Case(("Deleted",)),
        "nothing there after that too": Case(("404",)),
    },
)
def conditional_delete(target: Target) -> Iterator[Seen]:
    """A delete keeps its condition."""
    at = target.prefix
    at.put("delete")
    etag = at.etag("delete")
    yield Seen("delete if match, changed", at.delete("delete", IfMatch=OTHER_ETAG))
    yield Seen("one of many, changed", at.delete_seen("delete", OTHER_ETAG))
    yield Seen("the object after both refusals", at.body("delete"))
    yield Seen("delete if match, unchanged", at.delete("delete", IfMatch=etag))
    yield Seen("nothing there after that", at.head("delete"))
    yield Seen("delete if match, nothing there", at.delete("delete", IfMatch=etag))
    yield Seen("one of many, nothing there", at.delete_seen("delete", etag))
    at.put("delete")
    yield Seen("one of many, unchanged", at.delete_seen("delete", etag))
    yield Seen("nothing there after that too", at.head("delete"))


@probe(
    relies=("A2", "ADR 5"),
    source=COMPLETES,
    cost=Cost(requests=20),
    cases={
        "complete if none, nothing there": Case(("200",)),
        "complete if none, an object there": Case((REFUSED,)),
        "the object after that refusal": Case(("first",)),
        # whoever is refused looks at the object, and never completes that upload again
        "the upload after that refusal": Case(("200",), matters=False),
        "complete with another size": Case(("400 InvalidRequest",)),
        "nothing there after that": Case(("404",)),
        "the upload after that": Case(("200",), matters=False),
        "complete with the size of the parts": Case(("200",)),
        "complete with another etag": Case(("400 InvalidPart",)),
    },
)
def conditional_complete(target: Target) -> Iterator[Seen]:
    """A completion keeps its condition, size and etags."""
    at = target.prefix
    first, second = at.start("whole"), at.start("whole", b"second")
    yield Seen("complete if none, nothing there", at.complete(first, IfNoneMatch="*"))
    yield Seen("complete if none, an object there", at.complete(second, IfNoneMatch="*"))
    yield Seen("the object after that refusal", at.body("whole"))
    yield Seen("the upload after that refusal", at.parts_of(second))
    third = at.start("sized")
    yield Seen("complete with another size", at.complete(third, MpuObjectSize=4))
    yield Seen("nothing there after that", at.head("sized"))
    yield Seen("the upload after that", at.parts_of(third))
    yield Seen("complete with the size of the parts", at.complete(third, MpuObjectSize=5))
    wrong = at.start("wrong")
    wrong.parts[0]["ETag"] = OTHER_ETAG
    yield Seen("complete with another etag", at.complete(wrong))


@probe(
    relies=("A2", "docs/protocol.md"),
    source=GUIDE + "DeletingObjectVersions.html",
    cost=Cost(requests=15),
    lacks=needs("versioned-bucket"),
    cases={
        "what a completion covers stays a version": Case(("yes",)),
        "delete of that completion's version": Case(("204",)),
        "the object after that": Case(("first",)),
        "the same delete again": Case(("204", "404 NoSuchVersion")),
        "the object after that too": Case(("first",)),
    },
)
def delete_version(target: Target) -> Iterator[Seen]:
    """The delete of a version brings back what it covered."""
    at = target.on_versions().prefix
    at.put("covered")
    at.complete(at.start("covered", b"second"))
    stays = len(at.versions("covered")) > 1
    ours = at.facts("covered")["VersionId"]
    yield Seen("what a completion covers stays a version", "yes" if stays else "no")
    yield Seen("delete of that completion's version", at.delete("covered", VersionId=ours))
    yield Seen("the object after that", at.body("covered"))
    yield Seen("the same delete again", at.delete("covered", VersionId=ours))
    yield Seen("the object after that too", at.body("covered"))


_ONE_WINS: Final = {
    "winners of each race": Case(("1",)),
    "what the others are told": Case((REFUSED, CONFLICT)),
    "the object is a winner's": Case(("yes",)),
}
RACES: Final = f"{{rounds}} races of {RACERS}"


@probe(relies=("A2",), source=WRITES, each_round=Cost(requests=8), cases=_ONE_WINS)
@in_rounds(RACES)
def put_race(target: Target, number: int) -> Iterator[Seen]:
    """Of puts at once, if nothing is there, one wins."""
    at, key = target.prefix, f"race-{number}"
    bodies = [str(racer).encode() for racer in range(RACERS)]
    calls = [partial(at.put, key, body, IfNoneMatch="*") for body in bodies]
    return race(calls, partial(at.body, key), "the object is a winner's")


@probe(relies=("A2",), source=WRITES, each_round=Cost(requests=16), cases=_ONE_WINS)
@in_rounds(RACES)
def complete_race(target: Target, number: int) -> Iterator[Seen]:
    """Of completions at once, if nothing is there, one wins."""
    at, key = target.prefix, f"complete-race-{number}"
    uploads = [at.start(key, str(racer).encode()) for racer in range(RACERS)]
    calls = [partial(at.complete, upload, IfNoneMatch="*") for upload in uploads]
    return race(calls, partial(at.body, key), "the object is a winner's")


@probe(
    relies=("A2",),
    source=DELETES,
    each_round=Cost(requests=7),
    cases={
        "the delete of the old object": Case(("204", REFUSED, CONFLICT, MISSING), matters=False),
        "the object after each race": Case(("second",)),
    },
)
@in_rounds("{rounds} races")
def delete_race(target: Target, number: int) -> Iterator[Seen]:
    """A conditional delete never takes what was put meanwhile."""
    at, key = target.prefix, f"delete-race-{number}"
    at.put(key)
    delete = partial(at.delete, key, IfMatch=at.etag(key))
    deleted, put = at_once(delete, partial(at.put, key, b"second"))
    yield Seen("the delete of the old object", deleted)
    yield Seen("the object after each race", at.body(key) if put == "200" else f"put: {put}")


PROBES: Final = (
    *conditional_put.on_both,
    *conditional_delete.on_both,
    *conditional_complete.on_both,
    delete_version,
    put_race,
    complete_race,
    delete_race,
)
