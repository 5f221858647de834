"""What a program says to `open_job`, over what its configuration says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from s3commit.core.formats.documents import MAX_KEY_CHARACTERS
from s3commit.core.model.conditions import Conditions, decode_conditions
from s3commit.core.model.errors import InvalidInputError
from s3commit.core.model.job import Conflict, Names, Scope
from s3commit.writer.options import DEFAULT_COMMIT_TIMEOUT, parse_duration, parse_scope

Choice = TypeVar("Choice", Conflict, Scope, Names)


def conflict_of(conflict: str | None, chosen: Mapping[str, str]) -> Conflict:
    """What to do about what is there; append, if neither says. Raises `InvalidInputError`."""
    if conflict is None:
        return Conflict(chosen.get("conflict", Conflict.APPEND))
    return choice(Conflict, conflict, "conflict")


def scope_of(scope: str | None, chosen: Mapping[str, str]) -> Scope:
    """How far that reaches; to the directory, if neither says. Raises `InvalidInputError`."""
    if scope is not None:
        return choice(Scope, scope, "scope")
    return parse_scope("partitionOverwriteMode", chosen.get("partitionOverwriteMode", "static"))


def timeout_of(chosen: Mapping[str, str]) -> float:
    """How many seconds to wait for a result, as the configuration says."""
    if "commitTimeout" in chosen:
        return parse_duration("commitTimeout", chosen["commitTimeout"])
    return DEFAULT_COMMIT_TIMEOUT


def choice(kind: type[Choice], value: str, what: str) -> Choice:
    """The member of the enumeration. Raises `InvalidInputError` (``BAD_OPTION``)."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(repr(str(one)) for one in kind)
        raise InvalidInputError(f"{what}={value!r} is none of {known}", code="BAD_OPTION") from None


def conditions_said(given: Conditions | Mapping[str, Any]) -> Conditions:
    """The conditions, given as such or as in ``job.json``. Raises `InvalidInputError`."""
    return given if isinstance(given, Conditions) else decode_conditions(given)


def key_said(key: str | None) -> str | None:
    """The idempotency key, if it is one. Raises `InvalidInputError` (``BAD_OPTION``)."""
    if key is not None and not 1 <= len(key) <= MAX_KEY_CHARACTERS:
        raise InvalidInputError(
            f"idempotency_key has {len(key)} characters, not 1 to {MAX_KEY_CHARACTERS}",
            code="BAD_OPTION",
        )
    return key
