"""The one reader and writer of records: documents, tickets and the ledger's items.

A record is a frozen dataclass; its fields say what they may hold (`s3commit.core.model.fields`). A
document names them in camelCase. All input is untrusted: it is read whole or refused, and the
refusal names the path of the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cached_property, partial
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, get_args, get_origin
from typing import get_type_hints as hints_of

from s3commit.core.formats.strict_json import MAX_VALUES, bounded, dump, member_name, parse
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.fields import SPARSE, Name, Several, Text, Whole

VERSION = 1  # of the client's documents, and of those for readers

R = TypeVar("R")
Read = Callable[[Any], Any]
Write = Callable[[Any], Any]


class RefusedError(Exception):
    """A value that a field cannot hold; on the way up it learns its path."""

    def __init__(self, message: str, code: str = "BAD_FIELD") -> None:
        super().__init__(message)
        self.code = code
        self.path = ""

    def below(self, step: str) -> RefusedError:
        """The same one, of a value below ``step``."""
        self.path = step + self.path
        return self


class Form(NamedTuple):
    """How a value is read, and written where that is not as it is."""

    read: Read
    write: Write | None = None


class _Member(NamedTuple):
    """A member of a document, and the ``place`` of its field in the record."""

    place: int
    name: str
    read: Read
    is_required: bool


class _Plan(NamedTuple):
    """A kind of record, analysed.

    ``empty`` has what each field holds where a document has no member for it. ``names`` are those
    of ``members``, of which ``values`` gets the values; ``converted`` has a writer for those that
    need one, ``sparse`` the default of those that are left out at it.
    """

    empty: list[Any]
    members: list[_Member]
    names: list[str]
    values: Callable[[Any], tuple[Any, ...]]
    converted: list[tuple[str, Write]]
    sparse: list[tuple[str, Any]]


@dataclass(frozen=True, eq=False)
class Codec(Generic[R]):
    """Documents of one kind of record. Both directions raise `InvalidInputError`.

    ``version`` is what each must say, ``constants`` are written before the fields and not read.
    ``closed``: a member that is not known is refused, where to ignore it could break a promise.
    ``forms`` has the fields whose form their type does not tell; ``unwritten`` those that are in no
    document, with the values that a reader gives them.
    """

    kind: type[R]
    what: str = "document"
    version: int | None = None
    max_bytes: int = 256 * 1024
    most: int = MAX_VALUES
    closed: bool = False
    constants: Mapping[str, Any] = field(default_factory=dict)
    forms: Mapping[str, Form] = field(default_factory=dict)
    unwritten: Mapping[str, Any] = field(default_factory=dict)
    spell: Callable[[str], str] = member_name

    def decode(self, body: bytes) -> R:
        """Read strict JSON within the limits of the kind."""
        limits = {"max_bytes": self.max_bytes, "most": self.most}
        return self.read(parse(body, what=self.what, **limits))

    def encode(self, record: R) -> bytes:
        """The bytes of a document that `decode` does not refuse for its size."""
        body = dump(self.write(record))
        return bounded(body, what=self.what, max_bytes=self.max_bytes, most=self.most)

    def read(self, value: Any) -> R:
        """Read a parsed document; null is as good as missing."""
        try:
            return self.member(value)
        except RefusedError as refused:
            message = f"{self.what}: ${refused.path} {refused}"
            raise InvalidInputError(message, code=refused.code) from None

    def member(self, value: Any) -> R:
        """Read a part of another document. Raises `RefusedError`."""
        if type(value) is not dict:
            raise RefusedError("must be an object")
        if self.version is not None:
            said = value.get("version")
            is_number = type(said) is int  # True is 1 to Python, not to us
            if not is_number or said != self.version:
                # Only a number is shown: another value may be too deep for a text.
                shown = f", not {str(said)[:20]}" if is_number else ""
                refused = RefusedError(f"must be {self.version}{shown}", "BAD_VERSION")
                raise refused.below(".version")
        plan = self._plan
        unknown = value.keys() - {"version", *plan.names} if self.closed else ()
        if unknown:
            raise RefusedError(f"has {min(unknown)[:80]!r}, which is not known")
        found = plan.empty.copy()
        try:
            for place, name, read, is_required in plan.members:
                given = value.get(name)
                if given is not None:
                    found[place] = read(given)
                elif is_required:
                    raise RefusedError("is missing")
        except RefusedError as refused:
            raise refused.below(f".{name}") from None
        return self.kind(*found)

    def write(self, record: R) -> dict[str, Any]:
        """The document, of what JSON has."""
        plan = self._plan
        found: dict[str, Any] = {} if self.version is None else {"version": self.version}
        found |= self.constants
        found |= zip(plan.names, plan.values(record), strict=True)
        for name, default in plan.sparse:
            if found[name] == default:
                del found[name]
        for name, write in plan.converted:
            if found.get(name) is not None:
                found[name] = write(found[name])
        return found

    @cached_property
    def _plan(self) -> _Plan:
        """The kind, analysed once."""
        hints = hints_of(self.kind, include_extras=True)
        empty: list[Any] = []
        members: list[_Member] = []
        written, converted, sparse = [], [], []
        for place, one in enumerate(fields(self.kind)):  # type: ignore[arg-type]
            if one.name in self.unwritten:
                empty.append(self.unwritten[one.name])
                continue
            hint, limits = _unwrapped(hints[one.name])
            default = one.default if one.default_factory is MISSING else one.default_factory()
            if default is MISSING and NoneType in get_args(hint):
                default = None
            name = limits[Name].name if Name in limits else self.spell(one.name)
            form = self.forms.get(one.name) or _form(hint, limits, self.spell)
            empty.append(default)
            members.append(_Member(place, name, form.read, default is MISSING))
            written.append(one.name)
            if form.write:
                converted.append((name, form.write))
            if SPARSE in limits.values():
                sparse.append((name, default))
        names = [member.name for member in members]
        return _Plan(empty, members, names, _getter(written), converted, sparse)


def _getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns these attributes of a record, as a tuple."""
    if len(names) == 1:  # of one name `attrgetter` gives the value alone
        return lambda record: (getattr(record, names[0]),)
    return attrgetter(*names)


def each(form: Form, limit: Several) -> Form:
    """A list of what the form reads; a tuple in the record."""
    one, write = form
    return Form(
        partial(_several, one, limit), (lambda value: list(map(write, value))) if write else list
    )


def _several(one: Read, limit: Several, value: Any) -> tuple[Any, ...]:
    if type(value) is not list:
        raise RefusedError("must be a list")
    if not limit.least <= len(value) <= limit.most:
        raise RefusedError(f"must have {limit.least} to {limit.most} elements")
    found: list[Any] = []
    try:
        for element in value:
            found.append(one(element))
    except RefusedError as refused:
        raise refused.below(f"[{len(found)}]") from None
    return tuple(found)


def read_text(limit: Text, value: Any) -> str:
    """A text that UTF-8 can carry. Raises `RefusedError`."""
    if type(value) is not str:
        raise RefusedError("must be a string")
    if not limit.least <= len(value) <= limit.longest:
        raise RefusedError(f"must have {limit.least} to {limit.longest} characters")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RefusedError("has text that UTF-8 cannot encode") from None
    if limit.pattern is not None and not limit.pattern.fullmatch(value):
        raise RefusedError(f"is {value[:80]!r}, which does not match {limit.pattern.pattern}")
    return value


def _whole(limit: Whole, value: Any) -> int:
    if type(value) is not int:  # bool is an int to Python, not to us
        raise RefusedError("must be a whole number")
    if not limit.least <= value <= limit.most:
        raise RefusedError(f"must be from {limit.least} to {limit.most}")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise RefusedError("must be true or false")
    return value


def _choice(kind: type[StrEnum], value: Any) -> StrEnum:
    try:
        return kind(read_text(Text(), value))
    except ValueError:
        raise RefusedError(f"is {value[:80]!r}, none of {', '.join(kind)}") from None


def _unwrapped(hint: Any) -> tuple[Any, dict[Any, Any]]:
    """A type without its limits, and the limits by their kind."""
    if get_origin(hint) is not Annotated:
        return hint, {}
    kind, *limits = get_args(hint)
    return kind, dict(zip(map(type, limits), limits, strict=True))


def _form(hint: Any, limits: Mapping[Any, Any], spell: Callable[[str], str]) -> Form:
    """The form that the type of a field and its limits give."""
    hint, more = _unwrapped(hint)
    limits = {**limits, **more}
    origin, arguments = get_origin(hint), get_args(hint)
    if NoneType in arguments:
        return _form(arguments[0], limits, spell)  # it is written as "X | None"
    if hint is str:
        return Form(partial(read_text, limits.get(Text) or Text()))
    if hint is int:
        return Form(partial(_whole, limits.get(Whole) or Whole()))
    if hint is bool:
        return Form(_flag)
    if origin is tuple:
        return each(_form(arguments[0], {}, spell), limits.get(Several) or Several(100))
    if is_dataclass(hint):
        nested: Codec[Any] = Codec(hint, spell=spell)  # type: ignore[arg-type]
        return Form(nested.member, nested.write)
    if issubclass(hint, StrEnum):
        return Form(partial(_choice, hint), str)
    raise TypeError(f"no form for {hint}")
