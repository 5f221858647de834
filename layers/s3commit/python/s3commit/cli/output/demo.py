"""What the demo shows while it runs: chapters, timings, and a reader who looks on."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from s3commit.cli.session import Session
from s3commit.core.formats.layout import is_hidden, parse_destination

if TYPE_CHECKING:
    from s3commit.local.server import LocalRuntime

LOOK_SECONDS = 0.25
LINE_SECONDS = 5.0  # a line at least this often, so that one sees that it lives
WIDTH = 62


class Story:
    """Prints to stdout; bold where it is a terminal."""

    def __init__(self, pace: float) -> None:
        self._pace = pace
        self._number = 0
        self._bold = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")

    def title(self, text: str) -> None:
        """The first line."""
        self.line(f"{self._bold[0]}{text}{self._bold[1]}")

    def chapter(self, text: str) -> None:
        """A numbered heading."""
        if self._number:
            time.sleep(self._pace)
        self._number += 1
        self.line(f"\n{self._bold[0]}{self._number}. {text}{self._bold[1]}")

    def line(self, text: str = "") -> None:
        """A line, at once."""
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """A line that says what is being done, and then how long it took."""
        sys.stdout.write(f"   {what} ".ljust(WIDTH, "."))
        sys.stdout.flush()
        begun = time.monotonic()
        yield
        self.line(f" {time.monotonic() - begun:5.1f} s")


class Reader:
    """A reader of the destination: it prints what it sees whenever that changes."""

    def __init__(self, story: Story, session: Session, destination: str) -> None:
        self._story = story
        self._directory = parse_destination(destination)
        self._store = session.store
        self._begun = time.monotonic()
        self._last: tuple[int, int] | None = None
        self._said = 0.0
        self.most_pending = 0

    def look(self) -> tuple[int, int]:
        """How many data files are visible, and how many uploads are pending."""
        bucket, prefix = self._directory.bucket, self._directory.prefix
        keys = [listed.key[len(prefix) :] for listed in self._store.list(bucket, prefix)]
        pending = sum(1 for _ in self._store.list_uploads(bucket, prefix))
        return len(keys) - sum(map(is_hidden, keys)), pending

    def report(self, *, force: bool) -> None:
        """Look, and print what is seen if it is due."""
        seen = self.look()
        self.most_pending = max(self.most_pending, seen[1])
        elapsed = time.monotonic() - self._begun
        due = elapsed - self._said >= LINE_SECONDS
        grown = (
            self._last is None or seen[0] != self._last[0] or (not seen[1]) != (not self._last[1])
        )
        if force or grown or (due and seen != self._last):
            self._story.line(f"    {elapsed:7.1f}   {seen[0]:19,}   {seen[1]:15,}")
            self._last, self._said = seen, elapsed


@contextmanager
def reading(story: Story, session: Session, destination: str) -> Iterator[Reader]:
    """A reader who looks on in a thread."""
    reader, stop = Reader(story, session, destination), threading.Event()

    def look_on() -> None:
        while not stop.wait(LOOK_SECONDS):
            reader.report(force=False)

    story.line("    seconds   files a reader sees   pending uploads")
    thread = threading.Thread(target=look_on, name="reader", daemon=True)
    thread.start()
    try:
        yield reader
    finally:
        stop.set()
        thread.join()
        reader.report(force=True)


def states_of(runtime: LocalRuntime, execution: str) -> list[tuple[str, float]]:
    """The states that an execution has entered, each with the seconds since its start."""
    client = runtime.client("stepfunctions")
    events = client.get_execution_history(executionArn=execution)["events"]
    start = events[0]["timestamp"]
    return [
        (event["stateEnteredEventDetails"]["name"], (event["timestamp"] - start).total_seconds())
        for event in events
        if "stateEnteredEventDetails" in event
    ]
