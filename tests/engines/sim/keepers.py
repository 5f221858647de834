"""Sweeps and checks: processes of the run, with faults of their own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from s3commit.core.fsck import check
from s3commit.core.fsck_report import Report as CheckReport
from s3commit.core.jobs.healing import heal
from s3commit.core.model.destination import Destination
from s3commit.core.model.errors import TransientError
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.executions import Executions
from s3commit.core.sweep.actions import SweepReport
from s3commit.core.sweep.questions import run_sweep
from s3commit.core.sweep.sweep import Limits, Sweep
from tests.engines.sim.clients import BUCKET
from tests.engines.sim.door import Door
from tests.engines.sim.machine import Machine
from tests.engines.sim.model import KEEPERS
from tests.engines.sim.scheduler import Process, Scheduler, fail
from tests.fakes.faults import Crash

TRIES = 12  # whoever gives a command, and mostly after a loss, does not give up


@dataclass
class Keepers:
    """Starts them."""

    scheduler: Scheduler
    door: Door
    executions: Executions
    machine: Machine
    ports: Ports
    limits: Limits
    stopped: list[str] = field(default_factory=list)  # commands that failed for good

    def sweep(self, name: str, *, dry_run: bool = False) -> Process:
        """One call of the sweep's function, tried again as Lambda does."""
        return self.scheduler.spawn(
            name, partial(self._sweep, name, dry_run), role="keeper", job=""
        )

    def _sweep(self, name: str, dry_run: bool) -> None:
        for number in range(TRIES):
            label = f"{name}/sweep" + (f"#{number + 1}" if number else "")
            child = self.scheduler.spawn(label, partial(self._call, dry_run), role="sweep", job="")
            self.scheduler.join(child)
            if child.error is None and not child.result.incomplete:
                break
            if child.error is not None and not isinstance(child.error, TransientError | Crash):
                raise child.error
            self.scheduler.sleep(60.0)

    def _call(self, dry_run: bool) -> SweepReport:
        process = self.scheduler.current
        assert process is not None
        process.about = sweep = Sweep(self.ports, self.executions, self.limits, dry_run=dry_run)
        struck = self.door.strokes
        if not dry_run:
            heal(self.ports, BUCKET)
        report = run_sweep(sweep)
        if dry_run:
            if process.writes:
                fail("sweep", f"{process.name} wrote {process.writes} times, and was dry")
        elif struck == self.door.strokes:
            _judge_counts(process, report)
        return report

    # People.

    def command(self, name: str, body: Callable[[], object]) -> Process:
        """Somebody's command, tried again when it fails."""

        def patient() -> bool:
            for number in range(TRIES):
                child = self.scheduler.spawn(f"{name}#{number + 1}", body, role="fsck", job="")
                self.scheduler.join(child)
                if child.error is None:
                    return True
                self.scheduler.sleep(5)
            if not isinstance(child.error, TransientError | Crash):
                self.stopped.append(f"{name} was stopped: {child.error}")
            return False

        return self.scheduler.spawn(name, patient, role="keeper", job="")

    def check(self, prefix: str) -> CheckReport:
        """``fsck``."""
        ports = self.ports
        return check(ports.store, ports.ledger, ports.parallel, Destination(BUCKET, prefix))

    def commit_requested(self, prefix: str) -> None:
        """``s3commit commit`` of each job that ``fsck`` shows as requested and without a result."""
        for one in self.check(prefix).open_jobs:
            record = self.ports.ledger.job(one.directory.ref)
            execution = record and record.execution
            if one.requested and not (execution and self.executions.describe(execution).is_running):
                name = f"{one.directory.ref}-commit-{int(self.scheduler.seconds)}"
                self.executions.start(name, one.directory)

    def at_work(self) -> bool:
        """Whether one of them runs."""
        return any(one.role in {*KEEPERS, "keeper"} for one in self.scheduler.living)


def _judge_counts(process: Process, report: SweepReport) -> None:
    """Nothing went wrong: the report says just what was done."""
    did = process.effects
    if did["deleted"] > report.documents_deleted:
        told = report.documents_deleted
        fail("sweep", f"{process.name} deleted {did['deleted']}, and reports {told}")
    for what, count in {"put": report.aborted, "start": report.started}.items():
        if did[what] != count:
            fail("sweep", f"{process.name} reports {count} {what}, and did {did[what]}")
