"""Moments: RFC 3339 in UTC, with milliseconds."""

import re
from datetime import datetime, timedelta
from typing import Final

_UTC: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z")
_FIRST_YEAR: Final = 1970


def rfc3339(moment: datetime) -> str:
    """A moment in UTC, in the form of `Clock.now`."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_moment(text: str) -> str:
    """A client's text as a moment in the form of `Clock.now`; empty if it is none.

    A client may put any text at the place of a time: whoever reckons with one reads it so first. A
    leap second is none here, as to Python, and so is a moment before 1970.
    """
    try:
        found = datetime.fromisoformat(text) if _UTC.fullmatch(text) else None
    except ValueError:
        return ""
    return rfc3339(found) if found and found.year >= _FIRST_YEAR else ""


def shifted(moment: str, seconds: float) -> str:
    """A moment so many seconds later, in the form of `Clock.now`."""
    return rfc3339(datetime.fromisoformat(moment) + timedelta(seconds=seconds))


def seconds(earlier: str, later: str) -> float:
    """The seconds between two moments, RFC 3339."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
