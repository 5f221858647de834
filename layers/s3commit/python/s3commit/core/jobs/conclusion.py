"""The end of a job: its result, and the event that announces it."""

from dataclasses import replace

from s3commit.core.documents.result_json import write_result
from s3commit.core.documents.ticket import Ticket
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports


def conclude(ports: Ports, ticket: Ticket, record: JobRecord) -> Ticket:
    """Write the result of a job that has ended; repeatable. The ticket has the event to send.

    The event is what docs/events.md describes. All of it is bounded where it comes in, to about
    60 KB together; EventBridge takes 256 KB an entry:
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevent-size.html
    """
    directory = ticket.directory
    result = write_result(ports, directory, record)
    event = {
        "version": 1,
        "jobId": result.job_id,
        "outcome": result.outcome,
        "code": result.error.code if result.error else None,
        "bucket": directory.bucket,
        "directory": directory.prefix,
        "table": record.destination.uri,
        "files": result.files,
        "bytes": result.bytes,
        "rows": result.rows,
        "replaced": result.replaced,
        "undoes": record.undoes or None,
        "key": record.idempotency_key,
        "note": record.note or None,
        "labels": list(record.labels),
        "openedAt": record.opened_at or None,
        "requestedAt": record.requested_at or None,
        "requestedBy": record.requested_by or None,
        "decidedAt": result.decided_at,
        "finishedAt": result.finished_at,
    }
    return replace(ticket.after(record), event=event)
