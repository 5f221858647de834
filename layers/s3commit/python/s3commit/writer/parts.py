"""The parts of one upload: cut from what the writer gives, sent by the task's threads."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait

from s3commit.core.ports.objects import UploadStarter
from s3commit.writer.disk import FilePart
from s3commit.writer.spool import PartBuffer
from s3commit.writer.transfer import Transfer
from s3commit.writer.values import StreamAbortedError, StreamClosedError, StreamStatistics, Target


class Parts:
    """Cuts bytes into parts, sends them in the background, remembers etags and the first error.

    One thread at a time may call `start`, `take`, `take_file`, `seal`, `etags` and `drop` (the
    stream holds a lock); `stop`, `note` and `statistics` are for any thread. ``announce`` is
    called with the upload's id before the first part is sent.
    """

    def __init__(
        self,
        store: UploadStarter,
        target: Target,
        transfer: Transfer,
        announce: Callable[[str], object] | None = None,
    ) -> None:
        self.error: BaseException | None = None
        self.stopped = threading.Event()
        self.upload_id = ""
        self._store = store
        self._target = target
        self._transfer = transfer
        self._announce = announce
        self._futures: list[Future[str]] = []
        self._counting = threading.Lock()
        self._taken = self._uploaded = self._spooled = 0
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
                bytes_spooled=self._spooled,
                parts_submitted=len(self._futures),
                parts_uploaded=self._done,
                parts_failed=self._failed,
            )

    def start(self) -> None:
        """Start the upload: one request. Raises its error, and the announcement's."""
        target = self._target
        try:
            self.upload_id = self._store.create_upload(
                target.bucket,
                target.key,
                metadata=target.metadata,
                content_type=target.content_type,
            )
            if self._announce is not None:
                self._announce(self.upload_id)
        except BaseException as error:
            self.note(error)
            raise

    def take(self, view: memoryview) -> None:
        """Copy all bytes, and send each part that gets full.

        Raises `OSError` (EFBIG, or of the spool), the error of a part, and `StreamClosedError`
        when stopped: an abort does not wait for the rest of a long write.
        """
        try:
            self.check_room(self._taken + len(view))
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

    def take_file(self, descriptor: int, length: int) -> None:
        """Send a whole file's bytes; it must stay open until `etags` or `drop` returns."""
        try:
            while self._taken < length:
                self.raise_error()
                if self.stopped.is_set():
                    raise StreamAbortedError(f"{self._target.uri} was aborted")
                size = self._transfer.settings.parts.size(len(self._futures) + 1)
                part = FilePart(descriptor, self._taken, min(size, length - self._taken))
                self._submit(part)
                self._taken += part.size
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
        """Send nothing more; a writer that waits for room goes on at once."""
        self.stopped.set()
        self._transfer.wake()

    def drop(self) -> Exception | None:
        """Abort the upload once no part is on its way; return what S3 had against it."""
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

    def check_room(self, length: int) -> None:
        """Raise `OSError` (EFBIG) if a file of ``length`` bytes is more than S3 takes."""
        if length > self._transfer.settings.parts.capacity:
            what = "file is larger than S3's parts can hold"
            raise OSError(errno.EFBIG, what, self._target.uri)

    def raise_error(self) -> None:
        """Raise the first error that was noted, if any."""
        if self.error is not None:
            raise self.error

    def note(self, error: BaseException) -> None:
        """The file can't be whole any more, because of ``error``; the first one stays."""
        with self._counting:
            self.error = self.error or error

    def _submit_buffer(self) -> None:
        part, self._buffer = self._buffer, self._transfer.buffer(len(self._futures) + 2)
        self._submit(part)

    def _submit(self, part: PartBuffer | FilePart) -> None:
        number = len(self._futures) + 1
        try:
            future = self._transfer.send(
                len(part), lambda: self._send(number, part), stopped=self.stopped.is_set
            )
        except BaseException:
            part.discard()
            raise
        self._futures.append(future)

    def _send(self, number: int, part: PartBuffer | FilePart) -> str:
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
                self._spooled += part.on_disk
            return etag
        finally:
            part.discard()
