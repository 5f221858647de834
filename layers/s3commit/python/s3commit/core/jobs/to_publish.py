"""The reads of PublishSuccess that do not depend on the job's record."""

from functools import partial

from s3commit.core.documents.decision_json import stored_decision
from s3commit.core.documents.plan import files_of_few
from s3commit.core.documents.success_marker import read_success
from s3commit.core.documents.ticket import Found, Marker, Ticket
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import AccessError, InvalidInputError, NotFoundError
from s3commit.core.ports.bundle import S3Ports
from s3commit.core.ports.objects import listed_at
from s3commit.core.ports.parallel import together


def found_before(ports: S3Ports, ticket: Ticket) -> Found:
    """Requests: all side by side."""
    found = together(
        ports.parallel,
        partial(files_of_few, ports, ticket),
        partial(stored_decision, ports, ticket.directory),
        partial(marker, ports, ticket.directory),
    )
    return Found(*found)


def marker(ports: S3Ports, directory: JobDirectory) -> Marker:
    """The etag of the object at ``_SUCCESS``, and the job that it names, if it is a marker.

    By whomever it was put, it keeps no job from its end (I12): of one that is too large, archived,
    or encrypted with a key of others, a listing has the etag.
    """
    try:
        return read_success(ports.store, directory.bucket, directory.success)
    except NotFoundError:
        return None, None
    except (InvalidInputError, AccessError):
        listed = listed_at(ports.store, directory.bucket, directory.success)
        return listed.etag if listed else None, None
