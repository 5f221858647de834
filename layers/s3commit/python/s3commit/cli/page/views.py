"""What each of the page's views shows, as the commands' documents say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from s3commit.cli.page.jobs import list_jobs, whose
from s3commit.cli.session import Session
from s3commit.core.formats.layout import parse_destination
from s3commit.core.model.job import Destination
from s3commit.core.model.states import JobState


class Views:
    """A method for each view; it takes what stands behind the address's ``?``.

    ``ended`` says that nothing will change any more.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._whose = whose(session)

    def jobs(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """The jobs of all tables, or of one and below it."""
        named, state, who = (asked.get(name, "").strip() for name in ("table", "state", "who"))
        states = [one for one in JobState if state in {"", one.value}]
        found = list_jobs(
            self._session,
            self._whose,
            _place(named),
            states,
            before=asked.get("before", ""),
            who=who,
        )
        alarming = sum(job["attention"] for job in found["jobs"])
        filters = {"table": named, "state": state, "who": who}
        found["trouble"] = found.pop("problems")
        return {
            **found,
            "alarming": alarming,
            "filters": filters,
            "states": [*JobState],
            "ended": False,
        }


def _place(text: str) -> Destination | None:
    return parse_destination(text) if text else None
