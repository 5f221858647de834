"""Where a pending upload goes, what it counts, and how it ends: the values of `PendingUpload`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, JobDirectory
from s3commit.core.model.errors import S3CommitError

DEFAULT_CONTENT_TYPE: Final = "application/octet-stream"


class StreamClosedError(OSError, ValueError):
    """A write to a stream that is closed, failed or aborted; it names the path.

    An `OSError` because the write failed, a `ValueError` because that is what `io` raises here.
    """


class StreamAbortedError(S3CommitError):
    """The stream was aborted while it was being closed; the file is not part of the task."""

    code = "STREAM_ABORTED"


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
        """What the object says of its maker."""
        return {
            META_JOB: self.directory.job_id,
            META_TASK: self.task_id,
            META_ATTEMPT: self.attempt_id,
        }


@dataclass(frozen=True, slots=True)
class AbortReport:
    """The outcome of `PendingUpload.abort`.

    ``already_closed``: the stream was closed, failed or aborted before; nothing was done.
    ``any_cleanup_exception``: S3 refused to drop the parts. The file still never gets visible;
    the pipeline drops them when the job ends.
    """

    already_closed: bool
    any_cleanup_exception: Exception | None = None


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """Counts of one stream, in bytes and parts; readable at any time, from any thread."""

    bytes_written: int
    bytes_uploaded: int
    parts_submitted: int
    parts_uploaded: int
    parts_failed: int

    @property
    def counters(self) -> dict[str, int]:
        """The counts under Hadoop's names (IOStatistics, StreamStatisticNames)."""
        return {
            "stream_write_bytes": self.bytes_written,
            "stream_write_total_data": self.bytes_uploaded,
            "stream_write_block_uploads": self.parts_submitted,
            "stream_write_exceptions": self.parts_failed,
        }
