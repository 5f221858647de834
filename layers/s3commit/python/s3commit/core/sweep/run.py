"""A whole sweep, for the function and for the command."""

from __future__ import annotations

from s3commit.core.sweep.destinations import known_destinations
from s3commit.core.sweep.questions import open_jobs, past_jobs, stuck_jobs
from s3commit.core.sweep.report import Report
from s3commit.core.sweep.sweep import Sweep, ask

QUESTIONS = (stuck_jobs, open_jobs, past_jobs, known_destinations)


def run_sweep(sweep: Sweep) -> Report:
    """Ask all questions once; what there was no time for has its turn in a later sweep."""
    return ask(sweep, QUESTIONS)
