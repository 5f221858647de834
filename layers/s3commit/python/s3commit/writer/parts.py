"""The parts of one upload: cut from what is written, sent by the task's threads."""

from __future__ import annotations

import errno
import threading
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Final

from s3commit.core.formats.layout import META_ATTEMPT, META_JOB, META_TASK, JobDirectory
from s3commit.core.model.errors import S3CommitError
from s3commit.core.ports.objects import UploadStarter
from s3commit.writer.transfer import PartBuffer, Transfer

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


class Parts:
    """Cuts bytes into parts, sends them in the background, remembers etags and the first error.

    One thread at a time may call `start`, `take`, `seal`, `etags` and `drop` (the stream holds a
    lock); `stop`, `note` and `statistics` are for any thread.
    """

    def __init__(
        self,
        store: UploadStarter,
        target: Target,
        transfer: Transfer,
    ) -> None:
        self.error: BaseException | None = None
        self.stopped = threading.Event()
        self.upload_id = ""
        self._store = store
        self._target = target
        self._transfer = transfer
        self._futures: list[Future[str]] = []
        self._counting = threading.Lock()
        self._taken = self._uploaded = 0
        self._done = self._failed = 0
        self._dropped = False
        self._buffer = transfer.buffer(1)

    @property
    def length(self) -> int:
        """The bytes taken so far."""
        return self._taken

    @property
    def statistics(self) -> StreamStatistics:
        """The counts so far."""
        with self._counting:
            return StreamStatistics(
                bytes_written=self._taken,
                bytes_uploaded=self._uploaded,
                parts_submitted=len(self._futures),
                parts_uploaded=self._done,
                parts_failed=self._failed,
            )

    def start(self) -> None:
        """Start the upload: one request. Raises its error."""
        target = self._target
        try:
            self.upload_id = self._store.create_upload(
                target.bucket,
                target.key,
                metadata=target.metadata,
                content_type=target.content_type,
            )
        except BaseException as error:
            self.note(error)
            raise

    def take(self, view: memoryview) -> None:
        """Copy all bytes, and send each part that gets full.

        Raises `OSError` (EFBIG), the error of a part, and `StreamClosedError`
        when stopped: an abort does not wait for the rest of a long write.
        """
        try:
            if self._taken + len(view) > self._transfer.settings.parts.capacity:
                what = "file is larger than S3's parts can hold"
                raise OSError(errno.EFBIG, what, self._target.uri)
            while len(view):
                if self.stopped.is_set():
                    raise StreamClosedError(f"write to {self._target.uri}, which is aborted")
                self.raise_error()
                taken = self._buffer.append(view)
                view = view[taken:]
                self._taken += taken
                if len(self._buffer) == self._buffer.capacity:
                    self._submit_buffer()
        except BaseException as error:
            self.note(error)
            raise

    def seal(self) -> None:
        """Send what is left; a file without any bytes is one empty part."""
        self.raise_error()
        try:
            if len(self._buffer) or not self._futures:
                self._submit_buffer()
        except BaseException as error:
            self.note(error)
            raise

    def etags(self) -> tuple[str, ...]:
        """Wait for all parts; their etags in order. Raises the error of a part."""
        etags = tuple(future.result() for future in self._futures)
        self.raise_error()
        return etags

    def stop(self) -> None:
        """Send nothing more; a writer that waits for room stops waiting at once."""
        self.stopped.set()
        self._transfer.wake()

    def drop(self) -> Exception | None:
        """Abort the upload once no part is on its way; return the error of S3 if it refuses."""
        self.stop()
        wait(self._futures)  # a part that arrives after the abort would be paid for
        self._buffer.discard()
        if self._dropped or not self.upload_id:
            return None
        try:
            self._store.abort_upload(self._target.bucket, self._target.key, self.upload_id)
        except Exception as error:
            return error
        self._dropped = True
        return None

    def raise_error(self) -> None:
        """Raise the first error that was noted, if any."""
        if self.error is not None:
            raise self.error

    def note(self, error: BaseException) -> None:
        """Remember ``error``, unless there was one before: the file can't be whole any more."""
        with self._counting:
            self.error = self.error or error

    def _submit_buffer(self) -> None:
        number = len(self._futures) + 1
        part, self._buffer = self._buffer, self._transfer.buffer(number + 1)
        try:
            future = self._transfer.send(
                len(part), lambda: self._send(number, part), stopped=self.stopped.is_set
            )
        except BaseException:
            part.discard()
            raise
        self._futures.append(future)

    def _send(self, number: int, part: PartBuffer) -> str:
        """Runs in a thread of the task."""
        try:
            if self.stopped.is_set():
                raise StreamAbortedError(f"{self._target.uri} was aborted")
            with part.view() as body:
                etag = self._store.upload_part(
                    self._target.bucket, self._target.key, self.upload_id, number, body
                )
        except BaseException as error:
            self.note(error)
            with self._counting:
                self._failed += 1
            raise
        else:
            with self._counting:
                self._done += 1
                self._uploaded += len(part)
            return etag
        finally:
            part.discard()
