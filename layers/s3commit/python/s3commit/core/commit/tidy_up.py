"""TidyUp: what a job's work has left behind goes when the job has ended (I4)."""

from __future__ import annotations

from s3commit.core.ending.leftovers import tidy
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.record import own_record
from s3commit.core.model.states import JobState
from s3commit.core.ports.bundle import Ports


def tidy_up(ports: Ports, ticket: Ticket) -> Ticket:
    """After the end: abort what losers left open (I4), delete manifests and plan.

    ``job.json``, ``request.json`` and ``result.json`` stay for the retention time. A loser that
    still runs is not waited for: its manifest is aborted when it arrives, and while it opens
    uploads faster than they are aborted everything stays for the sweep.
    """
    record = own_record(ports, ticket, JobState.COMMITTED, JobState.ABORTED, JobState.ROLLED_BACK)
    tidy(ports, ticket.directory, record)
    return ticket
