"""Whatever bytes lie where a document belongs, a reader refuses them by `InvalidInputError` alone.

Another exception would fail a Lambda for ever instead of ending the job with a result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3commit.core.documents import (
    decode_job,
    decode_main,
    decode_request,
    decode_result,
    encode_job,
    encode_location,
    encode_request,
    encode_result,
)
from s3commit.core.errors import InvalidInputError
from s3commit.core.jsontext import one_line
from s3commit.core.layout import parse_destination, parse_manifest_key
from s3commit.core.manifest import (
    decode_note,
    decode_pending,
    decode_pendingset,
    encode_pendingset,
)
from s3commit.core.model import (
    CommitRequest,
    CountedAttempt,
    Failure,
    JobResult,
    JobSpec,
    Names,
    Outcome,
)
from s3commit.core.plan import Slice, Unit, decode_plan, encode_plan
from s3commit.core.published import (
    CommitHeader,
    CommittedFile,
    commit_lines,
    decode_commit_manifest,
    success_job_id,
)
from tests.core.test_manifest import one_file, one_set
from tests.core.world import BUCKET, JOB, place_of

PLACE = place_of()
PENDINGSET = encode_pendingset(one_set())
LOCATION = "archive/dt=1/"
SPEC = JobSpec(
    JOB,
    PLACE.destination,
    partition_by=("dt",),
    idempotency_key="k",
    locations={"dt=1/": LOCATION},
)
PENDING_KEY = f"{PLACE.s3a}00/tasks/attempt/__base/{PLACE.relative(one_file().key)}.pending"
ATTEMPT = CountedAttempt("t0", "a0", PLACE.manifest_name("t0", "a0"), "0" * 64, 1, 5)
RESULT = JobResult(JOB, Outcome.ABORTED, Failure("A", "b"), 3, 9, None, "2026Z", "2026Z", "arn")
HEADER = CommitHeader(JOB, PLACE.destination.uri, "2026Z", 1, 5, None, ("dt",))

Read = Callable[[bytes], object]
DOCUMENTS: dict[str, tuple[bytes, Read]] = {
    "pendingset": (PENDINGSET, lambda body: decode_pendingset(body, PLACE)),
    "exact pendingset": (
        PENDINGSET,
        lambda body: decode_pendingset(body, PLACE, names=Names.EXACT),
    ),
    "pending": (
        json.dumps(json.loads(PENDINGSET)["commits"][0]).encode(),
        lambda body: decode_pending(body, PLACE, PENDING_KEY),
    ),
    "note": (
        b'{"version":1,"key":"sales/x.csv","uploadId":"u"}',
        lambda body: decode_note(body, PLACE),
    ),
    "job": (
        encode_job(SPEC),
        lambda body: decode_job(body, PLACE),
    ),
    "job at a location": (
        encode_location(SPEC, LOCATION),
        lambda body: decode_main(body, PLACE.at(LOCATION)),
    ),
    "request": (
        encode_request(CommitRequest(JOB, (ATTEMPT, replace(ATTEMPT, location=LOCATION)))),
        lambda body: decode_request(body, PLACE),
    ),
    "result": (encode_result(RESULT), lambda body: decode_result(body, PLACE)),
    "commit manifest": (
        b"".join(commit_lines(HEADER, [CommittedFile("sales/x", 5, '"e"', 1)])),
        decode_commit_manifest,
    ),
    "plan": (
        encode_plan([Unit(0, (Slice("tasks/t0/a0.pendingset", "0" * 64, 0, 1),))]),
        decode_plan,
    ),
}
DOCUMENT = pytest.mark.parametrize(("body", "read"), list(DOCUMENTS.values()), ids=list(DOCUMENTS))

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([2**63, -1, 10**400, "\ud800", "\0", "..", "/", "x" * 5000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def read_or_refused(read: Read, body: bytes) -> None:
    try:
        read(body)
    except InvalidInputError as error:
        assert one_line(error.message).isprintable()


@st.composite
def edits(draw: st.DrawFn) -> list[tuple[str, float, int, bytes]]:
    """What to do, where (a share of the length), over how many bytes, and with which ones."""
    one = st.tuples(
        st.sampled_from(["cut", "put", "over", "twice", "end"]),
        st.floats(0, 1),
        st.integers(1, 40),
        st.binary(max_size=8) | st.sampled_from([b"{", b"[[[", b'"', b"\\ud800", b"NaN", b"-"]),
    )
    return draw(st.lists(one, min_size=1, max_size=4))


def edited(body: bytes, changes: list[tuple[str, float, int, bytes]]) -> bytes:
    for what, share, length, more in changes:
        at = int(share * len(body))
        head, middle, tail = body[:at], body[at : at + length], body[at + length :]
        body = {
            "cut": head + tail,
            "put": head + more + middle + tail,
            "over": head + more + tail,
            "twice": head + middle + middle + tail,
            "end": head,
        }[what]
    return body


@DOCUMENT
def test_each_document_is_acceptable_before_it_is_touched(body: bytes, read: Read) -> None:
    read(body)


@DOCUMENT
@given(changes=edits())
@settings(max_examples=150)
def test_i7_edited_bytes_are_read_or_refused(
    body: bytes, read: Read, changes: list[tuple[str, float, int, bytes]]
) -> None:
    read_or_refused(read, edited(body, changes))


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = [path]
    for name, one in inner:
        found += paths_of(one, (*path, name)) if isinstance(one, dict | list) else [(*path, name)]
    return found


def put_at(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    head, *rest = path
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[head] = put_at(value[head], tuple(rest), new)
    return copied


@DOCUMENT
@given(data=st.data())
@settings(max_examples=150)
def test_i7_any_value_in_any_place_is_read_or_refused(
    body: bytes, read: Read, data: st.DataObject
) -> None:
    first, *rest = body.splitlines(keepends=True)
    document = json.loads(first)
    path = data.draw(st.sampled_from(paths_of(document)))
    changed = json.dumps(put_at(document, path, data.draw(json_values))).encode()
    read_or_refused(read, b"\n".join([changed, *rest]))


@DOCUMENT
@pytest.mark.parametrize("depth", [300, 900, 990, 1100, 100_000])
def test_i7_any_depth_in_any_place_is_read_or_refused(body: bytes, read: Read, depth: int) -> None:
    first, *rest = body.splitlines(keepends=True)
    document = json.loads(first)
    for path in paths_of(document):
        changed = json.dumps(put_at(document, path, "HERE")).encode()
        for opened, closed in ((b"[", b"]"), (b'{"a":', b"}")):
            deep = changed.replace(b'"HERE"', opened * depth + b"1" + closed * depth, 1)
            read_or_refused(read, b"\n".join([deep, *rest]))


@given(st.binary(max_size=200))
def test_a_marker_is_read_whatever_it_holds(body: bytes) -> None:
    assert isinstance(success_job_id(body), str)


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_i7_any_key_and_any_uri_is_read_or_refused(text: str) -> None:
    for read in (
        lambda: parse_manifest_key(BUCKET, text),
        lambda: parse_manifest_key(BUCKET, PLACE.prefix + text),
        lambda: parse_destination(text),
        lambda: parse_destination(f"s3://{BUCKET}/{text}"),
    ):
        try:
            read()
        except InvalidInputError as error:
            assert one_line(error.message).isprintable()


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_a_line_is_one_and_short_whatever_it_is_made_of(text: str) -> None:
    line = one_line(text, 100)
    assert line.isprintable()
    assert len(line) <= 100
    line.encode()  # or it could not be stored
    if text.isprintable():
        assert line == text[:100]
