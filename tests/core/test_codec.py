"""The codec: a record comes back as it was, and a document that breaks a limit is refused whole."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3commit.core.formats.codec import Codec, Form
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.fields import SPARSE, Name, Several, Text, Whole

NONE_OR_DIGITS = re.compile("[0-9]*")
Word = Annotated[str, Text(5, least=1)]


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    count: Annotated[int, Whole(1, 9)]


@dataclass(frozen=True)
class Outer:
    first_name: Word
    some: Inner
    many: Annotated[tuple[Inner, ...], Name("lots"), Several(3, least=1)]
    known: int | None
    digits: Annotated[str, Text(pattern=NONE_OR_DIGITS)] = ""
    flag: Annotated[bool, SPARSE] = False
    colour: Colour = Colour.RED
    words: Annotated[tuple[Word, ...], Several(2)] = ()
    made: Inner = field(default_factory=lambda: Inner(9))
    other: Annotated[Inner | None, SPARSE] = None
    own: str = "mine"
    upper: str = ""


UPPER = Form(lambda value: str(value).upper(), str.lower)
MINE = {"own": "mine"}
OUTER = Codec(
    Outer, "thing", 1, max_bytes=1000, most=50, closed=True, forms={"upper": UPPER}, unwritten=MINE
)
OPEN = Codec(Outer, constants={"because": None}, unwritten=MINE)
SOUND: dict[str, Any] = {
    "version": 1,
    "firstName": "Ada",
    "some": {"count": 1},
    "lots": [{"count": 2}, {"count": 3}],
}
READ = Outer("Ada", Inner(1), (Inner(2), Inner(3)), None)

word = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
inner = st.builds(Inner, st.integers(1, 9))
outer = st.builds(
    Outer,
    first_name=word,
    some=inner,
    many=st.lists(inner, min_size=1, max_size=3).map(tuple),
    known=st.none() | st.integers(0, 2**63 - 1),
    digits=st.from_regex(NONE_OR_DIGITS, fullmatch=True),
    flag=st.booleans(),
    colour=st.sampled_from(Colour),
    words=st.lists(word, max_size=2).map(tuple),
    made=inner,
    other=st.none() | inner,
    own=st.just("mine"),
    upper=st.sampled_from(["", "A", "AB"]),
)


@given(outer)
def test_a_record_comes_back_as_it_was(record: Outer) -> None:
    assert OUTER.decode(OUTER.encode(record)) == record
    assert OPEN.decode(OPEN.encode(record)) == record


def test_what_is_missing_or_null_has_its_default() -> None:
    assert OUTER.read(SOUND) == READ
    assert OUTER.read({**SOUND, "colour": None, "made": None, "other": None}) == READ


def test_a_document_has_camel_case_and_leaves_out_what_is_said_to_be_sparse() -> None:
    assert OUTER.write(READ) == {
        **SOUND,
        "known": None,
        "digits": "",
        "colour": "red",
        "words": [],
        "made": {"count": 9},
        "upper": "",
    }
    assert OPEN.write(READ)["because"] is None
    assert "version" not in OPEN.write(READ)


def test_a_field_that_no_document_has_is_not_read_whatever_one_says() -> None:
    assert OPEN.read({**SOUND, "own": "theirs"}).own == "mine"
    with pytest.raises(InvalidInputError, match="'own', which is not known"):
        OUTER.read({**SOUND, "own": "theirs"})


REFUSED = [
    ({"version": 8}, r"$.version must be 1, not 8"),
    ({"version": None}, r"$.version must be 1"),
    ({"version": True}, r"$.version must be 1"),
    ({"version": "1"}, r"$.version must be 1"),
    ({"more": 1}, "$ has 'more', which is not known"),
    ({"firstName": None}, "$.firstName is missing"),
    ({"firstName": 7}, "$.firstName must be a string"),
    ({"firstName": ""}, "$.firstName must have 1 to 5 characters"),
    ({"firstName": "abcdef"}, "$.firstName must have 1 to 5 characters"),
    ({"firstName": "\ud800"}, "$.firstName has text that UTF-8 cannot encode"),
    ({"digits": "12\n"}, r"$.digits is '12\n', which does not match [0-9]*"),
    ({"digits": "x" * 4097}, "$.digits must have 0 to 4096 characters"),
    ({"some": []}, "$.some must be an object"),
    ({"some": {}}, "$.some.count is missing"),
    ({"some": {"count": 0}}, "$.some.count must be from 1 to 9"),
    ({"some": {"count": 10}}, "$.some.count must be from 1 to 9"),
    ({"some": {"count": 1.0}}, "$.some.count must be a whole number"),
    ({"some": {"count": True}}, "$.some.count must be a whole number"),
    ({"some": {"count": "1"}}, "$.some.count must be a whole number"),
    ({"lots": {}}, "$.lots must be a list"),
    ({"lots": []}, "$.lots must have 1 to 3 elements"),
    ({"lots": [{"count": 1}] * 4}, "$.lots must have 1 to 3 elements"),
    ({"lots": [{"count": 1}, None]}, "$.lots[1] must be an object"),
    ({"lots": [{"count": 1}, {"count": -1}]}, "$.lots[1].count must be from 1 to 9"),
    ({"known": -1}, "$.known must be from 0 to 9223372036854775807"),
    ({"known": 2**63}, "$.known must be from 0 to 9223372036854775807"),
    ({"flag": 1}, "$.flag must be true or false"),
    ({"colour": "RED"}, "$.colour is 'RED', none of red, blue"),
    ({"colour": ["red"]}, "$.colour must be a string"),
    ({"words": ["a", ""]}, "$.words[1] must have 1 to 5 characters"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=lambda value: str(value)[:50])
def test_i7_what_breaks_a_limit_is_told_by_its_path(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        OUTER.read({**SOUND, **change})
    assert caught.value.message == f"thing: {message}"
    assert caught.value.code == ("BAD_VERSION" if "version" in change else "BAD_FIELD")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "BAD_JSON"),
        (b"{", "BAD_JSON"),
        (b"[]", "BAD_FIELD"),
        (b"null", "BAD_FIELD"),
        (b"\xff\xfe{}", "BAD_JSON"),
        (b'{"version":1,"version":1}', "BAD_JSON"),
        (b'{"version":1,"x":NaN}', "BAD_JSON"),
        (b'{"version":1,"x":-Infinity}', "BAD_JSON"),
        (b"[" * 49, "BAD_JSON"),
        (b'{"version":1} trailing', "BAD_JSON"),
        (b'{"version":' + b"9" * 900 + b"}", "BAD_VERSION"),
        (b'"' + b"x" * 999 + b'"', "TOO_LARGE"),
        (b"[" + b"0," * 60 + b"0]", "TOO_LARGE"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_i7_what_is_no_strict_json_is_refused(body: bytes, code: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        OUTER.decode(body)
    assert caught.value.code == code


@pytest.mark.parametrize("name", ["x" * 1000, "\ud800"], ids=["too large", "no UTF-8"])
def test_what_no_reader_takes_is_not_written(name: str) -> None:
    with pytest.raises(InvalidInputError):
        OUTER.encode(Outer(name, Inner(1), (), None))
