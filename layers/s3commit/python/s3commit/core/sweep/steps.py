"""The steps of a sweep in their order, and a whole pass without a state machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from s3commit.core.sweep.directories import tidy_job_directories
from s3commit.core.sweep.jobs import go_on_with_stuck_jobs, look_at_open_jobs
from s3commit.core.sweep.report import Report
from s3commit.core.sweep.sweep import Step, Sweep
from s3commit.core.sweep.turns import SweepTurn, take_turn
from s3commit.core.sweep.uploads import abort_orphaned_uploads

STEPS: dict[str, Step] = {
    "LookAtOpenJobs": look_at_open_jobs,
    "GoOnWithStuckJobs": go_on_with_stuck_jobs,
    "AbortOrphanedUploads": abort_orphaned_uploads,
    "TidyJobDirectories": tidy_job_directories,
}


def run_sweep(make: Callable[[Report], Sweep]) -> Report:
    """A person's pass, to its end: all that is put off as well; ``make`` gives a call its `Sweep`.

    It neither waits for a sweep of the schedule nor keeps one waiting: both do no harm.
    """
    report = Report()

    def begun(turn: SweepTurn) -> Sweep:
        sweep = make(report)
        sweep.put_off.update(turn.put_off)
        return sweep

    for step in STEPS.values():
        turn = SweepTurn(walked=False)
        while turn.more:
            turn = take_turn(begun, step, turn)
            if turn.walked and not turn.waiting:
                turn = replace(turn, waiting=tuple(turn.put_off))
    return report
