"""Times of day in directory names: text in the session's time zone, as Spark has it."""

from __future__ import annotations

import datetime as dt
import functools
import os
import re
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyspark import TaskContext

from s3commit.core.model.errors import InvalidInputError

SESSION_ZONE: Final = "spark.sql.session.timeZone"

_OFFSET: Final = re.compile(
    r"Z|UT|(?:GMT|UTC|UT)?(?P<sign>[+-])(?P<hours>\d\d?):?(?P<minutes>\d\d)"
)
# What Spark casts to a timestamp; the time may be missing, and so may the zone.
_MOMENT: Final = re.compile(
    r"(?P<year>\d{4})(?:-(?P<month>\d\d?)(?:-(?P<day>\d\d?)"
    r"(?:[ T](?P<hour>\d\d?):(?P<minute>\d\d?)(?::(?P<second>\d\d?)(?:\.(?P<fraction>\d{0,9}))?)?"
    r"\s*(?P<zone>[A-Za-z+-][\w/:+-]*)?)?)?)?",
    re.ASCII,
)
_EPOCH: Final = dt.datetime(1970, 1, 1)  # of wall clocks


def session_zone() -> dt.tzinfo:
    """The time zone of the session that runs this task; else of this machine, as for Java.

    Raises `InvalidInputError` (``BAD_ZONE``) for a zone that Python does not know.
    """
    context = TaskContext.get()
    name = context.getLocalProperty(SESSION_ZONE) if context else None
    return zone(name or _machine_zone())


@functools.lru_cache(maxsize=64)
def zone(name: str) -> dt.tzinfo:
    """``Europe/Berlin``, ``+02:00``, ``GMT+02:00``, ``UTC``. Raises `InvalidInputError`."""
    offset = _OFFSET.fullmatch(name)
    if offset:
        minutes = int(offset["hours"] or 0) * 60 + int(offset["minutes"] or 0)
        return dt.timezone(dt.timedelta(minutes=-minutes if offset["sign"] == "-" else minutes))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidInputError(
            f"the time zone {name[:80]!r} is not known here: set {SESSION_ZONE} to UTC or to a"
            " region such as Europe/Berlin, and see that the machine has its tzdata",
            code="BAD_ZONE",
        ) from error


def _machine_zone() -> str:
    linked = os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    return os.environ.get("TZ") or linked or "UTC"


def microseconds(text: str, zone_of_text: dt.tzinfo | None) -> int:
    """The moment as microseconds since 1970 in UTC; of the wall clock itself without a zone.

    A time that a change of clocks skips is as much later, one that comes twice is the first, as in
    Java. Raises `ValueError` for what is no time.
    """
    found = _MOMENT.fullmatch(text.strip())
    if not found:
        raise ValueError(text)
    year, month, day = (int(found[name] or 1) for name in ("year", "month", "day"))
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    wall = dt.datetime(year, month, day, hour, minute, second)
    fraction = int((found["fraction"] or "").ljust(6, "0")[:6] or 0)
    total = (wall - _EPOCH) // dt.timedelta(microseconds=1) + fraction
    if zone_of_text is None:
        return total
    own = zone(found["zone"]) if found["zone"] else zone_of_text
    offset = own.utcoffset(wall.replace(tzinfo=own)) or dt.timedelta()
    return total - offset // dt.timedelta(microseconds=1)
