"""Uploads: A4, an aborted upload can't be completed, and an upload completes only once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from s3commit.cli.probe.conditions import COMPLETES, CONFLICT, GUIDE, REFUSED
from s3commit.cli.probe.model import Case, Cost, Probe, Seen
from s3commit.cli.probe.place import Place, Upload, answer_of
from s3commit.cli.probe.world import (
    World,
    at_once,
    distinct,
    options,
    with_versions,
)

ABORTS = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html"
GONE = "404 NoSuchUpload"


def _again(place: Place) -> Iterator[Seen]:
    """A completion is repeated: at once, after a delete, after an overwrite."""
    once = place.start("again")
    yield Seen("complete", (place.complete(once),))
    before = place.versions("again")
    told = [place.complete(once), place.complete(once, IfNoneMatch="*")]
    yield Seen("the same at once", (told[0],))
    yield Seen("the same at once, if none", (told[1],))
    yield Seen("the object", (place.body("again"),))
    yield Seen("versions more", (str(len(place.versions("again")) - len(before)),))
    place.delete("again")
    before = place.versions("again")
    told = [place.complete(once), place.complete(once, IfNoneMatch="*")]
    yield Seen("the same after a delete", (told[0],))
    yield Seen("the same after a delete, if none", (told[1],))
    yield Seen("what reappears", (place.body("again"),))
    yield Seen("versions more after that", (str(len(place.versions("again")) - len(before)),))
    covered = place.start("covered-again")
    place.complete(covered)
    place.put("covered-again", b"newer")
    before = place.versions("covered-again")
    yield Seen("the same after an overwrite", (place.complete(covered),))
    yield Seen("the object after that", (place.body("covered-again"),))
    more = len(place.versions("covered-again")) - len(before)
    yield Seen("versions more after that too", (str(more),))


_REPEATED = Case(("200", GONE))
_REPEATED_IF_NONE = Case(("200", GONE, REFUSED))
_AGAIN = {
    "complete": Case(("200",)),
    "the same at once": _REPEATED,
    "the same at once, if none": _REPEATED_IF_NONE,
    "the object": Case(("first",)),
    "versions more": Case(("0",)),
    "the same after a delete": _REPEATED,
    "the same after a delete, if none": _REPEATED_IF_NONE,
    "what reappears": Case(("nothing",)),
    "versions more after that": Case(("0",)),
    "the same after an overwrite": _REPEATED,
    "the object after that": Case(("newer",)),
    "versions more after that too": Case(("0",)),
}


def _at_once(world: World) -> Iterator[Seen]:
    """Workers complete one and the same upload at once."""
    place, told, left = world.place, [], []
    for number in range(world.rounds):
        upload = place.start(f"same-{number}")
        told += at_once([partial(place.complete, upload) for _ in range(3)])
        left.append(place.body(upload.key))
    yield Seen("what the workers are told", distinct(told), f"{world.rounds} races of 3")
    yield Seen("the object after each race", distinct(left))


_AT_ONCE = {
    "what the workers are told": Case(("200", GONE, CONFLICT, "409 OperationAborted")),
    "the object after each race": Case(("first",)),
}


def _abort(world: World) -> Iterator[Seen]:
    place = world.place
    upload = place.start("aborted")
    yield Seen("abort", (place.abort(upload),))
    yield Seen("complete after it", (place.complete(upload),))
    yield Seen("what appears", (place.body("aborted"),))
    yield Seen("list parts after it", (place.parts_of(upload),))
    yield Seen("send a part after it", (place.send_part(upload),))
    yield Seen("abort again", (place.abort(upload),))
    done = place.start("done")
    place.complete(done)
    yield Seen("abort after a completion", (place.abort(done),))
    yield Seen("the object after that", (place.body("done"),))


_ABORT = {
    "abort": Case(("204",)),
    "complete after it": Case((GONE,)),
    "what appears": Case(("nothing",)),
    "list parts after it": Case((GONE,)),
    "send a part after it": Case((GONE,)),
    "abort again": Case(("204", GONE)),
    "abort after a completion": Case(("204", GONE)),
    "the object after that": Case(("first",)),
}


def _another_key(world: World) -> Iterator[Seen]:
    """A manifest of a stranger names an upload of another at a key of its own."""
    place = world.place
    upload = place.start("its-own")
    elsewhere = Upload("another", upload.upload_id, upload.parts)
    yield Seen("complete at another key", (place.complete(elsewhere),))
    yield Seen("abort at another key", (place.abort(elsewhere),))
    yield Seen("the upload after that", (place.parts_of(upload),))
    yield Seen("what is at either key", distinct([place.body("its-own"), place.body("another")]))
    yield Seen("complete at its own key", (place.complete(upload),))


_ANOTHER_KEY = {
    "complete at another key": Case((GONE,)),
    "abort at another key": Case((GONE, "204")),
    "the upload after that": Case(("200",)),
    "what is at either key": Case(("nothing",)),
    "complete at its own key": Case(("200",)),
}


def _checksums(world: World) -> Iterator[Seen]:
    """Our client sends no checksum; S3 makes one of its own, and must not ask for the parts'."""
    place = world.place
    upload = place.start("checksum")
    types = {one.get("ChecksumType", "none") for one in place.listed_uploads(upload.key)}
    yield Seen("checksum type of the upload", distinct([*types]) or ("not listed",))
    yield Seen("complete by etags alone", (place.complete(upload),))
    found = place.client.head_object(
        Bucket=place.bucket, Key=place.prefix + upload.key, ChecksumMode="ENABLED"
    )
    kinds = [name for name in found if name.startswith("Checksum") and name != "ChecksumType"]
    told = found.get("ChecksumType", "none")
    yield Seen("checksum type of the object", (told,), ", ".join(kinds))


_CHECKSUMS = {
    # Of these the pipeline refuses COMPOSITE alone: its parts' checksums are in no manifest
    "checksum type of the upload": Case(("none", "FULL_OBJECT")),
    "complete by etags alone": Case(("200",)),
    "checksum type of the object": Case(("FULL_OBJECT",), matters=False),
}


def _kms(world: World) -> Iterator[Seen]:
    place, key, role = world.place, world.given.key or "", world.given.key_role or ""
    other = world.s3_as(role)
    encrypted: Any = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key}
    upload = place.start("encrypted", **encrypted)
    yield Seen("complete by the other role", (place.complete(upload, other),))
    yield Seen("the object", (place.body("encrypted"),))
    found = place.client.head_object(Bucket=place.bucket, Key=place.prefix + "encrypted")
    yield Seen("its encryption", (found.get("ServerSideEncryption", "none"),))
    aborted = place.start("encrypted-aborted", **encrypted)
    at = {"Bucket": place.bucket, "Key": place.prefix + aborted.key}
    yield Seen(
        "abort by the other role",
        (answer_of(other.abort_multipart_upload, **at, UploadId=aborted.upload_id),),
    )


_KMS = {
    "complete by the other role": Case(("200",)),
    "the object": Case(("first",)),
    "its encryption": Case(("aws:kms",)),
    "abort by the other role": Case(("204",)),
}


PROBES: tuple[Probe[World], ...] = (
    *with_versions(
        Probe(
            "completion-again",
            "a repeated completion brings nothing back and covers nothing",
            ("A4", "ADR 5"),
            COMPLETES,
            _AGAIN,
            lambda world: _again(world.place),
            Cost(requests=35),
        ),
        _again,
    ),
    Probe(
        "completions-at-once",
        "an upload that several complete at once is completed once",
        ("A4", "ADR 5"),
        COMPLETES,
        _AT_ONCE,
        _at_once,
        each_round=Cost(requests=7),
    ),
    Probe(
        "abort",
        "an aborted upload can't be completed",
        ("A4",),
        ABORTS,
        _ABORT,
        _abort,
        Cost(requests=20),
    ),
    Probe(
        "another-key",
        "an upload's id counts at its own key alone",
        ("A5", "docs/security.md"),
        COMPLETES,
        _ANOTHER_KEY,
        _another_key,
        Cost(requests=10),
    ),
    Probe(
        "checksums",
        "an upload without checksums completes by its etags",
        ("aws/s3_client.py",),
        GUIDE + "checking-object-integrity-upload.html",
        _CHECKSUMS,
        _checksums,
        Cost(requests=6),
    ),
    Probe(
        "kms",
        "another role completes what is encrypted with a key",
        ("A4",),
        GUIDE + "mpuAndPermissions.html",
        _KMS,
        _kms,
        Cost(requests=10),
        lacks=options("key-role", "key"),
    ),
)
