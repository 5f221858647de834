"""Documents changed by chance: their bytes, and what they say. The same seed, the same change."""

import json
import random
from collections.abc import Sequence
from typing import Any

VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63 - 1, 2**63, 10**400, 0.5, 1e308, -0.0,
    "", "x", "\0", "\n", "\ud800", "\U0001f600", "/", "..", "../../x", "_SUCCESS", "__magic_job-x",
    "s3://lake/", "s3://lake/sales/_commits/", "x" * 300, "x" * 5000, "é" * 600,
    [], {}, [[]], [{}], {"": ""}, {"a": {"b": [1]}}, [None] * 101, ["a"] * 20,
]  # fmt: skip
BYTES: list[bytes] = [
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\u0000", b"\\ud800", b"NaN", b"-", b"1e999",
    b"\0", b"\xff", b"\xc0\x80", b"\xef\xbb\xbf", b"\r\n", b"\x0b", b"\x85", b"9" * 5000,
    b"[" * 2000, b'{"a":' * 2000, b"[]," * 500,
]  # fmt: skip


def mutated(chance: random.Random, body: bytes, others: Sequence[bytes] = ()) -> bytes:
    """One to four changes; ``others`` are documents of which parts are taken."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        change = chance.choice((_said, _said, _said, _bytes, _spliced))
        body = change(chance, body, others)
    return body


def _said(chance: random.Random, body: bytes, others: Sequence[bytes]) -> bytes:
    """Another value, no value, another name, a name twice: in one line of the document."""
    lines = body.split(b"\n")
    number = chance.randrange(len(lines))
    try:
        document = json.loads(lines[number])
    except (ValueError, RecursionError):
        return _bytes(chance, body, others)
    holders = list(_holders(document))
    if not holders:
        return _bytes(chance, body, others)
    holder = chance.choice(holders)
    at = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    kind = chance.randrange(6)
    if kind == 0:
        del holder[at]
    elif kind == 1 and isinstance(holder, list):
        holder.append(holder[at])
    elif kind == 1:
        holder[str(chance.choice(VALUES))[:40]] = holder.pop(at)
    elif kind == 2:
        other = _document(chance.choice(others)) if others else None
        holder[at] = chance.choice([*_holders(other)] or VALUES)
    elif kind == 3 and isinstance(holder[at], str):
        text = holder[at]
        where = chance.randrange(len(text) + 1)
        more = str(chance.choice(VALUES))
        holder[at] = text[:where] + more + text[where + chance.randrange(3) :]
    else:
        holder[at] = chance.choice(VALUES)
    said = json.dumps(document, ensure_ascii=chance.random() < 0.5)
    lines[number] = said.encode("utf-8", "surrogatepass")
    if kind == 5:
        lines[number] = lines[number].replace(b"{", b'{"version":1,', 1)
    return b"\n".join(lines)


def _bytes(chance: random.Random, body: bytes, others: Sequence[bytes]) -> bytes:
    at = chance.randrange(len(body) + 1)
    length = chance.randrange(1, 40)
    head, middle, tail = body[:at], body[at : at + length], body[at + length :]
    more = chance.choice(BYTES) if chance.random() < 0.7 else chance.randbytes(length)
    return head + chance.choice((tail, more + middle + tail, more + tail, middle * 2 + tail, b""))


def _spliced(chance: random.Random, body: bytes, others: Sequence[bytes]) -> bytes:
    if not others:
        return _bytes(chance, body, others)
    other = chance.choice(others)
    return body[: chance.randrange(len(body) + 1)] + other[chance.randrange(len(other) + 1) :]


def _document(body: bytes) -> Any:
    try:
        return json.loads(body.split(b"\n")[0])
    except (ValueError, RecursionError):
        return None


def _holders(value: Any) -> list[Any]:
    """Every object and array in the value that is not empty, the value itself among them."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list) and one:
            found.append(one)
            waiting.extend(one.values() if isinstance(one, dict) else one)
    return found
