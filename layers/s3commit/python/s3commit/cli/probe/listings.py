"""What is read at once after a write: A1, a read shows every write that was answered before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from s3commit.cli.probe.model import Case, Cost, Seen, in_rounds, probe
from s3commit.cli.probe.target import Target
from s3commit.cli.probe.uploads import GONE

CONSISTENCY: Final = (
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel"
)
UPLOADS: Final = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html"

_ALWAYS: Final = Case(("always",))
_TIMES: Final = "{rounds} times"


@probe(
    relies=("A1",),
    source=CONSISTENCY,
    each_round=Cost(requests=12),
    cases={
        "listed after a put": _ALWAYS,
        "read after a put": _ALWAYS,
        "the newer read after an overwrite": _ALWAYS,
        "not listed after a delete": _ALWAYS,
        "not read after a delete": _ALWAYS,
    },
)
@in_rounds(_TIMES)
def objects_seen(target: Target, number: int) -> Iterator[Seen]:
    """Reads and listings show objects at once."""
    at, key = target.prefix, f"seen-{number}"
    at.head(key)  # S3 must not remember that there was nothing
    at.put(key)
    yield Seen("listed after a put", at.listed(key) == [key])
    yield Seen("read after a put", at.body(key) == "first")
    at.put(key, b"second")
    yield Seen("the newer read after an overwrite", at.body(key) == "second")
    at.delete(key)
    yield Seen("not listed after a delete", at.listed(key) == [])
    yield Seen("not read after a delete", at.head(key) == "404")


@probe(
    relies=("A1",),
    source=UPLOADS,
    each_round=Cost(requests=14),
    cases={
        "upload listed after its start": _ALWAYS,
        "list parts after an abort": Case((GONE,)),
        # an upload counts as aborted when ListParts does not know it, whatever a listing shows
        "upload not listed after an abort": Case(("always",), matters=False),
        "object listed and read after completion": _ALWAYS,
        "upload not listed after completion": Case(("always",), matters=False),
    },
)
@in_rounds(_TIMES)
def uploads_seen(target: Target, number: int) -> Iterator[Seen]:
    """Listings show open uploads at once."""
    at = target.prefix
    first, second = at.start(f"open-{number}"), at.start(f"completed-{number}")
    yield Seen("upload listed after its start", at.is_listed(first) and at.is_listed(second))
    at.abort(first)
    yield Seen("list parts after an abort", at.parts_of(first))
    yield Seen("upload not listed after an abort", not at.is_listed(first))
    at.complete(second)
    is_seen = at.listed(second.key) == [second.key] and at.head(second.key) == "200"
    yield Seen("object listed and read after completion", is_seen)
    yield Seen("upload not listed after completion", not at.is_listed(second))


PROBES: Final = (objects_seen, uploads_seen)
