"""Moments: RFC 3339 in UTC, with milliseconds."""

from datetime import datetime, timedelta


def rfc3339(moment: datetime) -> str:
    """A moment in UTC, in the form of `Clock.now`."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shifted(moment: str, seconds: float) -> str:
    """A moment so many seconds later, in the form of `Clock.now`."""
    return rfc3339(datetime.fromisoformat(moment) + timedelta(seconds=seconds))


def seconds(earlier: str, later: str) -> float:
    """The seconds between two moments, RFC 3339."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
