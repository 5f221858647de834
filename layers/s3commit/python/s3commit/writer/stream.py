"""A pending upload as a binary file: written now, visible when (and if) its job is committed."""

from __future__ import annotations

import errno
import io
import threading
from concurrent.futures import Future, wait
from enum import Enum, auto
from types import TracebackType
from typing import TYPE_CHECKING

from s3commit.core.model import PendingFile
from s3commit.core.ports import UploadStarter
from s3commit.writer.environment import Environment, SystemEnvironment
from s3commit.writer.spool import PartBuffer
from s3commit.writer.transfer import Transfer
from s3commit.writer.values import (
    CAPABILITIES,
    AbortReport,
    StreamAbortedError,
    StreamClosedError,
    StreamStatistics,
    Target,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _State(Enum):
    OPEN = auto()
    SEALED = auto()  # no more writes; the last parts are on their way
    CLOSED = auto()  # all parts are in S3: the file can go into a manifest
    FAILED = auto()
    ABORTED = auto()


_LIVE = frozenset({_State.OPEN, _State.SEALED})


class PendingUpload(io.BufferedIOBase):
    """A writable binary file whose bytes go to S3 as parts and which nobody sees until commit.

    Made by `Task.open`. Opening starts the multipart upload (one request); each part is one
    more, and there are no others. Writes are copied at once and are safe from several threads.
    An error of a background part is raised by the next write or by `close`, as one of
    `s3commit.core.errors`; the upload is then aborted. A ``with`` block that ends in an exception
    aborts the file instead of closing it.

    ``rows`` may be set by the caller until the task is finished; it goes into the manifest.
    """

    def __init__(
        self,
        store: UploadStarter,
        target: Target,
        transfer: Transfer,
        *,
        rows: int | None = None,
        environment: Environment | None = None,
    ) -> None:
        super().__init__()
        self.target = target
        self.rows = rows
        self._store = store
        self._transfer = transfer
        self._environment = environment or SystemEnvironment()
        self._state = _State.OPEN
        self._error: BaseException | None = None
        self._dropped = False
        self._stop = threading.Event()
        self._writing = threading.RLock()  # held through a write, close or abort
        self._counting = threading.Lock()
        self._futures: list[Future[str]] = []
        self._etags: tuple[str, ...] = ()
        self._written = self._uploaded = self._spooled = self._saved = 0
        self._parts_uploaded = self._parts_failed = 0
        self._created = self._now()
        self._buffer = transfer.buffer(1)
        self._upload_id = store.create_upload(
            target.bucket, target.key, metadata=target.metadata, content_type=target.content_type
        )

    @property
    def name(self) -> str:
        """The URI of the file, as `open` gives a path."""
        return self.target.uri

    @property
    def mode(self) -> str:
        """Always ``wb``."""
        return "wb"

    @property
    def closed(self) -> bool:
        """Whether `close` or `abort` was called, with whatever outcome."""
        return self._state not in _LIVE

    @property
    def sealed(self) -> bool:
        """Whether `seal` was called and neither `close` nor `abort` yet."""
        return self._state is _State.SEALED

    @property
    def failed(self) -> bool:
        """Whether a write, a part or `close` failed, so that the file can not be whole."""
        return self._state is _State.FAILED or (
            self._error is not None and self._state is not _State.ABORTED
        )

    @property
    def aborted(self) -> bool:
        """Whether the stream was aborted by its caller."""
        return self._state is _State.ABORTED

    @property
    def pending(self) -> PendingFile:
        """The file as the manifest names it. Raises `StreamClosedError` unless closed well."""
        if self._state is not _State.CLOSED:
            raise StreamClosedError(f"{self.name} is {self._state.name.lower()}: not a whole file")
        target = self.target
        return PendingFile(
            bucket=target.bucket,
            key=target.key,
            upload_id=self._upload_id,
            etags=self._etags,
            length=self._written,
            job_id=target.job_id,
            task_id=target.task_id,
            attempt_id=target.attempt_id,
            rows=self.rows,
            created=self._created,
            saved=self._saved,
        )

    @property
    def statistics(self) -> StreamStatistics:
        """The counts so far; also during and after `close`."""
        with self._counting:
            return StreamStatistics(
                bytes_written=self._written,
                bytes_uploaded=self._uploaded,
                bytes_spooled=self._spooled,
                parts_submitted=len(self._futures),
                parts_uploaded=self._parts_uploaded,
                parts_failed=self._parts_failed,
            )

    def writable(self) -> bool:
        """True, as of any file opened for writing."""
        return True

    def has_capability(self, name: str) -> bool:
        """Hadoop's question, in any case; False for what is unknown, for hflush and for hsync."""
        return name.lower() in CAPABILITIES

    def tell(self) -> int:
        """How many bytes were written."""
        return self._written

    def flush(self) -> None:
        """Do nothing: bytes are durable when the stream is closed, and not before."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Copy all of ``data``, sending each part that gets full; return its length in bytes.

        Raises `StreamClosedError`; `OSError` if the file gets too large (EFBIG) or the disk is
        full; the error of a part that failed in the background. After any of these the stream can
        only be closed (which raises it again) or aborted.
        """
        with memoryview(data) as raw, raw.cast("B") as view, self._writing:
            self._check_open()
            try:
                self._take(view)
            except BaseException as error:
                self._note(error)
                raise
            return len(view)

    def seal(self) -> None:
        """Send the last part without waiting; only `close` and `abort` may follow.

        Who seals many files before closing the first waits for all of them at once, not for each
        in turn. Raises as `write` does; sealing again does nothing.
        """
        with self._writing:
            if self._state is _State.SEALED:
                return
            self._check_open()
            try:
                self._seal()
            except BaseException as error:
                self._note(error)
                raise

    def close(self) -> None:
        """Send the last part and wait for all of them; afterwards `pending` names the file.

        Only the first call does anything. If it raises (the error of a part, of a write before),
        the stream is closed all the same and the upload aborted.
        """
        with self._writing:
            if self.closed:
                return
            try:
                self._finish()
            except Exception:
                # nothing but a concurrent abort() stops an open stream
                self._give_up(_State.ABORTED if self._stop.is_set() else _State.FAILED)
                raise
            except BaseException:
                # The process is told to die: no more requests, the pipeline cleans up.
                self._state = _State.FAILED
                raise

    def abort(self) -> AbortReport:
        """Drop the file: it is never named in a manifest, and its upload is aborted.

        Safe from another thread while one writes or closes; waits for parts on their way.
        Raises nothing of S3's: dropping the parts is cleanup, and its error is in the report.
        """
        if self.closed:
            return AbortReport(already_closed=True)
        self._stop.set()
        self._transfer.wake()
        with self._writing:
            if self._state not in _LIVE:  # closed while this waited
                return AbortReport(already_closed=True)
            return AbortReport(False, self._give_up(_State.ABORTED))

    def withdraw(self) -> Exception | None:
        """Abort the upload of a file that may be closed already: its task is given up."""
        report = self.abort()
        if not report.already_closed:
            return report.any_cleanup_exception
        return self._give_up(_State.ABORTED)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        # io would close, and so finish, a file that its writer forgot: no requests from here.
        pass

    def _check_open(self) -> None:
        if self._state is not _State.OPEN or self._stop.is_set():
            state = _State.ABORTED if self._state is _State.OPEN else self._state
            raise StreamClosedError(f"write to {self.name}, which is {state.name.lower()}")

    def _take(self, view: memoryview) -> None:
        if self._written + len(view) > self._transfer.settings.parts.capacity:
            raise OSError(errno.EFBIG, "file is larger than S3's parts can hold", self.name)
        while len(view):
            self._check_open()  # an abort does not wait for the rest of a long write
            self._check_parts()
            taken = self._buffer.append(view)
            view = view[taken:]
            self._written += taken
            if len(self._buffer) == self._buffer.capacity:
                self._submit()

    def _check_parts(self) -> None:
        if self._error is not None:
            raise self._error

    def _seal(self) -> None:
        self._check_parts()
        if len(self._buffer) or not self._futures:  # an empty file is one empty part
            self._submit()
        self._state = _State.SEALED

    def _submit(self) -> None:
        number = len(self._futures) + 1
        part, self._buffer = self._buffer, self._transfer.buffer(number + 1)
        self._spooled += part.on_disk
        try:
            future = self._transfer.send(
                len(part), lambda: self._send(number, part), stopped=self._stop.is_set
            )
        except BaseException:
            part.discard()
            raise
        self._futures.append(future)

    def _send(self, number: int, part: PartBuffer) -> str:
        """Runs in a thread of the task's pool."""
        try:
            if self._stop.is_set():
                raise StreamAbortedError(f"{self.name} was aborted")
            size = len(part)
            with part.view() as body:
                etag = self._store.upload_part(
                    self.target.bucket, self.target.key, self._upload_id, number, body
                )
        except BaseException as error:
            self._note(error)
            with self._counting:
                self._parts_failed += 1
            raise
        finally:
            part.discard()
        with self._counting:
            self._parts_uploaded += 1
            self._uploaded += size
        return etag

    def _note(self, error: BaseException) -> None:
        with self._counting:
            self._error = self._error or error

    def _finish(self) -> None:
        if self._state is _State.OPEN:
            self._seal()
        self._etags = tuple(future.result() for future in self._futures)
        self._check_parts()
        self._saved = self._now()
        self._state = _State.CLOSED

    def _give_up(self, state: _State) -> Exception | None:
        self._state = state
        self._stop.set()
        self._transfer.wake()
        wait(self._futures)  # a part that arrives after the abort would be paid for
        self._buffer.discard()
        if self._dropped:
            return None
        try:
            self._store.abort_upload(self.target.bucket, self.target.key, self._upload_id)
        except Exception as error:
            return error
        self._dropped = True
        return None

    def _now(self) -> int:
        return int(self._environment.epoch() * 1000)
