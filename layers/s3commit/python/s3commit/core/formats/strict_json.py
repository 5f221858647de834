"""Strict JSON for input from strangers: bounded, typed, nothing doubtful accepted.

The standard parser takes duplicate keys (the last wins), NaN and lone surrogates; two readers of
one manifest could then disagree on what it says. Here all of it is refused, with the path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, NoReturn

from s3commit.core.model.errors import InvalidInputError

# A refusal may quote a stranger's document; nobody reads an endless text.
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


def parse(body: bytes, *, what: str, max_bytes: int, most: int = MAX_VALUES) -> Any:
    """Parse UTF-8 JSON of at most ``max_bytes`` and about ``most`` values.

    Raises `InvalidInputError` (``BAD_JSON`` or ``TOO_LARGE``) for anything that is not strict
    JSON: duplicate keys, NaN, Infinity, too deep nesting, trailing text, another encoding.
    """
    bounded(body, what=what, max_bytes=max_bytes, most=most)
    try:
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=lambda name: _refuse(f"the number {name}"),
        )
    except InvalidInputError as error:
        _refuse(f"{what} is no strict JSON: {error.message}")
    except RecursionError:
        _refuse(f"{what} is no strict JSON: nested too deeply")
    except ValueError as error:  # JSONDecodeError, UnicodeDecodeError, too many digits
        _refuse(f"{what} is no strict JSON: {str(error)[:200]}")


def bounded(body: bytes, *, what: str, max_bytes: int, most: int = MAX_VALUES) -> bytes:
    """The body, if `parse` would not refuse it for its size; for who writes it.

    Raises `InvalidInputError` (``TOO_LARGE``). Counted are the signs that stand before values, in
    texts too: there are never fewer of them than values.
    """
    if len(body) > max_bytes:
        _refuse(f"{what} has {len(body)} bytes; at most {max_bytes} are read", TOO_LARGE)
    values = sum(body.count(sign) for sign in (b",", b"[", b"{"))
    if values > most:
        _refuse(f"{what} has about {values} values; at most {most} are read", TOO_LARGE)
    return body


def dump(value: Any) -> bytes:
    """Compact UTF-8 JSON with the keys in the order given, without NaN.

    Raises `InvalidInputError` if the value has text or numbers that JSON can't carry.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8")
    except ValueError as error:  # UnicodeEncodeError too: lone surrogates
        _refuse(f"value can not be written as JSON: {str(error)[:200]}")


def members(record: Any, *left_out: str) -> dict[str, Any]:
    """A record's fields as members of a document, ``job_id`` as ``jobId``; but ``left_out``."""
    return {
        member_name(field.name): getattr(record, field.name)
        for field in fields(record)
        if field.name not in left_out
    }


def member_name(name: str) -> str:
    """How a document names a record's field."""
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


_MISSING: Any = object()


class Fields:
    """Typed access to a JSON object; every refusal names the path of the offending value.

    Unknown keys are ignored, as Hadoop does, save where `only` is asked.
    """

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, dict):
            _refuse(f"{path} must be an object", "BAD_FIELD")
        self.value: dict[str, Any] = value
        self.path = path

    def _get(self, name: str, kind: type | tuple[type, ...], default: Any) -> Any:
        value = self.value.get(name)
        if value is None:
            if default is _MISSING:
                _refuse(f"{self.path}.{name} is missing", "BAD_FIELD")
            return default
        # bool is an int to Python, not to us.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            expected = kind.__name__ if isinstance(kind, type) else "another type"
            _refuse(f"{self.path}.{name} must be of type {expected}", "BAD_FIELD")
        return value

    def text(self, name: str, default: str = _MISSING, *, longest: int = 4096) -> str:
        """A string of at most ``longest`` characters that UTF-8 can carry."""
        value: str = self._get(name, str, default)
        return check_text(value, f"{self.path}.{name}", longest=longest)

    def optional_text(self, name: str, *, longest: int = 4096) -> str | None:
        """A string, or None where it is null or missing."""
        value = self._get(name, str, None)
        return None if value is None else check_text(value, f"{self.path}.{name}", longest=longest)

    def integer(self, name: str, default: int = _MISSING, *, least: int = 0) -> int:
        """An integer of at least ``least`` and below 2**63."""
        value: int = self._get(name, int, default)
        if not least <= value < 2**63:
            _refuse(f"{self.path}.{name} must be from {least} to below 2**63", "BAD_FIELD")
        return value

    def optional_integer(self, name: str) -> int | None:
        """An integer of 0 or more, or None where it is null or missing."""
        return None if self.value.get(name) is None else self.integer(name)

    def flag(self, name: str) -> bool:
        """True or False; False where it is null or missing."""
        value: bool = self._get(name, bool, False)
        return value

    def objects(self, name: str, *, most: int) -> Iterator[Fields]:
        """The objects of an array of at most ``most``, each with its path."""
        value: list[Any] = self._get(name, list, _MISSING)
        if len(value) > most:
            _refuse(f"{self.path}.{name} has more than {most} elements", "BAD_FIELD")
        for index, element in enumerate(value):
            yield Fields(element, f"{self.path}.{name}[{index}]")

    def texts(
        self, name: str, *, most: int, default: list[str] = _MISSING, longest: int = 4096
    ) -> tuple[str, ...]:
        """An array of at most ``most`` non-empty strings of at most ``longest`` characters."""
        value: list[Any] = self._get(name, list, default)
        if len(value) > most:
            _refuse(f"{self.path}.{name} has more than {most} elements", "BAD_FIELD")
        for index, element in enumerate(value):
            if not isinstance(element, str) or not element:
                _refuse(f"{self.path}.{name}[{index}] must be a non-empty string", "BAD_FIELD")
            check_text(element, f"{self.path}.{name}[{index}]", longest=longest)
        return tuple(value)

    def only(self, *known: str) -> None:
        """Refuse the object if it has another field than these."""
        unknown = sorted(self.value.keys() - set(known))
        if unknown:
            _refuse(f"{self.path} has {unknown[0][:80]!r}, which is not known", "BAD_FIELD")

    def mapping(self, name: str) -> dict[str, Any]:
        """An object as it is, or {} where it is null or missing."""
        value: dict[str, Any] = self._get(name, dict, {})
        return value

    def has(self, name: str) -> bool:
        """Whether the key is there and not null."""
        return self.value.get(name) is not None

    def version(self, expected: int) -> None:
        """Refuse unless ``version`` is ``expected``."""
        found = self.value.get("version")
        if found != expected or isinstance(found, bool):
            # Only a number is shown: what else stands there may be too deep to be made a text of.
            shown = f", not {str(found)[:20]}" if isinstance(found, int) else ""
            _refuse(f"{self.path}.version must be {expected}{shown}", "BAD_VERSION")


def one_line(text: str, longest: int = LONGEST_LINE) -> str:
    """``text`` as one printable line: what is no printable character is written as an escape.

    For messages that quote strangers: a line break could forge a second message, a control
    character a terminal's output, and a lone surrogate can't be stored.
    """
    shown = (
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text[:longest]
    )
    return "".join(shown)[:longest]


def check_text(value: str, path: str, *, longest: int) -> str:
    """Return ``value`` if it is short enough and has no lone surrogate."""
    if len(value) > longest:
        _refuse(f"{path} has more than {longest} characters", "BAD_FIELD")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        _refuse(f"{path} has text that UTF-8 can not carry", "BAD_FIELD")
    return value
