"""Numbers and moments as people read and write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from s3commit.core.formats.strict_json import member_name
from s3commit.core.model import amounts

amount, many, size = amounts.amount, amounts.many, amounts.size  # of whatever part says them

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGE = re.compile(r"(\d{1,6})([smhdw])", re.ASCII)


def parse_age(text: str) -> int:
    """``90s``, ``15m``, ``12h``, ``2d`` or ``1w`` in seconds. Raises `ValueError`."""
    found = _AGE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is no age: give a number with s, m, h, d or w, like 2d")
    return int(found[1]) * _SECONDS[found[2]]


def age(seconds: float) -> str:
    """The two largest units: ``2d 3h``, ``5m 10s``, ``0s``."""
    left = max(0, int(seconds))
    words: list[str] = []
    for unit in ("d", "h", "m", "s"):
        count, left = divmod(left, _SECONDS[unit])
        if count or words:
            words.append(f"{count}{unit}" if count else "")
        if len(words) == 2:
            break
    return " ".join(filter(None, words)) or "0s"


def number(count: int | None) -> str:
    """The number, or ``-`` for what is not known."""
    return "-" if count is None else str(count)


def moment(text: str | None) -> str:
    """RFC 3339 to the second, in UTC, as it stands: ``2026-11-21 22:07:22``."""
    return text[:19].replace("T", " ") if text else "-"


def epoch_of(text: str) -> float:
    """RFC 3339 as seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def one_line(text: str) -> str:
    """The text on one line, with nothing in it that moves a terminal's cursor."""
    return printable(" ".join(text.split()))


def printable(text: str) -> str:
    """The text with its control characters spelled out: keys are made by others."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def some(names: Iterable[str], shown: int = 3) -> str:
    """The first names in their order, and how many more there are."""
    found = sorted(names)
    more = f" and {len(found) - shown} more" if len(found) > shown else ""
    return ", ".join(found[:shown]) + more


def fields(thing: object, *names: str) -> dict[str, Any]:
    """The named attributes for programs, as JSON spells them: ``job_id`` is ``jobId``.

    All are null where there is no thing.
    """
    return {member_name(name): thing if thing is None else getattr(thing, name) for name in names}
