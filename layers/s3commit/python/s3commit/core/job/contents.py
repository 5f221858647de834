"""What lies in a job directory, by its listing: what the sweep and fsck go by."""

from __future__ import annotations

from dataclasses import dataclass

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.ports.objects import ListedObject


@dataclass(slots=True)
class Contents:
    """What lies in a job directory; constant in size, however much that is.

    ``is_all`` is False where there is more: then ``newest`` may be wrong.
    """

    job: ListedObject | None = None
    request: ListedObject | None = None
    result: ListedObject | None = None
    scratch: int = 0
    scratch_bytes: int = 0
    oldest: str = ""
    newest: str = ""
    last: str = ""
    is_all: bool = True

    def add(self, directory: JobDirectory, listed: ListedObject) -> None:
        """Take one object of the directory's listing in, which comes in the order of keys."""
        if listed.key == directory.job:
            self.job = listed
        elif listed.key == directory.request:
            self.request = listed
        elif listed.key == directory.result:
            self.result = listed
        elif listed.key.startswith(directory.tasks):
            self.scratch += 1
            self.scratch_bytes += listed.length
        self.oldest = min(self.oldest or listed.modified, listed.modified)
        self.newest = max(self.newest, listed.modified)
        self.last = listed.key

    @property
    def own(self) -> tuple[ListedObject, ...]:
        """The protocol's three objects, as far as they are there; the result comes last."""
        return tuple(filter(None, (self.job, self.request, self.result)))
