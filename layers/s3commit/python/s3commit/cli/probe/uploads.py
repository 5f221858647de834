"""Uploads: A4, an aborted upload can't be completed, and an upload completes only once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, Final

from s3commit.cli.probe.conditions import COMPLETES, CONFLICT, GUIDE, REFUSED
from s3commit.cli.probe.model import Case, Cost, Seen, at_once, in_rounds, needs, probe
from s3commit.cli.probe.s3_prefix import Upload
from s3commit.cli.probe.target import PART_BYTES, PARTS, Target

ABORTS: Final = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html"
GONE: Final = "404 NoSuchUpload"

_REPEATED: Final = Case(("200", GONE))
_REPEATED_IF_NONE: Final = Case(("200", GONE, REFUSED))


@probe(
    relies=("A4", "ADR 5"),
    source=COMPLETES,
    cost=Cost(requests=35),
    cases={
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
    },
)
def completion_again(target: Target) -> Iterator[Seen]:
    """A repeated completion brings nothing back and covers nothing."""
    at = target.prefix
    once = at.start("again")
    yield Seen("complete", at.complete(once))
    before = len(at.versions("again"))
    yield Seen("the same at once", at.complete(once))
    yield Seen("the same at once, if none", at.complete(once, IfNoneMatch="*"))
    yield Seen("the object", at.body("again"))
    yield Seen("versions more", str(len(at.versions("again")) - before))
    at.delete("again")
    before = len(at.versions("again"))
    yield Seen("the same after a delete", at.complete(once))
    yield Seen("the same after a delete, if none", at.complete(once, IfNoneMatch="*"))
    yield Seen("what reappears", at.body("again"))
    yield Seen("versions more after that", str(len(at.versions("again")) - before))
    covered = at.start("covered-again")
    at.complete(covered)
    at.put("covered-again", b"newer")
    before = len(at.versions("covered-again"))
    yield Seen("the same after an overwrite", at.complete(covered))
    yield Seen("the object after that", at.body("covered-again"))
    yield Seen("versions more after that too", str(len(at.versions("covered-again")) - before))


@probe(
    relies=("A4", "ADR 5"),
    source=COMPLETES,
    each_round=Cost(requests=7),
    cases={
        "what the workers are told": Case(("200", GONE, CONFLICT, "409 OperationAborted")),
        "the object after each race": Case(("first",)),
    },
)
@in_rounds("{rounds} races of 3")
def completions_at_once(target: Target, number: int) -> Iterator[Seen]:
    """An upload that several complete at once is completed once."""
    upload = target.prefix.start(f"same-{number}")
    told = at_once(*[partial(target.prefix.complete, upload)] * 3)
    yield Seen("what the workers are told", tuple(told))
    yield Seen("the object after each race", target.prefix.body(upload.key))


@probe(
    relies=("A4",),
    source=ABORTS,
    cost=Cost(requests=20),
    cases={
        "abort": Case(("204",)),
        "complete after it": Case((GONE,)),
        "what appears": Case(("nothing",)),
        "list parts after it": Case((GONE,)),
        "send a part after it": Case((GONE,)),
        "abort again": Case(("204", GONE)),
        "abort after a completion": Case(("204", GONE)),
        "the object after that": Case(("first",)),
    },
)
def abort(target: Target) -> Iterator[Seen]:
    """An aborted upload can't be completed."""
    at = target.prefix
    upload = at.start("aborted")
    yield Seen("abort", at.abort(upload))
    yield Seen("complete after it", at.complete(upload))
    yield Seen("what appears", at.body("aborted"))
    yield Seen("list parts after it", at.parts_of(upload))
    yield Seen("send a part after it", at.send_part(upload))
    yield Seen("abort again", at.abort(upload))
    done = at.start("done")
    at.complete(done)
    yield Seen("abort after a completion", at.abort(done))
    yield Seen("the object after that", at.body("done"))


@probe(
    relies=("A5", "docs/security.md"),
    source=COMPLETES,
    cost=Cost(requests=10),
    cases={
        "complete at another key": Case((GONE,)),
        "abort at another key": Case((GONE, "204")),
        "the upload after that": Case(("200",)),
        "what is at either key": Case(("nothing",)),
        "complete at its own key": Case(("200",)),
    },
)
def another_key(target: Target) -> Iterator[Seen]:
    """An upload's id counts at its own key alone.

    A manifest of a stranger names an upload of another at a key of its own.
    """
    at = target.prefix
    upload = at.start("its-own")
    elsewhere = Upload("another", upload.upload_id, upload.parts)
    yield Seen("complete at another key", at.complete(elsewhere))
    yield Seen("abort at another key", at.abort(elsewhere))
    yield Seen("the upload after that", at.parts_of(upload))
    yield Seen("what is at either key", (at.body("its-own"), at.body("another")))
    yield Seen("complete at its own key", at.complete(upload))


@probe(
    relies=("aws/s3_client.py",),
    source=GUIDE + "checking-object-integrity-upload.html",
    cost=Cost(requests=6),
    cases={
        # Of these the pipeline refuses COMPOSITE alone: its parts' checksums are in no manifest
        "checksum type of the upload": Case(("none", "FULL_OBJECT")),
        "complete by etags alone": Case(("200",)),
        "checksum type of the object": Case(("FULL_OBJECT",), matters=False),
    },
)
def checksums(target: Target) -> Iterator[Seen]:
    """An upload without checksums completes by its etags.

    Our client sends no checksum; S3 makes one of its own, and must not ask for the parts'.
    """
    at = target.prefix
    upload = at.start("checksum")
    types = [one.get("ChecksumType", "none") for one in at.listed_uploads(upload.key)]
    yield Seen("checksum type of the upload", tuple(types) or "not listed")
    yield Seen("complete by etags alone", at.complete(upload))
    found = at.facts(upload.key, ChecksumMode="ENABLED")
    kinds = [name for name in found if name.startswith("Checksum") and name != "ChecksumType"]
    told = found.get("ChecksumType", "none")
    yield Seen("checksum type of the object", told, ", ".join(kinds))


@probe(
    relies=("A4",),
    source=GUIDE + "mpuAndPermissions.html",
    cost=Cost(requests=10),
    lacks=needs("key-role", "key"),
    cases={
        "complete by the other role": Case(("200",)),
        "the object": Case(("first",)),
        "its encryption": Case(("aws:kms",)),
        "abort by the other role": Case(("204",)),
    },
)
def kms(target: Target) -> Iterator[Seen]:
    """Another role completes what is encrypted with a key."""
    at = target.prefix
    theirs = replace(at, client=target.s3_as(target.given.key_role or ""))
    encrypted: Any = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": target.given.key}
    yield Seen("complete by the other role", theirs.complete(at.start("encrypted", **encrypted)))
    yield Seen("the object", at.body("encrypted"))
    yield Seen("its encryption", at.facts("encrypted").get("ServerSideEncryption", "none"))
    aborted = at.start("encrypted-aborted", **encrypted)
    yield Seen("abort by the other role", theirs.abort(aborted))


# How much later than the completion the abort is sent (negative: earlier), in seconds.
DELAYS = (-0.02, 0.0, 0.02, 0.05, 0.1, 0.3)
SETTLE_SECONDS = 1.0
COPIERS = 8
ABORTS_TRIED = 5


@probe(
    relies=("A4",),
    source=ABORTS,
    cases={"how each race ends": Case(("completed", "aborted"))},
    cost=Cost(requests=1, sent=PART_BYTES),
    each_round=Cost(requests=PARTS + 12, copied=PARTS * PART_BYTES),
)
@in_rounds("{rounds} races with {parts} parts of 5 MiB")
def abort_race(target: Target, number: int) -> Iterator[Seen]:
    """An abort and a completion at once: the one or the other.

    The abort meets the running completion of many parts: the file is there, or never will be.
    """
    if not number:
        target.prefix.put("part", bytes(PART_BYTES))
    yield Seen(
        "how each race ends", _raced(target, f"raced-{number}", DELAYS[number % len(DELAYS)])
    )


def _raced(target: Target, key: str, delay: float) -> str:
    at, pause = target.prefix, target.environment.sleep
    upload = _many_parts(target, key)

    def complete() -> tuple[str, int]:
        pause(max(0.0, -delay))
        return at.completed(upload)

    def abort() -> tuple[str, int]:
        pause(max(0.0, delay))
        return at.abort(upload), 0

    (told, repeated), (aborted, _) = at_once(complete, abort)
    # As a roll back does: abort until ListParts does not know it, then look what is visible.
    for _ in range(ABORTS_TRIED):
        if at.parts_of(upload) == GONE:
            break
        aborted = at.abort(upload)
    open_still = at.parts_of(upload) != GONE
    visible = at.head(key) == "200"
    pause(SETTLE_SECONDS)
    later = at.head(key) == "200"
    at.delete(key)
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


def _many_parts(target: Target, key: str) -> Upload:
    at = target.prefix
    upload = at.start(key, None)
    with ThreadPoolExecutor(COPIERS) as pool:
        numbers = range(1, target.parts + 1)
        parts = tuple(pool.map(lambda number: at.copy_part(upload, number, "part"), numbers))
    return Upload(key, upload.upload_id, parts)


PROBES: Final = (
    *completion_again.on_both,
    completions_at_once,
    abort,
    another_key,
    checksums,
    kms,
    abort_race,
)
