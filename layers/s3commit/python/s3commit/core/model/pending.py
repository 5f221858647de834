"""The pending uploads of a task attempt, as its manifest has them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PendingFile:
    """One pending upload: Hadoop's SinglePendingCommit, version 2.

    ``etags[i]`` is the etag of part i+1, as S3 returned it. ``length`` is in bytes, ``created``
    and ``saved`` in milliseconds since 1970. ``rows`` is None where the writer did not count.
    """

    bucket: str
    key: str
    upload_id: str
    etags: tuple[str, ...]
    length: int
    job_id: str = ""
    task_id: str = ""
    attempt_id: str = ""
    rows: int | None = None
    uri: str = ""
    created: int = 0
    saved: int = 0
    text: str = ""
    extra: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PendingSet:
    """The manifest of one task attempt: Hadoop's PendingSet, version 3.

    ``task_count`` is how many tasks of the job have files; None if the writer did not know.
    """

    job_id: str
    files: tuple[PendingFile, ...]
    task_id: str = ""
    attempt_id: str = ""
    task_count: int | None = None

    @property
    def bytes(self) -> int:
        """The bytes of all files together."""
        return sum(file.length for file in self.files)

    @property
    def rows(self) -> int | None:
        """The rows of all files together, or None if one of them was not counted."""
        counts = [file.rows for file in self.files]
        return None if None in counts else sum(count for count in counts if count is not None)
