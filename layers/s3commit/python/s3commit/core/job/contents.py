"""What lies in a job directory, by its listing: what the sweep and fsck go by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from s3commit.core.formats.hadoop import PENDING_SUFFIX
from s3commit.core.formats.layout import PENDINGSET_SUFFIX, JobDirectory
from s3commit.core.ports.objects import ListedObject

S3A_MANIFESTS: Final = 100  # of one job, to say how much it left
S3A_BYTES: Final = 64 * 2**20


@dataclass(slots=True)
class S3aContents:
    """The objects of one job of S3A's; constant in size, however many they are.

    ``manifests`` are the first ones, to be read; ``bytes`` is their size. ``is_all`` is False where
    there are more.
    """

    objects: int = 0
    newest: str = ""
    manifests: list[str] = field(default_factory=list)
    bytes: int = 0
    is_all: bool = True

    def add(self, listed: ListedObject) -> None:
        """Take one object of a listing in."""
        self.objects += 1
        self.newest = max(self.newest, listed.modified)
        is_manifest = listed.key.endswith((PENDINGSET_SUFFIX, PENDING_SUFFIX))
        if not is_manifest:
            return
        if len(self.manifests) < S3A_MANIFESTS and self.bytes + listed.length <= S3A_BYTES:
            self.manifests.append(listed.key)
            self.bytes += listed.length
        else:
            self.is_all = False


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
    of_s3a: S3aContents = field(default_factory=S3aContents)
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
        elif listed.key.startswith(directory.scratch):
            self.scratch += 1
            self.scratch_bytes += listed.length
        if listed.key.startswith(directory.s3a) and listed.key != directory.s3a:
            self.of_s3a.add(listed)
        self.oldest = min(self.oldest or listed.modified, listed.modified)
        self.newest = max(self.newest, listed.modified)
        self.last = listed.key

    @property
    def own(self) -> tuple[ListedObject, ...]:
        """The protocol's three objects, as far as they are there; the result comes last."""
        return tuple(filter(None, (self.job, self.request, self.result)))
