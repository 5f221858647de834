"""Sweeps, checks and rebuilds: processes of the run, with faults of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from s3commit.core.check import Report as CheckReport
from s3commit.core.check import check
from s3commit.core.model.errors import TransientError
from s3commit.core.model.job import Destination
from s3commit.core.ports.executions import Executions
from s3commit.core.rebuild import Rebuilder, rebuild
from s3commit.core.sweep.report import Report, decode_report, encode_report
from s3commit.core.sweep.steps import STEPS
from s3commit.core.sweep.sweep import Limits, Step, Sweep
from s3commit.core.sweep.turns import SweepTurn, take_turn
from tests.engines.sim.clients import BUCKET
from tests.engines.sim.door import Door
from tests.engines.sim.machine import Machine
from tests.engines.sim.model import KEEPERS
from tests.engines.sim.scheduler import Process, Scheduler, fail
from tests.fakes.faults import Crash

TRIES = 12  # whoever gives a command, and mostly after a loss, does not give up
ROOTS = ("sales/", "sales2/", "moved/", "twin/")


@dataclass
class Keepers:
    """Starts them."""

    scheduler: Scheduler
    door: Door
    executions: Executions
    machine: Machine
    hands: Rebuilder
    limits: Limits
    call_items: int
    swept: Report = field(default_factory=Report)
    roots: tuple[str, ...] = ROOTS
    stopped: list[str] = field(default_factory=list)  # commands that failed for good

    def sweep(self, name: str, *, dry_run: bool = False) -> Process:
        """One pass of the sweep's state machine."""
        return self.scheduler.spawn(
            name, partial(self._sweep, name, dry_run), role="keeper", job=""
        )

    def _sweep(self, name: str, dry_run: bool) -> None:
        report = Report()
        for label, step in STEPS.items():
            turn = SweepTurn(walked=False)
            while turn.more:
                call = self._called(f"{name}/{label}", step, report, turn, dry_run)
                if call is None:
                    break  # it failed for good: the next step does its work all the same
                report, turn = call
        for one in ("asked", "started", "forgotten", "uploads", "tidied", "retired", "objects"):
            setattr(self.swept, one, getattr(self.swept, one) + getattr(report, one))

    def _called(
        self, name: str, step: Step, before: Report, turn: SweepTurn, dry_run: bool
    ) -> tuple[Report, SweepTurn] | None:
        """One call of a step, tried again as the machine does."""
        for number in range(TRIES):
            self.machine.while_closed()
            body = partial(self._call, step, before, turn, dry_run)
            label = name + (f"#{number + 1}" if number else "")
            child = self.scheduler.spawn(label, body, role="sweep", job="")
            self.scheduler.join(child)
            if child.error is None:
                found: tuple[Report, SweepTurn] = child.result
                return found
            if not isinstance(child.error, TransientError | Crash):
                raise child.error
            self.scheduler.sleep(2.0 * 2**number)
        return None

    def _call(
        self, step: Step, before: Report, turn: SweepTurn, dry_run: bool
    ) -> tuple[Report, SweepTurn]:
        process = self.scheduler.current
        assert process is not None
        report = decode_report(encode_report(before))

        def make(turn: SweepTurn) -> Sweep:
            sweep = Sweep(
                BUCKET,
                self.hands.ports,
                self.executions,
                self.limits,
                report,
                dry_run=dry_run,
                put_off=dict(turn.put_off),
                call_items=self.call_items,
            )
            process.about = sweep
            return sweep

        writes, struck = self.door.writes, self.door.strokes
        turn = take_turn(make, step, turn)
        if dry_run:
            if process.writes:
                fail("sweep", f"{process.name} wrote {process.writes} times, and was dry")
        elif struck == self.door.strokes and writes + process.writes == self.door.writes:
            _judge_counts(process, before, report)
        return report, turn

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
        ports = self.hands.ports
        return check(ports.store, ports.ledger, ports.parallel, Destination(BUCKET, prefix))

    def commit_requested(self, prefix: str) -> None:
        """``s3commit commit`` of each job that ``fsck`` shows as requested and without a result."""
        for one in self.check(prefix).open_jobs:
            record = self.hands.ports.ledger.job(one.directory.ref)
            if one.requested and not (
                record and self.hands.executions.is_running(one.directory, record)
            ):
                name = f"{one.directory.ref}-commit-{int(self.scheduler.seconds)}"
                self.executions.start(name, one.directory)

    def rebuild(self) -> None:
        """``fsck --rebuild-ledger`` of all there is."""
        for prefix in self.roots:
            _exhaust(rebuild(self.hands, Destination(BUCKET, prefix)))

    def at_work(self) -> bool:
        """Whether one of them runs."""
        return any(one.role in {*KEEPERS, "keeper"} for one in self.scheduler.living)


def _exhaust(items: Iterable[object]) -> None:
    for _ in items:
        pass


def _judge_counts(process: Process, before: Report, after: Report) -> None:
    """Nobody else wrote, and nothing went wrong: the report says just what was done."""
    did = process.effects
    told = {
        "put": after.asked - before.asked,
        "start": after.started - before.started,
        "forget": after.forgotten - before.forgotten,
    }
    if after.objects - before.objects > did["deleted"]:
        fail("sweep", f"{process.name} tells of more objects than the {did['deleted']} it deleted")
    if process.name.partition("#")[0].endswith("AbortOrphanedUploads"):
        told["aborted"] = after.uploads - before.uploads
    for what, count in told.items():
        if did[what] != count:
            fail("sweep", f"{process.name} tells of {count} {what}, and did {did[what]}")
