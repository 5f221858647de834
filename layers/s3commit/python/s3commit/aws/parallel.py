"""The parallel map of the pipeline: threads, a bounded window, the first error raised."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

WINDOW = 4  # items handed out for each worker: keeps all busy, and memory bounded


class ThreadMap:
    """Implements `s3commit.core.ports.parallel.ParallelMap` on ``workers`` threads.

    The threads live as long as the process: a Lambda worker is reused. After an error no further
    item is handed out, and the error is raised when those under way are done.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="s3commit")

    def __call__(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """Apply ``function`` to each item; results come as they are done."""
        remaining = iter(items)
        under_way: set[Future[Any]] = set()
        try:
            while True:
                room = self._workers * WINDOW - len(under_way)
                for item in islice(remaining, room):
                    under_way.add(self._pool.submit(function, item))
                if not under_way:
                    return
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            wait(under_way)
