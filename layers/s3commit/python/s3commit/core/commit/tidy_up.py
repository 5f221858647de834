"""TidyUp: what a job's work has left behind goes when the job has ended (I4)."""

from dataclasses import replace
from functools import partial

from s3commit.core.documents.pages import in_groups
from s3commit.core.documents.ticket import Ticket
from s3commit.core.jobs.guards import known_record
from s3commit.core.jobs.ownership import abort_uploads
from s3commit.core.model.limits import DELETE_AT_ONCE
from s3commit.core.model.states import ENDED, JobState
from s3commit.core.ports.bundle import Ports
from s3commit.core.ports.clock import CallTime


def tidy_up(ports: Ports, ticket: Ticket) -> Ticket:
    """After the end: abort what losers left open (I4), then delete manifests and pages.

    ``_job.json``, ``_request.json``, ``_result.json``, the decision and the note of a catalog stay
    for the retention time, and of a committed job what it replaced: an undo needs that.
    A loser that still runs is not waited for: its manifest starts another execution. While it
    opens uploads faster than they are aborted, everything stays for the sweep. While ``page`` of
    the ticket is not 0 the caller comes again: there are more than a call has time for.
    """
    time = CallTime(ports.clock)
    record = known_record(ports, ticket, *ENDED)
    store, directory = ports.store, ticket.directory
    # Listed first: a manifest that comes later names uploads that were not aborted here, and it is
    # all that its own event finds them by.
    own = store.list(directory.bucket, directory.pipeline_prefix)
    is_committed = record.state is JobState.COMMITTED
    kept = (directory.decision, directory.catalog, directory.replaced)[: 2 + is_committed]
    pages = [one for one in own if not one.key.startswith(kept)]
    is_here = ports.serves(directory.prefix)
    seen = pages + list(store.list(directory.bucket, directory.tasks) if is_here else ())
    if not abort_uploads(ports, directory, time):
        return replace(ticket, page=int(time.is_cut))
    # The client's objects go last: by these a sweep sees that something is left. Many go with
    # one request: a hundred thousand manifests, one by one, take longer than a call has time for.
    for some in (seen[:DELETE_AT_ONCE], seen[DELETE_AT_ONCE:]):
        for _done in ports.parallel(
            partial(store.delete_seen, directory.bucket), in_groups(some, DELETE_AT_ONCE)
        ):
            pass
    return replace(ticket, page=0)
