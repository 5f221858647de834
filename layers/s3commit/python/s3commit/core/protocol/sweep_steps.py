"""The steps of a sweep in their order, and a whole pass without a state machine."""

from __future__ import annotations

from collections.abc import Callable

from s3commit.core.protocol.sweep import Step, Sweep
from s3commit.core.protocol.sweep_directories import tidy_job_directories
from s3commit.core.protocol.sweep_jobs import go_on_with_stuck_jobs, look_at_open_jobs
from s3commit.core.protocol.sweep_report import Report
from s3commit.core.protocol.sweep_uploads import abort_orphaned_uploads

STEPS: dict[str, Step] = {
    "LookAtOpenJobs": look_at_open_jobs,
    "GoOnWithStuckJobs": go_on_with_stuck_jobs,
    "AbortOrphanedUploads": abort_orphaned_uploads,
    "TidyJobDirectories": tidy_job_directories,
}


def run_sweep(make: Callable[[Report], Sweep]) -> Report:
    """One pass, call by call as the state machine makes them; ``make`` gives each its `Sweep`."""
    report = Report()
    for step in STEPS.values():
        cursor = step(make(report), "")
        while cursor:
            cursor = step(make(report), cursor)
    return report
