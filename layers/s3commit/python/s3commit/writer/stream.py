"""A pending upload as a binary file: written now, visible when (and if) its job is committed."""

from __future__ import annotations

import io
import threading
from enum import Enum, auto
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar

from s3commit.core.model.job import PendingFile
from s3commit.core.ports.objects import UploadStarter
from s3commit.writer.environment import Environment
from s3commit.writer.parts import AbortReport, Parts, StreamClosedError, StreamStatistics, Target
from s3commit.writer.transfer import Transfer

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
    """A writable binary file that stays invisible until its job is committed.

    Made by `Task.open`, which starts the multipart upload: one request, then one a part, and no
    others. Written bytes are copied at once and go to S3 as parts while more are written; they can
    neither be read back nor written over. Writes are safe from several threads. An error of a
    background part is raised by the next write or by `close`, as one of
    `s3commit.core.model.errors`; the upload is then aborted. A ``with`` block that ends in an
    exception aborts the file instead of closing it.

    ``rows`` may be set by the caller until the task is finished, and goes into the manifest.
    """

    mode: ClassVar[str] = "wb"

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
        self._environment = environment or Environment()
        self._state = _State.OPEN
        self._writing = threading.RLock()  # held through a write, close or abort
        self._etags: tuple[str, ...] = ()
        self._created = self._saved = self._now()
        self._parts = Parts(store, target, transfer)
        try:
            self._parts.start()
        except Exception:
            self._give_up(_State.FAILED)
            raise

    @property
    def name(self) -> str:
        """The URI of the file, as `open` gives a path."""
        return self.target.uri

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
            self._parts.error is not None and self._state is not _State.ABORTED
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
            upload_id=self._parts.upload_id,
            etags=self._etags,
            length=self._parts.length,
            job_id=target.directory.job_id,
            task_id=target.task_id,
            attempt_id=target.attempt_id,
            rows=self.rows,
            created=self._created,
            saved=self._saved,
        )

    @property
    def statistics(self) -> StreamStatistics:
        """The counts so far; also during and after `close`."""
        return self._parts.statistics

    def writable(self) -> bool:
        """True, as of any file opened for writing."""
        return True

    def tell(self) -> int:
        """How many bytes were written."""
        return self._parts.length

    def write(self, data: ReadableBuffer, /) -> int:
        """Copy all of ``data``, sending each part that gets full; return its length in bytes.

        Raises `StreamClosedError`; `OSError` if the file gets too large (EFBIG); the error of a
        part that failed in the background. After any of these the stream can only be closed (which
        raises it again) or aborted.
        """
        with memoryview(data) as raw, raw.cast("B") as view, self._writing:
            self._check_open()
            self._parts.take(view)
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
            self._seal()

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
                self._give_up(_State.ABORTED if self._parts.stopped.is_set() else _State.FAILED)
                raise
            except BaseException:
                # The process has to end: no more requests, the pipeline cleans up.
                self._state = _State.FAILED
                raise

    def abort(self) -> AbortReport:
        """Drop the file: it is never named in a manifest, and its upload is aborted.

        Safe from another thread while one writes or closes; waits for parts on their way.
        Raises nothing of S3's: dropping the parts is cleanup, and its error is in the report.
        """
        if self.closed:
            return AbortReport(already_closed=True)
        self._parts.stop()
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
        if self._state is not _State.OPEN or self._parts.stopped.is_set():
            state = _State.ABORTED if self._state is _State.OPEN else self._state
            raise StreamClosedError(f"write to {self.name}, which is {state.name.lower()}")

    def _seal(self) -> None:
        self._parts.seal()
        self._state = _State.SEALED

    def _finish(self) -> None:
        if self._state is _State.OPEN:
            self._seal()
        self._etags = self._parts.etags()
        self._saved = self._now()
        self._state = _State.CLOSED

    def _give_up(self, state: _State) -> Exception | None:
        self._state = state
        return self._parts.drop()

    def _now(self) -> int:
        return int(self._environment.epoch() * 1000)
