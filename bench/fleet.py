"""The workers that complete uploads, as the Map of the state machine has them, on all cores.

`MOST_WORKERS` at once with `COMPLETE_WORKERS` completions each, as a deployment has by default. In
AWS each has a process and a processor of its own; here they share this machine's, in four processes
for each core, so that few wait for each other's interpreter.
"""

import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Final, Self, TypeVar

from bench.processes import peak, reset_peak
from s3commit.aws.clients import make_client
from s3commit.aws.clock import SystemClock
from s3commit.aws.env import MOST_WORKERS
from s3commit.aws.parallel import ThreadMap
from s3commit.aws.s3 import S3ObjectStore
from s3commit.core.commit.complete_unit import complete_unit
from s3commit.core.documents.pages import Unit
from s3commit.core.documents.ticket import Ticket, UnitResult
from s3commit.core.model.limits import COMPLETE_WORKERS
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from tests.fakes.ledger import MemoryLedger

PROCESSES: Final = 4 * (os.cpu_count() or 1)
T = TypeVar("T")
R = TypeVar("R")
WORKERS: Final = max(1, MOST_WORKERS // PROCESSES)  # in each process


class Fleet:
    """Completes a job's units in processes that find S3 by ``environment``, while it is entered.

    ``cpu`` is the CPU time of all completions so far, in seconds; ``peak`` the largest peak of a
    process during the last ones, in bytes.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.cpu = 0.0
        self.peak = 0
        self._pool = ProcessPoolExecutor(
            PROCESSES, get_context("spawn"), _prepare, (dict(environment),)
        )

    def __enter__(self) -> Self:
        for started in [self._pool.submit(os.getpid) for _ in range(PROCESSES)]:
            started.result()
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def __call__(self, ports: Ports, ticket: Ticket, units: Sequence[Unit]) -> Iterator[UnitResult]:
        """The Map: `tests.fakes.execution.CompleteUnits`."""
        record = ports.ledger.job(ticket.directory.ref)
        assert record is not None
        self.peak = 0
        for results, cpu, most in self.shared(functools.partial(_complete, record, ticket), units):
            self.cpu += cpu
            self.peak = max(self.peak, most)
            yield from results

    def shared(self, work: Callable[[Sequence[T]], R], items: Sequence[T]) -> Iterator[R]:
        """What each process makes of its share of the items."""
        shares = [items[number::PROCESSES] for number in range(PROCESSES)]
        for done in [self._pool.submit(work, share) for share in shares if share]:
            yield done.result()


def _complete(
    record: JobRecord, ticket: Ticket, units: Sequence[Unit]
) -> tuple[list[UnitResult], float, int]:
    """The results of a share of the units, and this process's CPU time and peak for them."""
    reset_peak(os.getpid())
    start = time.process_time()
    ledger = MemoryLedger()
    ledger.open_job(record)
    results = []
    with ThreadPoolExecutor(WORKERS) as workers:
        for result in workers.map(functools.partial(_one, ledger, ticket), units):
            results.append(result)
    return results, time.process_time() - start, peak(os.getpid())


def _one(ledger: MemoryLedger, ticket: Ticket, unit: Unit) -> UnitResult:
    ports = Ports(connected(), ledger, SystemClock(), parallel=ThreadMap(COMPLETE_WORKERS))
    return complete_unit(ports, ticket, unit)


@functools.cache
def connected() -> S3ObjectStore:
    """The store of this process."""
    return S3ObjectStore(make_client(connections=WORKERS * COMPLETE_WORKERS))


def _prepare(environment: dict[str, str]) -> None:
    """Have the client made before anything is measured."""
    os.environ.update(environment)
    connected()
