"""Where a pending upload goes, and the attempt that writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, JobDirectory

DEFAULT_CONTENT_TYPE: Final = "application/octet-stream"


class StreamClosedError(OSError, ValueError):
    """A write to a stream that is closed, failed or aborted; it names the path.

    An `OSError` because the write failed, a `ValueError` because that is what `io` raises here.
    """


@dataclass(frozen=True, slots=True)
class Target:
    """Where the bytes go, and the attempt that writes them."""

    directory: JobDirectory
    key: str
    task_id: str
    attempt_id: str
    content_type: str = DEFAULT_CONTENT_TYPE

    @property
    def bucket(self) -> str:
        """The bucket of job and file."""
        return self.directory.bucket

    @property
    def uri(self) -> str:
        """The target as people write it."""
        return f"s3://{self.bucket}/{self.key}"

    @property
    def metadata(self) -> dict[str, str]:
        """The object's metadata about its maker."""
        return {
            META_JOB: self.directory.job_id,
            META_TASK: self.task_id,
            META_ATTEMPT: self.attempt_id,
        }
