"""The decided plan once more, of request and manifests (docs/adr/0016)."""

from __future__ import annotations

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.manifest import digest
from s3commit.core.job.documents import read_request
from s3commit.core.model.errors import InvalidInputError, JobRefusedError
from s3commit.core.model.job import CommitRequest
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports
from s3commit.core.verification.manifests import make_plan, verify_all


def plan_again(ports: Ports, directory: JobDirectory, record: JobRecord) -> bool:
    """Put the decided plan again, which somebody has deleted or changed; False as `remade_plan`."""
    body = remade_plan(ports, directory, record)
    if body is None:
        return False
    ports.store.put(directory.bucket, directory.plan(digest(body)), body)
    return True


def remade_plan(ports: Ports, directory: JobDirectory, record: JobRecord) -> bytes | None:
    """The decided plan once more, of request and manifests.

    They make the same bytes again, and the digest in the ledger proves it (docs/adr/0016). None if
    they are not what they were either.
    """
    decided = record.plan
    try:
        request = read_request(ports, directory)
        if decided is None or not isinstance(request, CommitRequest):
            return None
        verified, _ = verify_all(ports, directory, request.attempts)
        facts, body = make_plan(verified)
    except (InvalidInputError, JobRefusedError):
        return None
    return body if facts.sha256 == decided.sha256 else None
