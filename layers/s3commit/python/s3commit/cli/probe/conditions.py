"""Conditional requests: A2, a conditional put, completion or delete is atomic at its key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from s3commit.cli.probe.model import Case, Cost, Probe, Seen
from s3commit.cli.probe.place import Place
from s3commit.cli.probe.world import World, at_once, distinct, option, with_versions

GUIDE = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
WRITES = GUIDE + "conditional-writes.html"
DELETES = GUIDE + "conditional-deletes.html"
COMPLETES = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html"
DELETE_OBJECTS = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html"

REFUSED = "412 PreconditionFailed"
MISSING = "404 NoSuchKey"
CONFLICT = "409 ConditionalRequestConflict"
OTHER_ETAG = '"00000000000000000000000000000000"'
RACERS = 4


def _one(case: str, answer: str) -> Seen:
    return Seen(case, (answer,))


def _put(place: Place) -> Iterator[Seen]:
    yield _one("put if none, nothing there", place.put("put", IfNoneMatch="*"))
    yield _one("put if none, an object there", place.put("put", b"second", IfNoneMatch="*"))
    etag = place.etag("put")
    yield _one("put if match, changed", place.put("put", b"second", IfMatch=OTHER_ETAG))
    yield _one("the object after both refusals", place.body("put"))
    yield _one("put if match, unchanged", place.put("put", b"second", IfMatch=etag))
    yield _one("put if match, nothing there", place.put("none", IfMatch=etag))
    yield _one("nothing there after that", place.head("none"))
    place.delete("put")
    yield _one("put if none, deleted before", place.put("put", IfNoneMatch="*"))


_PUT = {
    "put if none, nothing there": Case(("200",)),
    "put if none, an object there": Case((REFUSED,)),
    "put if match, changed": Case((REFUSED,)),
    "the object after both refusals": Case(("first",)),
    "put if match, unchanged": Case(("200",)),
    "put if match, nothing there": Case((MISSING, REFUSED)),
    "nothing there after that": Case(("404",)),
    "put if none, deleted before": Case(("200",)),
}


def _delete(place: Place) -> Iterator[Seen]:
    place.put("delete")
    etag = place.etag("delete")
    yield _one("delete if match, changed", place.delete("delete", IfMatch=OTHER_ETAG))
    yield _one("one of many, changed", place.delete_seen("delete", OTHER_ETAG))
    yield _one("the object after both refusals", place.body("delete"))
    yield _one("delete if match, unchanged", place.delete("delete", IfMatch=etag))
    yield _one("nothing there after that", place.head("delete"))
    yield _one("delete if match, nothing there", place.delete("delete", IfMatch=etag))
    yield _one("one of many, nothing there", place.delete_seen("delete", etag))
    place.put("delete")
    yield _one("one of many, unchanged", place.delete_seen("delete", etag))
    yield _one("nothing there after that too", place.head("delete"))


_DELETE = {
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
}


def _complete(place: Place) -> Iterator[Seen]:
    first, second = place.start("whole"), place.start("whole", b"second")
    yield _one("complete if none, nothing there", place.complete(first, IfNoneMatch="*"))
    yield _one("complete if none, an object there", place.complete(second, IfNoneMatch="*"))
    yield _one("the object after that refusal", place.body("whole"))
    yield _one("the upload after that refusal", place.parts_of(second))
    third = place.start("sized")
    yield _one("complete with another size", place.complete(third, MpuObjectSize=4))
    yield _one("nothing there after that", place.head("sized"))
    yield _one("the upload after that", place.parts_of(third))
    yield _one("complete with the size of the parts", place.complete(third, MpuObjectSize=5))
    wrong = place.start("wrong")
    wrong.parts[0]["ETag"] = OTHER_ETAG
    yield _one("complete with another etag", place.complete(wrong))


_COMPLETE = {
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
}


def _delete_version(world: World) -> Iterator[Seen]:
    place = world.versioned
    place.put("covered")
    covering = place.start("covered", b"second")
    place.complete(covering)
    (theirs,) = place.versions("covered")[1:] or [""]
    ours = place.client.head_object(Bucket=place.bucket, Key=place.prefix + "covered")["VersionId"]
    yield _one("what a completion covers stays a version", "yes" if theirs else "no")
    yield _one("delete of that completion's version", place.delete("covered", VersionId=ours))
    yield _one("the object after that", place.body("covered"))
    yield _one("the same delete again", place.delete("covered", VersionId=ours))
    yield _one("the object after that too", place.body("covered"))


_DELETE_VERSION = {
    "what a completion covers stays a version": Case(("yes",)),
    "delete of that completion's version": Case(("204",)),
    "the object after that": Case(("first",)),
    "the same delete again": Case(("204", "404 NoSuchVersion")),
    "the object after that too": Case(("first",)),
}


def _race(world: World, start: Callable[[str, int], Callable[[], str]], key: str) -> Iterator[Seen]:
    """Several write one key at once, if nothing is there: how many won, and what the others got."""
    won, lost, whose = [], [], []
    for number in range(world.rounds):
        calls = [start(f"{key}-{number}", racer) for racer in range(RACERS)]
        answers = at_once(calls)
        winners = [racer for racer, answer in enumerate(answers) if answer == "200"]
        won.append(str(len(winners)))
        lost += [answer for answer in answers if answer != "200"]
        whose.append("yes" if world.place.body(f"{key}-{number}") in map(str, winners) else "no")
    yield Seen("winners of each race", distinct(won), f"{world.rounds} races of {RACERS}")
    yield Seen("what the others are told", distinct(lost) or ("nothing",))
    yield Seen("the object is a winner's", distinct(whose))


_RACE = {
    "winners of each race": Case(("1",)),
    "what the others are told": Case((REFUSED, CONFLICT)),
    "the object is a winner's": Case(("yes",)),
}


def _put_race(world: World) -> Iterator[Seen]:
    def start(key: str, racer: int) -> Callable[[], str]:
        return partial(world.place.put, key, str(racer).encode(), IfNoneMatch="*")

    return _race(world, start, "race")


def _complete_race(world: World) -> Iterator[Seen]:
    def start(key: str, racer: int) -> Callable[[], str]:
        upload = world.place.start(key, str(racer).encode())
        return partial(world.place.complete, upload, IfNoneMatch="*")

    return _race(world, start, "complete-race")


def _delete_race(world: World) -> Iterator[Seen]:
    """A conditional delete of the old object meets a put of the new one."""
    place, deleted, left = world.place, [], []
    for number in range(world.rounds):
        key = f"delete-race-{number}"
        place.put(key)
        old = place.etag(key)
        answers = at_once(
            [
                partial(place.delete, key, IfMatch=old),
                partial(place.put, key, b"second"),
            ]
        )
        deleted.append(answers[0])
        left.append(place.body(key) if answers[1] == "200" else f"put: {answers[1]}")
    yield Seen("the delete of the old object", distinct(deleted), f"{world.rounds} races")
    yield Seen("the object after each race", distinct(left))


_DELETE_RACE = {
    "the delete of the old object": Case(("204", REFUSED, CONFLICT, MISSING), matters=False),
    "the object after each race": Case(("second",)),
}


PROBES: tuple[Probe[World], ...] = (
    *with_versions(
        Probe(
            "conditional-put",
            "a put keeps its condition",
            ("A2", "ADR 9"),
            WRITES,
            _PUT,
            lambda world: _put(world.place),
            Cost(requests=12),
        ),
        _put,
    ),
    *with_versions(
        Probe(
            "conditional-delete",
            "a delete keeps its condition",
            ("A2",),
            DELETES,
            _DELETE,
            lambda world: _delete(world.place),
            Cost(requests=16),
        ),
        _delete,
    ),
    *with_versions(
        Probe(
            "conditional-complete",
            "a completion keeps its condition, size and etags",
            ("A2", "ADR 5"),
            COMPLETES,
            _COMPLETE,
            lambda world: _complete(world.place),
            Cost(requests=20),
        ),
        _complete,
    ),
    Probe(
        "delete-version",
        "the delete of a version brings back what it covered",
        ("A2", "docs/protocol.md"),
        GUIDE + "DeletingObjectVersions.html",
        _DELETE_VERSION,
        _delete_version,
        Cost(requests=15),
        lacks=option("versioned-bucket"),
    ),
    Probe(
        "put-race",
        "of puts at once, if nothing is there, one wins",
        ("A2",),
        WRITES,
        _RACE,
        _put_race,
        each_round=Cost(requests=8),
    ),
    Probe(
        "complete-race",
        "of completions at once, if nothing is there, one wins",
        ("A2",),
        WRITES,
        _RACE,
        _complete_race,
        each_round=Cost(requests=16),
    ),
    Probe(
        "delete-race",
        "a conditional delete never takes what was put meanwhile",
        ("A2",),
        DELETES,
        _DELETE_RACE,
        _delete_race,
        each_round=Cost(requests=7),
    ),
)
