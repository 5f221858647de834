"""A pending upload as a binary file: written now, visible when (and if) its job is committed."""

from __future__ import annotations

import errno
import io
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar

from s3commit.core.documents.pendingset import PendingFile
from s3commit.core.model.errors import S3CommitError
from s3commit.core.ports.objects import WriterStore
from s3commit.writer.target import StreamClosedError, Target
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
    """A writable binary file (``mode``) that stays invisible until its job is committed.

    Made by `Task.open`, which starts the multipart upload: one request, then one a part, and no
    others. Written bytes are copied immediately and go to S3 as parts while more are written; they
    can neither be read back nor written over. Writes are safe from several threads. An error of a
    background part is raised by the next write or by `close`; the upload is then aborted. A
    ``with`` block that ends in an exception aborts the file instead of closing it.
    """

    mode: ClassVar[str] = "wb"

    def __init__(
        self, store: WriterStore, target: Target, transfer: Transfer, rows: int | None = None
    ) -> None:
        super().__init__()
        self._target = target
        self.rows = rows
        """How many rows the file has, for the manifest; may be set until its task is finished."""
        self._store = store
        self._transfer = transfer
        self._state = _State.OPEN
        self._writing = threading.RLock()  # held through a write, close or abort
        self._stopped = threading.Event()  # nothing more is sent
        self._error: BaseException | None = None  # the first: the file can't be whole any more
        self._length = 0
        self._buffer = transfer.buffer(1)
        self._parts: list[Future[str]] = []  # the etag of each
        self._upload_id = target.begin(store)

    @property
    def name(self) -> str:
        """The URI of the file, as `open` gives a path."""
        return self._target.uri

    @property
    def closed(self) -> bool:
        """True if `close` or `abort` was called, with whatever outcome."""
        return self._state not in _LIVE

    @property
    def sealed(self) -> bool:
        """True if `seal` was called and neither `close` nor `abort` yet."""
        return self._state is _State.SEALED

    @property
    def failed(self) -> bool:
        """True if a write, a part or `close` failed, so that the file cannot be complete."""
        return self._state is _State.FAILED or (self._error is not None and not self.aborted)

    @property
    def aborted(self) -> bool:
        """True if the stream was aborted by its caller."""
        return self._state is _State.ABORTED

    @property
    def pending(self) -> PendingFile:
        """The file as the manifest names it; `StreamClosedError` unless closed well."""
        if self._state is not _State.CLOSED:
            raise StreamClosedError(f"{self.name} is {self._state.name.lower()}: not a whole file")
        etags = (part.result() for part in self._parts)
        return self._target.pending(self._upload_id, etags, self._length, self.rows)

    def writable(self) -> bool:
        """True, as of any file opened for writing."""
        return True

    def tell(self) -> int:
        """How many bytes were written."""
        return self._length

    def write(self, data: ReadableBuffer, /) -> int:
        """Copy all of ``data``, sending each part that gets full; return its length in bytes.

        After an error, also of a part that failed in the background, the file can only be closed
        (which raises it again) or aborted.

        Raises:
            StreamClosedError: it is closed.
            OSError: the file gets too large (``EFBIG``).
        """
        with memoryview(data) as raw, raw.cast("B") as view, self._writing:
            self._check_open()
            with self._noting():
                self._take(view)
            return len(view)

    def seal(self) -> None:
        """Send the last part without waiting; only `close` and `abort` may follow.

        A caller that seals many files before closing the first waits for all of them together, not
        for each in turn. Raises as `write` does; sealing again does nothing.
        """
        with self._writing:
            if self.sealed:
                return
            self._check_open()
            self._send_rest()

    def close(self) -> None:
        """Send the last part and wait for all of them; afterwards `pending` names the file.

        Only the first call does anything. If it raises (the error of a part, of a write before),
        the stream is closed anyway and the upload aborted.
        """
        with self._writing:
            if self.closed:
                return
            try:
                if self._state is _State.OPEN:
                    self._send_rest()
                for part in self._parts:
                    part.result()
                self._raise_error()
            except Exception:
                # nothing but a concurrent abort() stops an open stream
                self._give_up(_State.ABORTED if self._stopped.is_set() else _State.FAILED)
                raise
            except BaseException:
                # The process has to end: no more requests, the pipeline cleans up.
                self._state = _State.FAILED
                raise
            self._state = _State.CLOSED

    def abort(self) -> Exception | None:
        """Drop the file: it is never named in a manifest, and its upload is aborted.

        Nothing is done if it is closed. Safe from another thread while one writes or closes; waits
        for parts on their way. Returns the error of S3 if it refuses to drop the parts: the
        pipeline drops them when the job ends.
        """
        return self._drop(_LIVE)

    def withdraw(self) -> Exception | None:
        """Abort the upload of a file that may be closed already: its task is aborted."""
        return self._drop(frozenset(_State))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        # io would close, and so finish, a file that its writer forgot: no requests from here.
        pass

    def _check_open(self) -> None:
        if self._state is not _State.OPEN or self._stopped.is_set():
            state = _State.ABORTED if self._state is _State.OPEN else self._state
            raise StreamClosedError(f"write to {self.name}, which is {state.name.lower()}")

    def _take(self, view: memoryview) -> None:
        """Copy all bytes, and send each part that gets full.

        An abort does not wait for the rest of a long write.
        """
        sizes = self._transfer.settings.parts
        while len(view):
            if self._length + len(view) > sizes.max_bytes or len(self._parts) == sizes.max_parts:
                raise OSError(errno.EFBIG, "file is larger than S3's parts can hold", self.name)
            self._check_open()
            self._raise_error()
            taken = self._buffer.append(view)
            view = view[taken:]
            self._length += taken
            if len(self._buffer) == self._buffer.capacity:
                self._send_buffer()

    def _send_rest(self) -> None:
        """Send what is left; a file without any bytes is one empty part."""
        with self._noting():
            self._raise_error()
            if len(self._buffer) or not self._parts:
                self._send_buffer()
        self._state = _State.SEALED

    def _send_buffer(self) -> None:
        number = len(self._parts) + 1
        part, self._buffer = self._buffer, self._transfer.buffer(number + 1)
        self._parts.append(
            self._transfer.send(
                part, lambda body: self._send(number, body), stopped=self._stopped.is_set
            )
        )

    def _send(self, number: int, body: memoryview) -> str:
        """Runs in a thread of the task."""
        target = self._target
        with self._noting():
            if self._stopped.is_set():
                raise S3CommitError(f"{self.name} was aborted", code="STREAM_ABORTED")
            return self._store.upload_part(target.bucket, target.key, self._upload_id, number, body)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Remember an error of the block."""
        try:
            yield
        except BaseException as error:
            self._error = self._error or error
            raise

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _stop(self) -> None:
        """Send nothing more; a writer that waits for room stops waiting immediately."""
        self._stopped.set()
        self._transfer.wake()

    def _drop(self, states: frozenset[_State]) -> Exception | None:
        """Give the file up if it is in one of the states, also when all writes have ended."""
        if self._state not in states:
            return None
        self._stop()
        with self._writing:
            return self._give_up(_State.ABORTED) if self._state in states else None

    def _give_up(self, state: _State) -> Exception | None:
        """Abort the upload once no part is on its way; return the error of S3 if it refuses."""
        self._state = state
        self._stop()
        wait(self._parts)  # a part that arrives after the abort would be paid for
        self._buffer.discard()
        if self._upload_id:
            try:
                self._store.abort_upload(self._target.bucket, self._target.key, self._upload_id)
            except Exception as error:
                return error
        self._upload_id = ""
        return None
