"""Hostile documents and texts: refused whole, with a code and one line, or read (I5, I7).

Another exception would fail a Lambda for ever instead of ending the job with a result. tests/fuzz
changes the documents by chance.
"""

import importlib
import json
import pkgutil
import re
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import s3commit.core
from s3commit.core.calls.run_call import GOING_ON
from s3commit.core.documents.commit_manifest import commit_lines
from s3commit.core.documents.job_json import JOB_JSON, JobSpec
from s3commit.core.documents.pages import Unit, read_unit
from s3commit.core.documents.replace_list import decode_replaced
from s3commit.core.documents.request_json import AbortRequest, CommitRequest, encode_request
from s3commit.core.documents.success_marker import success_job_id
from s3commit.core.formats.layout import parse_destination, parse_manifest_key
from s3commit.core.formats.strict_json import digest, one_line
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, NeedsOperatorError
from s3commit.core.model.limits import PAGE_FILES
from tests.core.hostile_world import DIRECTORY, NOBODY, Neighbourhood
from tests.core.world import BUCKET, JOB, OTHER_JOB, World
from tests.engines.fuzz.documents import DOCUMENTS, FILE, HEADER, Read


@pytest.fixture
def world() -> Neighbourhood:
    return Neighbourhood()


# _job.json


def in_job(**changes: Any) -> bytes:
    spec = json.loads(JOB_JSON.encode(JobSpec(JOB, DIRECTORY.destination)))
    return json.dumps({**spec, **changes}).encode()


JOBS: list[tuple[bytes, str]] = [
    (b'{"version":1', "BAD_JSON"),
    (in_job(version=2), "BAD_VERSION"),
    (in_job(jobId=OTHER_JOB), "WRONG_JOB"),
    (in_job(destination="s3://lake/elsewhere/"), "WRONG_JOB"),
    (in_job(destination="s3://other-lake/sales/"), "WRONG_JOB"),
    (in_job(destination="file:///etc/\n/passwd" + "x" * 4000), "BAD_PATH"),
    (in_job(conflict="fail,replace"), "BAD_FIELD"),
    (in_job(scope="table"), "BAD_FIELD"),
    (in_job(unknown="any"), "BAD_FIELD"),
    (in_job(leaveRemoved=True), "BAD_FIELD"),
    (in_job(undoes=OTHER_JOB), "BAD_FIELD"),
    (in_job(undoes=OTHER_JOB, conflict="replace", scope="partition"), "BAD_FIELD"),
    (in_job(undoes="x", conflict="replace"), "BAD_FIELD"),
    (in_job(partitionBy=["dt", "dt"]), "BAD_FIELD"),
    (in_job(partitionBy=["x" * 256]), "BAD_FIELD"),
    (in_job(partitionBy=[f"c{number}" for number in range(101)]), "BAD_FIELD"),
    (in_job(idempotencyKey=""), "BAD_FIELD"),
    (in_job(idempotencyKey="x" * 1025), "BAD_FIELD"),
    *((in_job(note=said), "BAD_FIELD") for said in ("x" * 501, "a\nb", "\x9b1m", "\ud800", 7)),
    *((in_job(labels=[said]), "BAD_FIELD") for said in ("dag", "=7", f"{'n' * 65}=", "a b=7")),
    *((in_job(labels=[said]), "BAD_FIELD") for said in (f"n={'x' * 257}", "n=\x1b[2J", None)),
    (in_job(labels=["dag=1", "dag=2"]), "BAD_FIELD"),
    (in_job(labels=[f"n{number}=" for number in range(11)]), "BAD_FIELD"),
    (in_job(labels={"dag": "sales"}), "BAD_FIELD"),
    (in_job(conditions=[]), "BAD_CONDITION"),
    (in_job(conditions={"min\nRows\x1b[31m" + "x" * 9000: 1}), "BAD_CONDITION"),
]


@pytest.mark.parametrize(("body", "code"), JOBS, ids=lambda value: str(value)[-60:])
def test_i5_i7_a_wrong_job_json_is_refused(world: Neighbourhood, body: bytes, code: str) -> None:
    world.store.put(BUCKET, DIRECTORY.job, body)
    attempt = world.attempt(DIRECTORY, "t0")
    with pytest.raises(InvalidInputError) as at_ingest:
        world.announce(DIRECTORY, attempt)
    assert at_ingest.value.code == code
    world.request(DIRECTORY, attempt)
    world.refused(code)


# _request.json


def in_request(**changes: Any) -> bytes:
    document = json.loads(encode_request(CommitRequest(JOB, (NOBODY,))))
    return json.dumps({**document, **changes}).encode()


def in_attempt(**changes: Any) -> bytes:
    [attempt] = json.loads(in_request())["attempts"]
    return in_request(attempts=[{**attempt, **changes}])


REQUESTS: list[tuple[bytes, str]] = [
    (in_request().replace(b'"action"', b'"action":"abort","action"'), "BAD_JSON"),
    (in_request(version=None), "BAD_VERSION"),
    (in_request(jobId=OTHER_JOB), "WRONG_JOB"),
    (in_request(action="rollback\nnow"), "BAD_FIELD"),
    (in_request(attempts={}), "BAD_FIELD"),
    (in_attempt(taskId="../t0"), "BAD_FIELD"),
    (in_attempt(attemptId=""), "BAD_FIELD"),
    (in_attempt(manifest="../../elsewhere/_tasks/t0/_a0.pendingset"), "BAD_FIELD"),
    (in_attempt(manifest="_tasks/t1/_a0.pendingset"), "BAD_FIELD"),
    (in_attempt(manifest="x\n" * 2000), "BAD_FIELD"),
    *((in_request(jobDigest=said), "BAD_FIELD") for said in ("A" * 64, "0" * 63, 7)),
    (in_request(jobDigest=""), "MANIFEST_MISSING"),
    (in_attempt(sha256="F" * 64), "BAD_FIELD"),
    (in_attempt(files=-1), "BAD_FIELD"),
    (in_request(), "MANIFEST_MISSING"),
    (in_request(attempts=json.loads(in_request())["attempts"] * 2), "TWO_ATTEMPTS"),
]


@pytest.mark.parametrize(("body", "code"), REQUESTS, ids=lambda value: str(value)[-60:])
def test_i5_i7_a_wrong_request_is_refused(world: Neighbourhood, body: bytes, code: str) -> None:
    world.attempt(DIRECTORY, "t1")
    world.store.put(BUCKET, DIRECTORY.request, body)
    world.refused(code)


def test_i3_a_request_that_is_removed_ends_the_job(world: Neighbourhood) -> None:
    """A second one would not be heard: its execution has run."""
    world.attempt(DIRECTORY, "t0")
    world.refused("REQUEST_MISSING")


def test_i3_a_second_request_before_the_decision_refuses_the_job(world: Neighbourhood) -> None:
    world.ask(DIRECTORY)
    body = encode_request(AbortRequest(JOB, "no"))
    world.plan.run_after("advance", lambda: world.store.put(BUCKET, DIRECTORY.request, body))
    # It is decided by another call than it is sealed by.
    world.plan.run_after("advance", lambda: world.clock.advance(GOING_ON))
    world.refused("REQUEST_CHANGED")


# Messages


@pytest.mark.parametrize(
    "reason", ["a\r\nb\x85\x1b[2J\x07\u202e\u2028", "x" * 4096, None], ids=ascii
)
def test_a_strangers_words_make_one_line(world: Neighbourhood, reason: str | None) -> None:
    """They may be left out."""
    body = {"version": 1, "jobId": JOB, "action": "abort", "reason": reason}
    world.store.put(BUCKET, DIRECTORY.request, json.dumps(body).encode())
    error = world.refused("ABORTED_BY_CLIENT").error
    assert error is not None
    assert reason or error.message == "the client requested it"
    assert world.record(DIRECTORY).failure == error, "the ledger, which the console reads, too"


# However deep a document is and whatever a key or a line holds, it is read or refused


DOCUMENT = pytest.mark.parametrize(("body", "read"), list(DOCUMENTS.values()), ids=list(DOCUMENTS))


def read_or_refused(read: Read, body: bytes) -> None:
    try:
        read(body)
    except (InvalidInputError, JobRefusedError, NeedsOperatorError) as error:
        assert one_line(error.message).isprintable()


@DOCUMENT
def test_each_document_is_acceptable_before_it_is_touched(body: bytes, read: Read) -> None:
    read(body)


def put_anywhere(new: str, value: Any) -> Iterator[Any]:
    """The value with ``new`` instead of it, and instead of each value inside."""
    yield new
    if isinstance(value, dict | list):
        for name in value if isinstance(value, dict) else range(len(value)):
            for changed in put_anywhere(new, value[name]):
                copied = value.copy()
                copied[name] = changed
                yield copied


@DOCUMENT
@pytest.mark.parametrize("depth", [300, 900, 990, 1100, 100_000])
def test_i7_any_depth_in_any_place_is_read_or_refused(body: bytes, read: Read, depth: int) -> None:
    first, *rest = body.splitlines(keepends=True)
    for document in put_anywhere("HERE", json.loads(first)):
        changed = json.dumps(document).encode()
        for opened, closed in ((b"[", b"]"), (b'{"a":', b"}")):
            deep = changed.replace(b'"HERE"', opened * depth + b"1" + closed * depth, 1)
            read_or_refused(read, b"\n".join([deep, *rest]))


LINES = {
    "empty objects": b"{}\n" * 2_800_000,
    "empty lines": b"\n" * 8_000_000,
    "returns": b"\r" * 8_000_000,
    "one line": b" " * 8_000_000,
    "sound lines": b"".join(list(commit_lines(HEADER, [FILE]))[1:]) * 20_000,
}


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_i12_a_page_is_held_up_to_its_first_wrong_line(lines: bytes) -> None:
    """Beside its bytes, which are bounded; a line may be as long. Lists: tests/cli."""
    store, page = World().store, digest(lines)
    store.put(BUCKET, DIRECTORY.page(page), lines)
    decode = partial(decode_replaced, directory=DIRECTORY)
    tracemalloc.start()
    with suppress(InvalidInputError):
        read_unit(store, DIRECTORY, Unit(0, page, 0, PAGE_FILES), decode)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000 + len(lines)


@given(st.binary(max_size=200))
def test_a_marker_is_read_whatever_it_holds(body: bytes) -> None:
    assert isinstance(success_job_id(body), str)


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_i7_any_key_and_any_uri_is_read_or_refused(text: str) -> None:
    for read in (
        lambda: parse_manifest_key(BUCKET, text),
        lambda: parse_manifest_key(BUCKET, DIRECTORY.prefix + text),
        lambda: parse_destination(text),
        lambda: parse_destination(f"s3://{BUCKET}/{text}"),
    ):
        try:
            read()
        except (InvalidInputError, NeedsOperatorError) as error:
            assert one_line(error.message).isprintable()


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_a_line_is_one_and_short_whatever_it_is_made_of(text: str) -> None:
    line = one_line(text, 100)
    assert line.isprintable()
    assert len(line) <= 100
    line.encode()  # or it could not be stored
    if text.isprintable():
        assert line == text[:100]


def expressions() -> list[re.Pattern[str]]:
    found: list[re.Pattern[str]] = []
    for info in pkgutil.walk_packages(s3commit.core.__path__, "s3commit.core."):
        module = importlib.import_module(info.name)
        found += [one for one in vars(module).values() if isinstance(one, re.Pattern)]
    return list(dict.fromkeys(found))


def repeats_in(parsed: Any, inside: bool = False) -> Iterator[bool]:
    """For each repetition without a bound whether it stands in another one."""
    for operation, argument in parsed:
        unbounded = str(operation) in {"MAX_REPEAT", "MIN_REPEAT"} and argument[1] > 1000
        if unbounded:
            yield inside
        inner = argument if isinstance(argument, tuple | list) else ()
        for one in inner:
            branches = one if isinstance(one, list) else [one]
            for branch in branches:
                if hasattr(branch, "getwidth"):
                    yield from repeats_in(branch, inside or unbounded)


@pytest.mark.parametrize("expression", expressions(), ids=lambda one: one.pattern[:60])
def test_i12_no_expression_repeats_what_is_repeated(expression: re.Pattern[str]) -> None:
    """Else a stranger's key could take for ever.

    Without it a match takes time by the square of a key's length at most, which is 1,024 bytes.
    """
    parser = importlib.import_module("re._parser")
    assert not any(repeats_in(parser.parse(expression.pattern, expression.flags)))
