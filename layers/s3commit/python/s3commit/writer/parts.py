"""The parts of one upload: filled by the writer, sent by the task's threads."""

from __future__ import annotations

import errno
import threading
from concurrent.futures import Future, wait

from s3commit.core.ports import UploadStarter
from s3commit.writer.spool import PartBuffer
from s3commit.writer.transfer import Transfer
from s3commit.writer.values import StreamAbortedError, StreamClosedError, StreamStatistics, Target


class Parts:
    """Cuts bytes into parts, sends them in the background, remembers etags and the first error.

    One thread at a time may call `take`, `seal`, `etags` and `drop` (the stream holds a lock);
    `stop` and `statistics` are for any thread. Making it starts the upload: one request.
    """

    def __init__(self, store: UploadStarter, target: Target, transfer: Transfer) -> None:
        self.error: BaseException | None = None
        self.stopped = threading.Event()
        self._store = store
        self._target = target
        self._transfer = transfer
        self._futures: list[Future[str]] = []
        self._counting = threading.Lock()
        self._taken = self._uploaded = self._spooled = 0
        self._done = self._failed = 0
        self._dropped = False
        self._buffer = transfer.buffer(1)
        self.upload_id = store.create_upload(
            target.bucket, target.key, metadata=target.metadata, content_type=target.content_type
        )

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
                bytes_spooled=self._spooled,
                parts_submitted=len(self._futures),
                parts_uploaded=self._done,
                parts_failed=self._failed,
            )

    def take(self, view: memoryview) -> None:
        """Copy all bytes, and send each part that gets full.

        Raises `OSError` (EFBIG, or of the spool), the error of a part, and `StreamClosedError`
        when stopped: an abort does not wait for the rest of a long write.
        """
        try:
            self._check_room(len(view))
            while len(view):
                if self.stopped.is_set():
                    raise StreamClosedError(f"write to {self._target.uri}, which is aborted")
                self._raise_error()
                taken = self._buffer.append(view)
                view = view[taken:]
                self._taken += taken
                if len(self._buffer) == self._buffer.capacity:
                    self._submit()
        except BaseException as error:
            self._note(error)
            raise

    def seal(self) -> None:
        """Send what is left; a file without any bytes is one empty part."""
        self._raise_error()
        try:
            if len(self._buffer) or not self._futures:
                self._submit()
        except BaseException as error:
            self._note(error)
            raise

    def etags(self) -> tuple[str, ...]:
        """Wait for all parts; their etags in order. Raises the error of a part."""
        etags = tuple(future.result() for future in self._futures)
        self._raise_error()
        return etags

    def stop(self) -> None:
        """Send nothing more; a writer that waits for room goes on at once."""
        self.stopped.set()
        self._transfer.wake()

    def drop(self) -> Exception | None:
        """Abort the upload once no part is on its way; return what S3 had against it."""
        self.stop()
        wait(self._futures)  # a part that arrives after the abort would be paid for
        self._buffer.discard()
        if self._dropped:
            return None
        try:
            self._store.abort_upload(self._target.bucket, self._target.key, self.upload_id)
        except Exception as error:
            return error
        self._dropped = True
        return None

    def _submit(self) -> None:
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
            self._note(error)
            with self._counting:
                self._failed += 1
            raise
        else:
            with self._counting:
                self._done += 1
                self._uploaded += len(part)
                self._spooled += part.on_disk
            return etag
        finally:
            part.discard()

    def _check_room(self, size: int) -> None:
        if self._taken + size > self._transfer.settings.parts.capacity:
            what = "file is larger than S3's parts can hold"
            raise OSError(errno.EFBIG, what, self._target.uri)

    def _raise_error(self) -> None:
        if self.error is not None:
            raise self.error

    def _note(self, error: BaseException) -> None:
        with self._counting:
            self.error = self.error or error
