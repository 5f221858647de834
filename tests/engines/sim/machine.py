"""The pipeline's processes: handlers, executions and their steps, as deployed."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from s3commit.core.calls import routes
from s3commit.core.commit.complete_unit import complete_unit
from s3commit.core.commit.note_arrivals import note_job, note_manifest
from s3commit.core.documents.pages import MAX_INDEX_BYTES, UNIT
from s3commit.core.documents.ticket import Ticket, UnitResult
from s3commit.core.formats.layout import PENDINGSET_SUFFIX, JobDirectory
from s3commit.core.model.errors import (
    AccessError,
    InvalidInputError,
    JobRefusedError,
    NeedsOperatorError,
    NotFoundError,
    TransientError,
)
from s3commit.core.model.outcome import Failure
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.executions import FORGOTTEN, NO_REASON, Execution, Reason
from s3commit.core.ports.ledger import LostRaceError
from tests.engines.sim.clients import BUCKET
from tests.engines.sim.faults import Faults
from tests.engines.sim.model import Job
from tests.engines.sim.observer import Observer
from tests.engines.sim.scheduler import Process, Scheduler, Violation
from tests.fakes.execution import COMPLETING, RETRIES, call
from tests.fakes.faults import Crash

CUT = 0.3  # of the calls stop after a step, as a large job's do


@dataclass
class Machine:
    """Starts handlers and executions. Implements `Executions`."""

    scheduler: Scheduler
    faults: Faults
    ports: Ports
    observer: Observer
    executions: set[str] = field(default_factory=set)  # their names
    dead_letters: list[str] = field(default_factory=list)  # keys of manifests

    # Handlers.

    def ingest(self, key: str) -> None:
        """The handler of the event of a ``_job.json`` or a manifest; SQS brings it again."""
        for _ in range(4):
            self.scheduler.begin_call()
            try:
                if not key.endswith(PENDINGSET_SUFFIX):
                    note_job(self.ports, BUCKET, key)
                    return
                note_manifest(self.ports, self, BUCKET, key)
                return
            except InvalidInputError:
                return  # for a person to look at; the request will be refused for it
            except (TransientError, Crash):
                self.scheduler.sleep(30)
        self.dead_letters.append(key)

    def dispatch(self, job: Job) -> None:
        """The handler of a request's event: an execution by the job's ref, once."""
        self._start(job.directory.ref, job)

    # Step Functions.

    def describe(self, execution: str) -> Execution:
        running = any(one.name == execution for one in self.scheduler.living)
        return Execution("RUNNING" if running else FORGOTTEN)

    def start(self, name: str, directory: JobDirectory, reason: Reason = NO_REASON) -> str | None:
        job = self.observer.job_at(directory.prefix)
        if job is None:
            raise Violation("I7", f"execution {name} is started for {directory.prefix}")
        return name if self._start(name, job) else None

    def _start(self, name: str, job: Job) -> bool:
        if name in self.executions:
            return False
        self.execute(job, name)
        return True

    def execute(self, job: Job, name: str, gives_up: str = "") -> Process:
        self.executions.add(name)
        body = partial(self._to_its_end, job, name, gives_up)
        return self.scheduler.spawn(name, body, role="execution", job=job.name)

    def _to_its_end(self, job: Job, name: str, gives_up: str) -> str:
        try:
            return self._execution(job, name, gives_up)
        finally:
            job.faltered |= not job.over

    def _execution(self, job: Job, execution: str, gives_up: str) -> str:
        where = (job.directory.job_id, BUCKET, job.directory.prefix)
        ticket = Ticket(*where, execution=execution, gives_up=gives_up)
        name = routes.FIRST
        while name not in routes.ENDS.values():
            if name in routes.WAITS:
                self.scheduler.sleep(float(ticket.pause or 5))
                name = routes.WAITS[name]
            try:
                ticket, following = self._tried(job, name, ticket)
            except LostRaceError:
                return "Superseded"
            except NeedsOperatorError as error:
                if "page" not in job.sabotaged:
                    raise Violation("progress", f"{execution} stops at {name}: {error}") from error
                return "failed"  # until the page is there again
            except (JobRefusedError, InvalidInputError) as error:
                if name not in routes.REFUSING and job.intruder:
                    job.message = f"{name}: {error}"
                    return "failed"
                if name not in routes.REFUSING:
                    raise Violation("progress", f"{execution} failed at {name}: {error}") from error
                ticket = replace(ticket, refusal=Failure(error.code, error.message))
                following = "AbortJob"
            if self.faults.chance(0.02):
                self.faults.strike("execution killed")
                return "killed"
            if following == name:
                self.scheduler.sleep(5.0)
            name = following
        return "ended"

    def _tried(self, job: Job, name: str, ticket: Ticket) -> tuple[Ticket, str]:
        """A step, tried again as the machine does; a try that is given up goes on unheard."""
        for number in range(RETRIES):
            label = f"{ticket.execution}/{name}" + (f"#{number + 1}" if number else "")
            body = (
                partial(self._map, job, ticket, label)
                if name in COMPLETING
                else partial(call, self.ports, name, ticket, goes_on=not self.faults.chance(CUT))
            )
            begun = self.scheduler.steps
            child = self.scheduler.spawn(label, body, role="pipeline", job=job.name)
            if self.faults.chance(0.03):
                self.faults.strike("given up")
                self.scheduler.sleep(self.faults.stall())
                continue
            self.scheduler.join(child)
            if child.error is None:
                result: tuple[Ticket, str] = child.result
                ticket, following = result
                if following in routes.ENDS.values() and not ticket.page:  # else the sweep has work
                    self.observer.check_closed(job, begun)
                return result
            if not isinstance(child.error, TransientError | Crash):
                raise child.error
            if number == RETRIES - 1:
                raise child.error
            self.scheduler.sleep(2.0 * 2**number)
        raise TransientError("every try was given up")

    def _map(self, job: Job, ticket: Ticket, label: str) -> tuple[Ticket, str]:
        """The Map: a worker a unit, all at once, each tried again."""
        try:
            stored = self.ports.store.get(BUCKET, ticket.plan, max_bytes=MAX_INDEX_BYTES)
            units = [UNIT.read(unit) for unit in json.loads(stored.body)]
        except (NotFoundError, AccessError, InvalidInputError):
            return ticket, routes.COUNTED
        workers = [
            self.scheduler.spawn(
                f"{label}/{unit.number}",
                partial(self._worker, partial(complete_unit, self.ports, ticket, unit)),
                role="pipeline",
                job=job.name,
            )
            for unit in units
        ]
        self.scheduler.join(*workers)
        for worker in workers:
            if worker.error is not None:
                raise worker.error
        completed = tuple(worker.result for worker in workers)
        return replace(ticket, completed=completed), routes.COUNTED

    def _worker(self, complete: Callable[[], UnitResult]) -> UnitResult:
        for _ in range(4):
            self.scheduler.begin_call()
            try:
                return complete()
            except TransientError:
                self.scheduler.sleep(1)
        self.scheduler.begin_call()
        return complete()
