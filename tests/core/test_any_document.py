"""However deep a document is and whatever a key or a line holds, it is read or refused.

Another exception would fail a Lambda for ever instead of ending the job with a result. tests/fuzz
changes the documents by chance.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import s3commit.core
from s3commit.core.formats.documents import success_job_id
from s3commit.core.formats.layout import parse_destination, parse_manifest_key
from s3commit.core.formats.strict_json import one_line
from s3commit.core.model.errors import InvalidInputError, JobRefusedError, NeedsOperatorError
from tests.core.world import BUCKET
from tests.engines.fuzz.documents import DIRECTORY, DOCUMENTS, Read

DOCUMENT = pytest.mark.parametrize(("body", "read"), list(DOCUMENTS.values()), ids=list(DOCUMENTS))


def read_or_refused(read: Read, body: bytes) -> None:
    try:
        read(body)
    except (InvalidInputError, JobRefusedError, NeedsOperatorError) as error:
        assert one_line(error.message).isprintable()


@DOCUMENT
def test_each_document_is_acceptable_before_it_is_touched(body: bytes, read: Read) -> None:
    read(body)


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


def test_the_test_of_expressions_sees_one_that_is_bad() -> None:
    parser = importlib.import_module("re._parser")
    assert any(repeats_in(parser.parse(r"x(?:y|(a+)+b)z")))
    assert not any(repeats_in(parser.parse(r"x(?:y|(ab?)+)z")))
