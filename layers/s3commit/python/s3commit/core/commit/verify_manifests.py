"""VerifyManifests: is every counted file really there to be completed? Then the plan."""

from __future__ import annotations

from dataclasses import replace

from s3commit.core.formats.layout import JobDirectory
from s3commit.core.formats.ticket import Ticket
from s3commit.core.job.documents import commit_request, read_spec_of
from s3commit.core.job.listings import list_uploads
from s3commit.core.job.manifests import each_manifest, read_manifest
from s3commit.core.job.partitions import write_partitions
from s3commit.core.job.record import own_record
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.job import Conflict, Scope
from s3commit.core.model.pending import PendingSet
from s3commit.core.model.record import JobRecord
from s3commit.core.model.states import JobState
from s3commit.core.ownership.open_uploads import is_older
from s3commit.core.ports.bundle import Ports
from s3commit.core.verification.manifests import (
    Verified,
    cuts_between,
    make_plan,
    short_digest,
    verify_all,
)

REPLACE_NOT_ALLOWED = "REPLACE_NOT_ALLOWED"


def verify_manifests(ports: Ports, ticket: Ticket) -> Ticket:
    """Judge every counted manifest, see that its uploads are open, and write the plan.

    Reads from S3 what no event brought. Memory: about 250 bytes a file. Repeating it writes the
    same plan. Raises `JobRefusedError` if anything is amiss; nothing was completed then.
    """
    directory = ticket.directory
    record = own_record(ports, ticket, JobState.SEALED)
    spec = read_spec_of(ports, directory, record)
    request = commit_request(ports, directory, spec)
    if record.conflict is Conflict.REPLACE:
        _refuse_to_replace(ports, directory)
    verified, written = verify_all(ports, directory, request.attempts)
    _refuse_shared_keys(verified)
    _refuse_missing_uploads(ports, directory, verified, record)
    facts, body = make_plan(verified)
    if record.conflict is not Conflict.APPEND and record.scope is Scope.PARTITION:
        facts = replace(facts, partitions=write_partitions(ports, directory, written))
    ports.store.put(directory.bucket, directory.plan(facts.sha256), body)
    record = ports.ledger.note(
        record.ref, generation=record.generation, now=ports.clock.now(), plan=facts
    )
    return ticket.after(record)


def _refuse_to_replace(ports: Ports, directory: JobDirectory) -> None:
    """A right to put a job is none to delete what others have put, unless the deployment says so.

    Judged here: the ledger knows the policy, and no lock is held yet (I12).
    """
    if not directory.destination.prefix.startswith(ports.replace_below):
        raise JobRefusedError(
            f"conflict 'replace' is not allowed at {directory.destination.uri}: write there"
            " without it, or have the deployment's replacePrefixes name it",
            code=REPLACE_NOT_ALLOWED,
        )


def _refuse_shared_keys(verified: list[Verified]) -> None:
    seen: set[bytes] = set()
    for one in verified:
        for key in one.keys:
            if key in seen:
                raise JobRefusedError(
                    f"a file of {one.attempt.manifest} is written by another task too",
                    code="DUPLICATE_KEY",
                )
            seen.add(key)


def _refuse_missing_uploads(
    ports: Ports, directory: JobDirectory, verified: list[Verified], record: JobRecord
) -> None:
    """One listing for all; a file that it lacks is looked at by itself before it is refused."""
    missing = {upload for one in verified for upload in one.uploads}
    if missing:
        prefix = directory.destination.prefix
        for upload in list_uploads(ports, directory.bucket, prefix, cuts_between(verified)):
            if not missing:
                break  # the rest is others'
            counted = short_digest(upload.key, upload.upload_id)
            if upload.composite and counted in missing:
                raise JobRefusedError(
                    f"the upload of {upload.key!r} has checksums of its parts, which a manifest"
                    " does not carry and S3 wants again at its completion",
                    code="UNSUPPORTED_CHECKSUM",
                )
            # Another program's is neither to be completed nor to be aborted.
            if counted in missing and is_older(upload, record.opened_at):
                raise JobRefusedError(
                    f"the upload of {upload.key[:200]!r} was started before the job's job.json was"
                    " put",
                    code="BAD_FIELD",
                )
            missing.discard(counted)
    doubted = (one for one in verified if not missing.isdisjoint(one.uploads))

    def look_closer(one: Verified, max_bytes: int) -> None:
        _refuse_gone(ports, read_manifest(ports, directory, one.attempt, max_bytes), missing)

    for _done in each_manifest(ports, look_closer, doubted):
        pass


def _refuse_gone(ports: Ports, pending: PendingSet, missing: set[bytes]) -> None:
    for file in pending.files:
        if short_digest(file.key, file.upload_id) not in missing:
            continue
        if not ports.store.upload_is_open(file.bucket, file.key, file.upload_id):
            raise JobRefusedError(
                f"the upload of {file.key!r} is gone: aborted by someone, or by a lifecycle rule",
                code="UPLOAD_GONE",
            )
