"""The small values of a stream: its target, its counts, its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from s3commit.core.model.errors import S3CommitError

DEFAULT_CONTENT_TYPE: Final = "application/octet-stream"

# Hadoop's names for what a stream can do (S3ABlockOutputStream.hasCapability).
CAPABILITIES: Final = frozenset(
    {
        "fs.capability.outputstream.abortable",
        "fs.capability.iocontext.supported",
        "iostatistics",
        "fs.s3a.capability.magic.output.stream",
        "s3a:magic.output.stream",
    }
)
# Ours: the file lies on local disk until it is whole, and can be read and sought in.
STAGED_CAPABILITY: Final = "fs.s3commit.capability.staged"


class StreamClosedError(OSError, ValueError):
    """A write to a stream that is closed, failed or aborted; it names the path.

    An `OSError` because the write failed, a `ValueError` because that is what `io` raises here.
    """


class StreamAbortedError(S3CommitError):
    """The stream was aborted while it was being closed; the file is not part of the task."""

    code = "STREAM_ABORTED"


@dataclass(frozen=True, slots=True)
class Target:
    """Where the bytes go, and what is said of their maker."""

    bucket: str
    key: str
    metadata: dict[str, str]
    content_type: str = DEFAULT_CONTENT_TYPE
    job_id: str = ""
    task_id: str = ""
    attempt_id: str = ""

    @property
    def uri(self) -> str:
        """The target as people write it."""
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True, slots=True)
class AbortReport:
    """What `PendingUpload.abort` found and could not do.

    ``already_closed``: the stream was closed, failed or aborted before; nothing was done.
    ``any_cleanup_exception``: S3 refused to drop the parts. The file still never gets visible;
    the pipeline drops them when the job ends.
    """

    already_closed: bool
    any_cleanup_exception: Exception | None = None


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """Counts of one stream, in bytes and parts; readable at any time, from any thread.

    ``bytes_written`` counts what the caller wrote, also over what it wrote before.
    """

    bytes_written: int
    bytes_uploaded: int
    bytes_spooled: int
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
