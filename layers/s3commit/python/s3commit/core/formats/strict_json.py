"""Strict JSON for input from strangers: bounded, typed, nothing doubtful accepted.

The standard parser takes duplicate keys (the last wins), NaN and lone surrogates; two readers of
one manifest could then disagree on what it says. Here all of it is refused, with the path.
"""

import hashlib
import json
from typing import Any, NoReturn

from s3commit.core.model.errors import InvalidInputError

# A refusal may quote a stranger's document: it is cut.
LONGEST_LINE = 4000
TOO_LARGE = "TOO_LARGE"

# Memory, and not time, is what a stranger's document can use up. Measured (`python -m bench --only
# documents`): a byte of a document costs at most 9 bytes (a long text with one character that takes
# Python four), a value at most 320 more (a member with a name of its own). So a document of b bytes
# and v values takes less than 9 b + 320 v, and each limit is set by that and by what the functions
# that read it have (docs/protocol.md, "Formats"). This one is for the small documents.
MAX_VALUES = 20_000


def _refuse(message: str, code: str = "BAD_JSON") -> NoReturn:
    raise InvalidInputError(message, code=code)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        _refuse("JSON object with a duplicate key")
    return found


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=lambda name: _refuse(f"the number {name}")
)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def parse(body: bytes, *, what: str, max_bytes: int, most: int = MAX_VALUES) -> Any:
    """Parse UTF-8 JSON of at most ``max_bytes`` and about ``most`` values.

    Raises `InvalidInputError` (``BAD_JSON`` or ``TOO_LARGE``) for anything that is not strict
    JSON: duplicate keys, NaN, Infinity, too deep nesting, trailing text, another encoding.
    """
    bounded(body, what=what, max_bytes=max_bytes, most=most)
    try:
        return _DECODER.decode(body.decode("utf-8"))
    except InvalidInputError as error:
        _refuse(f"{what} is not strict JSON: {error.message}")
    except RecursionError:
        _refuse(f"{what} is not strict JSON: nested too deeply")
    except ValueError as error:  # JSONDecodeError, UnicodeDecodeError, too many digits
        _refuse(f"{what} is not strict JSON: {str(error)[:200]}")


def bounded(body: bytes, *, what: str, max_bytes: int, most: int = MAX_VALUES) -> bytes:
    """The body, if `parse` would not refuse it for its size; for its writer.

    Raises `InvalidInputError` (``TOO_LARGE``). Counted are the signs that precede values, in texts
    too: there are never fewer of them than values.
    """
    if len(body) > max_bytes:
        _refuse(f"{what} has {len(body)} bytes; at most {max_bytes} are read", TOO_LARGE)
    values = body.count(b",") + body.count(b"[") + body.count(b"{")
    if values > most:
        _refuse(f"{what} has about {values} values; at most {most} are read", TOO_LARGE)
    return body


def dump(value: Any) -> bytes:
    """Compact UTF-8 JSON with the keys in the order given, without NaN.

    Raises `InvalidInputError` if the value has text or numbers that JSON can't carry.
    """
    try:
        return _ENCODER.encode(value).encode("utf-8")
    except ValueError as error:  # UnicodeEncodeError too: lone surrogates
        _refuse(f"value cannot be written as JSON: {str(error)[:200]}")


def member_name(name: str) -> str:
    """How a document names a record's field."""
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


def printable(text: str) -> str:
    """The text with each character that is not printable written as an escape.

    For names by strangers: a line break could forge a second message, a control character a
    terminal's output, and a lone surrogate can't be stored.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """``text`` as one line for a message that quotes a stranger: `printable`, and not too long."""
    return printable(text[:longest])[:longest]


def digest(body: bytes) -> str:
    """The hex SHA-256 by which a request names a manifest."""
    return hashlib.sha256(body).hexdigest()
