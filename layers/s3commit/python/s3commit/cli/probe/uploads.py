"""Uploads: A4, an aborted upload can't be completed, and an upload completes only once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from s3commit.cli.probe.conditions import COMPLETES, CONFLICT, GUIDE, REFUSED
from s3commit.cli.probe.model import Answers, Cost, Seen, needs, probe, sees, with_versions
from s3commit.cli.probe.place import Place, Upload
from s3commit.cli.probe.rounds import Told, at_once, rounds
from s3commit.cli.probe.world import PART_BYTES, PARTS, World

ABORTS = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html"
GONE = "404 NoSuchUpload"

# How much later than the completion the abort is sent (negative: earlier), in seconds.
DELAYS = (-0.02, 0.0, 0.02, 0.05, 0.1, 0.3)
SETTLE_SECONDS = 1.0
ABORTS_TRIED = 5


@probe(
    "completion-again",
    "a repeated completion brings nothing back and covers nothing",
    "A4, ADR 5",
    COMPLETES,
    Cost(requests=35),
)
@sees("complete", "200")
@sees("the same at once", "200", GONE)
@sees("the same at once, if none", "200", GONE, REFUSED)
@sees("the object", "first")
@sees("versions more", "0")
@sees("the same after a delete", "200", GONE)
@sees("the same after a delete, if none", "200", GONE, REFUSED)
@sees("what reappears", "nothing")
@sees("versions more after that", "0")
@sees("the same after an overwrite", "200", GONE)
@sees("the object after that", "newer")
@sees("versions more after that too", "0")
def _again(world: World, place: Place) -> Answers:
    """A completion is repeated: at once, after a delete, after an overwrite."""

    def repeated(upload: Upload, *conditions: dict[str, str]) -> Answers:
        before = len(place.versions(upload.key))
        yield from [place.complete(upload, **condition) for condition in conditions]
        yield place.body(upload.key)
        yield str(len(place.versions(upload.key)) - before)

    once, covered = place.start("again"), place.start("covered-again")
    yield place.complete(once)
    yield from repeated(once, {}, {"IfNoneMatch": "*"})
    place.delete("again")
    yield from repeated(once, {}, {"IfNoneMatch": "*"})
    place.complete(covered)
    place.put("covered-again", b"newer")
    yield from repeated(covered, {})


@probe(
    "completions-at-once",
    "an upload that several complete at once is completed once",
    "A4, ADR 5",
    COMPLETES,
    each_round=Cost(requests=7),
)
@sees("what the workers are told", "200", GONE, CONFLICT, "409 OperationAborted")
@sees("the object after each race", "first")
@rounds("{rounds} races of 3")
def _completed_at_once(world: World, place: Place, number: int) -> Iterator[Told]:
    """Workers complete one and the same upload at once."""
    upload = place.start(f"same-{number}")
    yield at_once([partial(place.complete, upload)] * 3)
    yield place.body(upload.key)


@probe("abort", "an aborted upload can't be completed", "A4", ABORTS, Cost(requests=20))
@sees("abort", "204")
@sees("complete after it", GONE)
@sees("what appears", "nothing")
@sees("list parts after it", GONE)
@sees("send a part after it", GONE)
@sees("abort again", "204", GONE)
@sees("abort after a completion", "204", GONE)
@sees("the object after that", "first")
def _abort(world: World, place: Place) -> Answers:
    upload, done = place.start("aborted"), place.start("done")
    yield place.abort(upload)
    yield place.complete(upload)
    yield place.body("aborted")
    yield place.parts_of(upload)
    yield place.send_part(upload)
    yield place.abort(upload)
    place.complete(done)
    yield place.abort(done)
    yield place.body("done")


@probe(
    "another-key",
    "an upload's id counts at its own key alone",
    "A5, docs/security.md",
    COMPLETES,
    Cost(requests=10),
)
@sees("complete at another key", GONE)
@sees("abort at another key", GONE, "204")
@sees("the upload after that", "200")
@sees("what is at either key", "nothing")
@sees("complete at its own key", "200")
def _another_key(world: World, place: Place) -> Answers:
    """A manifest of a stranger names an upload of another at a key of its own."""
    upload = place.start("its-own")
    elsewhere = Upload("another", upload.upload_id, upload.parts)
    yield place.complete(elsewhere)
    yield place.abort(elsewhere)
    yield place.parts_of(upload)
    yield Seen([place.body("its-own"), place.body("another")])
    yield place.complete(upload)


@probe(
    "checksums",
    "an upload without checksums completes by its etags",
    "aws/s3_client.py",
    GUIDE + "checking-object-integrity-upload.html",
    Cost(requests=6),
)
# Of these the pipeline refuses COMPOSITE alone: its parts' checksums are in no manifest
@sees("checksum type of the upload", "none", "FULL_OBJECT")
@sees("complete by etags alone", "200")
@sees("checksum type of the object", "FULL_OBJECT", matters=False)
def _checksums(world: World, place: Place) -> Answers:
    """Our client sends no checksum; S3 makes one of its own, and must not ask for the parts'."""
    upload = place.start("checksum")
    types = [one.get("ChecksumType", "none") for one in place.listed_uploads(upload.key)]
    yield Seen(types or ["not listed"])
    yield place.complete(upload)
    found = place.facts(upload.key, ChecksumMode="ENABLED")
    kinds = [name for name in found if name.startswith("Checksum") and name != "ChecksumType"]
    yield Seen([found.get("ChecksumType", "none")], ", ".join(kinds))


@probe(
    "kms",
    "another role completes what is encrypted with a key",
    "A4",
    GUIDE + "mpuAndPermissions.html",
    Cost(requests=10),
    lacks=needs("key-role", "key"),
)
@sees("complete by the other role", "200")
@sees("the object", "first")
@sees("its encryption", "aws:kms")
@sees("abort by the other role", "204")
def _kms(world: World, place: Place) -> Answers:
    encrypted: Any = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": world.given.key}
    other = replace(place, client=world.s3_as(world.given.key_role or ""))
    yield other.complete(place.start("encrypted", **encrypted))
    yield place.body("encrypted")
    yield place.facts("encrypted").get("ServerSideEncryption", "none")
    yield other.abort(place.start("encrypted-aborted", **encrypted))


@probe(
    "abort-race",
    "an abort and a completion at once: the one or the other",
    "A4",
    ABORTS,
    Cost(requests=1, sent=PART_BYTES),
    each_round=Cost(requests=PARTS + 12, copied=PARTS * PART_BYTES),
)
@sees("how each race ends", "completed", "aborted")
@rounds("{rounds} races with {parts} parts of 5 MiB")
def _abort_race(world: World, place: Place, number: int) -> Iterator[Told]:
    """An abort meets the running completion of many parts: the file is there, or never will be."""
    if number == 0:
        place.put("part", bytes(PART_BYTES))
    yield _raced(world, place, f"raced-{number}", DELAYS[number % len(DELAYS)])


def _raced(world: World, place: Place, key: str, delay: float) -> str:
    pause, upload = world.environment.sleep, _many_parts(place, key, world.parts)

    def complete() -> tuple[str, int]:
        pause(max(0.0, -delay))
        return place.completed(upload)

    def abort() -> tuple[str, int]:
        pause(max(0.0, delay))
        return place.abort(upload), 0

    (told, repeated), (aborted, _) = at_once([complete, abort])
    # As a roll back does: abort until ListParts does not know it, then look what is visible.
    for _ in range(ABORTS_TRIED):
        if place.parts_of(upload) == GONE:
            break
        aborted = place.abort(upload)
    open_still = place.parts_of(upload) != GONE
    visible = place.head(key) == "200"
    pause(SETTLE_SECONDS)
    later = place.head(key) == "200"
    place.delete(key)
    if open_still:
        return f"neither: the upload is open (complete {told}, abort {aborted})"
    if visible != later:
        return "both: aborted, and visible later" if later else "visible, and gone later"
    if told == "200":
        return "completed" if visible else "neither: completed, and nothing is visible"
    # botocore asked again after an answer that was lost or an error: the first try had succeeded
    if visible and not repeated:
        return f"both: refused with {told}, and visible"
    return "completed" if visible else "aborted"


def _many_parts(place: Place, key: str, count: int) -> Upload:
    upload = place.start(key, None)
    numbers = range(1, count + 1)
    parts = at_once([partial(place.copy_part, upload, number, "part") for number in numbers])
    return Upload(key, upload.upload_id, tuple(parts))


PROBES = (
    *with_versions(_again),
    _completed_at_once,
    _abort,
    _another_key,
    _checksums,
    _kms,
    _abort_race,
)
