"""How a task sends: the sizes of parts, the memory in which one is filled, and the threads."""

import mmap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

from s3commit.core.model.errors import InvalidInputError

MIB: Final = 1024 * 1024
GIB: Final = 1024 * MIB
TIB: Final = 1024 * GIB

# S3's limits: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
MIN_PART_BYTES: Final = 5 * MIB
MAX_PART_BYTES: Final = 5 * GIB
MAX_PARTS: Final = 10_000
MAX_FILE_BYTES: Final = 5 * TIB

DEFAULT_PART_BYTES: Final = 8 * MIB
DEFAULT_THREADS: Final = 4
MAX_THREADS: Final = 256
DEFAULT_IN_FLIGHT_BYTES: Final = 32 * MIB

_T = TypeVar("_T")

_OWN_MEMORY: Final = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


@dataclass(frozen=True, slots=True)
class PartSizes:
    """The size in bytes of each part of a file; every part but the last has exactly that.

    With the defaults a file of 8 GiB has parts of 8 MiB throughout, and 10,000 parts hold 5 TiB
    with the last of them at about 1.1 GiB. They depend on nothing but the part's number, so a file
    needs no size in advance.
    """

    first: int = DEFAULT_PART_BYTES
    """Bytes of the first ``flat`` parts."""
    flat: int = 1000
    """How many parts have that size."""
    every: int = 100
    """How many parts then have one size."""
    step: int = 13 * MIB
    """Bytes by which each such size is bigger than the one before."""
    max_parts: int = MAX_PARTS
    """Parts of a file at most."""
    max_bytes: int = MAX_FILE_BYTES
    """Bytes of a file at most."""

    def size(self, number: int) -> int:
        """The bytes of part ``number`` (from 1)."""
        levels = -(-max(0, number - self.flat) // self.every)
        return min(MAX_PART_BYTES, self.first + levels * self.step)


@dataclass(frozen=True, slots=True)
class UploadSettings:
    """The resources that a task may use; picklable, and the same for all tasks of a job.

    A task holds in memory what is written and does not fill a part yet, at most one part for each
    open file, and the parts on their way to S3. Other values than a machine or S3 can have are
    refused by an `InvalidInputError` (``BAD_OPTION``).

    Examples:
        >>> fast = s3commit.UploadSettings(s3commit.PartSizes(first=16 * 1024**2), threads=16)
        >>> s3commit.write_table(frame, "s3://lake/fast/", uploads=fast).files
        1
    """

    parts: PartSizes = field(default_factory=PartSizes)
    """The sizes of parts."""
    threads: int = DEFAULT_THREADS
    """How many send the parts of a task."""
    in_flight_bytes: int = DEFAULT_IN_FLIGHT_BYTES
    """Bytes on their way to S3 at most, or one part; a faster writer waits."""

    def __post_init__(self) -> None:
        first = getattr(self.parts, "first", None)
        _within("PartSizes.first", first, MIN_PART_BYTES, MAX_PART_BYTES)
        least = {"flat": 0, "every": 1, "step": 0, "max_parts": 1, "max_bytes": 1}
        for name, at_least in least.items():
            at_most = MAX_PARTS if name == "max_parts" else MAX_FILE_BYTES
            _within(f"PartSizes.{name}", getattr(self.parts, name), at_least, at_most)
        _within("threads", self.threads, 1, MAX_THREADS)
        _within("in-flight bytes", self.in_flight_bytes, 1, TIB)


def _within(what: str, value: object, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise InvalidInputError(
            f"{what} {value!r:.80} is not a whole number from {least:,} to {most:,}",
            code="BAD_OPTION",
        )


class PartBuffer:
    """The bytes of one part, in a memory map of its own.

    Only what is written of it takes memory, and it goes back to the system whole. A growing
    ``bytearray`` is moved about on the heap; with hundreds of streams the gaps that this leaves
    took as much memory as the parts themselves.

    Not thread-safe: one writer fills it, then one sender reads it; `discard` ends it.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._memory: mmap.mmap | None = None
        self._taken = 0

    def __len__(self) -> int:
        return self._taken

    def append(self, data: memoryview) -> int:
        """Copy as much of ``data`` as fits; return how many bytes."""
        size = min(len(data), self.capacity - self._taken)
        if size:
            if self._memory is None:
                self._memory = mmap.mmap(-1, self.capacity, flags=_OWN_MEMORY)
            self._memory[self._taken : self._taken + size] = data[:size]
            self._taken += size
        return size

    @contextmanager
    def view(self) -> Iterator[memoryview]:
        """All bytes of the part, valid within the block."""
        view = memoryview(self._memory or b"")[: self._taken]
        # The frames of a failed request keep slices of the view alive in the error's traceback. The
        # memory then goes with the error; what must not happen is that BufferError takes its place.
        try:
            yield view
        finally:
            with suppress(BufferError):
                view.release()

    def discard(self) -> None:
        """Free the memory; the bytes are lost."""
        if self._memory is not None:
            with suppress(BufferError):  # see `view`
                self._memory.close()
        self._memory, self._taken = None, 0


class Transfer:
    """A task's threads. Thread-safe. They start with the first part, and `close` waits for them."""

    def __init__(self, settings: UploadSettings) -> None:
        self.settings = settings
        self._executor = ThreadPoolExecutor(
            max_workers=self.settings.threads, thread_name_prefix="s3commit-part"
        )
        self._in_flight = 0
        self._room = threading.Condition()

    def buffer(self, number: int) -> PartBuffer:
        """An empty buffer for part ``number`` of a file."""
        return PartBuffer(self.settings.parts.size(number))

    def send(
        self, part: PartBuffer, work: Callable[[memoryview], _T], *, stopped: Callable[[], bool]
    ) -> Future[_T]:
        """Run ``work`` with the part's bytes in a thread, once they have room in flight.

        Waits for the room, but not when ``stopped``: then ``work`` has nothing to send. The part's
        memory goes back to the system when ``work`` is done.
        """
        size = len(part)
        with self._room:
            self._room.wait_for(
                lambda: (
                    stopped()
                    or not self._in_flight
                    or self._in_flight + size <= self.settings.in_flight_bytes
                )
            )
            self._in_flight += size
        try:
            return self._executor.submit(self._run, part, work)
        except RuntimeError:  # the executor is closed: the task has ended
            self._discard(part)
            raise

    def wake(self) -> None:
        """Wake the writers that wait for room: one that was stopped ends its wait."""
        with self._room:
            self._room.notify_all()

    def close(self) -> None:
        """Wait for the threads; closing again is success."""
        self._executor.shutdown(wait=True)

    def _run(self, part: PartBuffer, work: Callable[[memoryview], _T]) -> _T:
        try:
            with part.view() as body:
                return work(body)
        finally:
            self._discard(part)

    def _discard(self, part: PartBuffer) -> None:
        size = len(part)
        part.discard()
        with self._room:
            self._in_flight -= size
            self._room.notify_all()
