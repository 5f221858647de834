"""The four questions of a sweep: who is dead, who is silent, whose time is over, what is left."""

from s3commit.core.sweep.actions import SweepReport
from s3commit.core.sweep.destinations import known_destinations
from s3commit.core.sweep.known_jobs import open_jobs, past_jobs, stuck_jobs
from s3commit.core.sweep.sweep import Sweep, ask

QUESTIONS = (stuck_jobs, open_jobs, past_jobs, known_destinations)


def run_sweep(sweep: Sweep) -> SweepReport:
    """Ask all questions once; what there was no time for has its turn in a later sweep."""
    return ask(sweep, QUESTIONS)
